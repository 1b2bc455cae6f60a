package data

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// shapes3DOf recognises Shapes3D by its columns of labels, as in TensorFlow Datasets and copies made from it: for each factor a column
// such as label_floor_hue with classes, or value_floor_hue or floor_hue with values, or both. Rows may be a part of the dataset and in
// any order. ok is false if a column is missing, has other values, or is not a factor.
func shapes3DOf(columns []column, length int) (info Info, labels []uint16, ok bool) {
	info = originalInfo.clone()
	f := len(info.Factors)
	labels = make([]uint16, length*f)
	known := 0
	for k, factor := range info.Factors {
		found := false
		for _, prefix := range []string{"label_", "value_", ""} {
			i := slices.IndexFunc(columns, func(c column) bool { return c.name == prefix+factor.Name })
			if i < 0 {
				continue
			}
			known++
			if found {
				continue // another column already gave the classes
			}
			if found = classesOf(labels[k:], f, columns[i].values, shapes3DValue(k, prefix == "label_"), len(factor.Values)); !found {
				return Info{}, nil, false
			}
		}
		if !found {
			return Info{}, nil, false
		}
	}
	if length != info.Len {
		info.About = "A part of Shapes3D: a room with an object and a camera that orbits it."
	}
	info.Len, info.Complete = length, inGridOrder(info.Sizes(), labels, length)
	if info.Complete {
		labels = nil
	} else {
		info.Note = "Images are in the order of the files, which differs from that of 3dshapes.h5."
	}
	return info, labels, known == len(columns)
}

// shapes3DValue returns a function from class to the entry of a factor's column: the class itself, or its value.
func shapes3DValue(factor int, class bool) func(class int) float64 {
	if class {
		return func(class int) float64 { return float64(class) }
	}
	return shapes3dValues[factor]
}

// classesOf writes the class of every value of a column to every f-th element of dst. It returns false if a value matches no class.
func classesOf(dst []uint16, f int, values []string, value func(class int) float64, classes int) bool {
	known := map[string]uint16{}
	for n, text := range values {
		class, seen := known[text]
		if !seen {
			c, ok := nearest(text, value, classes)
			if !ok {
				return false
			}
			class = uint16(c)
			known[text] = class
		}
		dst[n*f] = class
	}
	return true
}

// nearest returns the class whose value equals a text, up to the rounding of 32-bit floats.
func nearest(text string, value func(class int) float64, classes int) (int, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, false
	}
	for class := range classes {
		if math.Abs(v-value(class)) < 1e-3 {
			return class, true
		}
	}
	return 0, false
}

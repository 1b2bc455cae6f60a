package data

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// shapes3DOf recognises 3D Shapes by its columns of labels, as TensorFlow Datasets and the copies made from it have them: of each
// factor a column label_floor_hue with classes, or value_floor_hue or floor_hue with values, or both. Rows may be a part of the set
// and in any order. ok is false where a column is missing, says something else, or is left over.
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
				continue // the column before says it
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
		info.About = "A part of 3D Shapes: a room, an object, a camera that turns around it."
	}
	info.Len, info.Complete = length, inGridOrder(info.Sizes(), labels, length)
	if info.Complete {
		labels = nil
	} else {
		info.Note = "Its images are in the order of the files, which is not that of 3dshapes.h5."
	}
	return info, labels, known == len(columns)
}

// shapes3DValue is what a column of a factor has for a class: the class itself, or its value.
func shapes3DValue(factor int, class bool) func(class int) float64 {
	if class {
		return func(class int) float64 { return float64(class) }
	}
	return shapes3dValues[factor]
}

// classesOf writes the class of every value of a column to each f-th place of dst; false where a value is none.
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

// nearest is the class whose value a text is, but for the rounding of 32-bit floats.
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

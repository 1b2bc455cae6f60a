package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/format/hdf5"
	"slotscope/model/format/npz"
)

// arraysFormat reads images, and labels where there are any, from a visitor's own NumPy or HDF5 file.
var arraysFormat = Format{
	Name: "NumPy (.npz, .npy) and HDF5 files of images",
	Match: func(path string, head []byte) bool {
		return bytes.HasPrefix(head, []byte(hdf5.Magic)) || bytes.HasPrefix(head, []byte("\x93NUMPY")) ||
			slices.Contains([]string{".npz", ".npy", ".h5", ".hdf5"}, strings.ToLower(filepath.Ext(path)))
	},
	Open: func(ctx context.Context, path string) (Source, error) {
		f, err := openArrays(path)
		if err != nil {
			return nil, err
		}
		source, err := openOwnArrays(ctx, path, f)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		return source, nil
	},
}

// Names that images, labels and the names of label columns are looked for under, the first that is there.
var (
	imageNames  = []string{"images", "imgs", "x", "data", ""}
	labelNames  = []string{"labels", "latents_classes", "latents/classes", "classes", "factors", "y"}
	columnNames = []string{"factor_names", "label_names", "latents_names"}
)

func openOwnArrays(ctx context.Context, path string, f arrays) (Source, error) {
	images, err := ownImages(path, f)
	if err != nil {
		return nil, err
	}
	fr, note, err := frameOf(ctx, images)
	if err != nil {
		return nil, err
	}
	columns, err := ownLabels(f, images.Shape[0])
	if err != nil {
		return nil, err
	}
	info := Info{Note: strings.TrimSpace(note + " " + fit(fr.h, fr.w)), About: fmt.Sprintf("The images of %s.", filepath.Base(path))}
	var labels []uint16
	if info.Factors, labels, info.Complete, err = classify(columns, images.Shape[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newArraySource(info, labels, images, fr, f), nil
}

// first finds the first array that is there under one of some names; nil where none is.
func first(f arrays, names []string) (*array, error) {
	for _, name := range names {
		a, err := f.array(name)
		if err == nil || !errors.Is(err, model.ErrNotFound) {
			return a, err
		}
	}
	return nil, nil
}

// ownImages finds the array of images: by name, or because it is the only one that can be.
func ownImages(path string, f arrays) (*array, error) {
	if a, err := first(f, imageNames); a != nil || err != nil {
		return a, err
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var found []*array
	for _, name := range names {
		if a, err := f.array(name); err == nil && (len(a.Shape) == 3 || len(a.Shape) == 4) {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s: there is no array named images, and %d of its arrays (%s) might be meant; name it images",
			path, len(found), strings.Join(names, ", "))
	}
	return found[0], nil
}

// frameOf says how pictures lie in an array, by its shape, and what its numbers mean, by its type and its first rows, or by as many
// as it takes to tell bytes from bits. The note says what a reader should know of it.
func frameOf(ctx context.Context, a *array) (frame, string, error) {
	f := frame{size: a.Size}
	channels := func(c int) bool { return c == 1 || c == 3 || c == 4 }
	switch s := a.Shape; {
	case len(s) == 3:
		f.h, f.w, f.c = s[1], s[2], 1
	case len(s) == 4 && channels(s[3]):
		f.h, f.w, f.c = s[1], s[2], s[3]
	case len(s) == 4 && channels(s[1]):
		f.c, f.h, f.w, f.planar = s[1], s[2], s[3], true
	default:
		return f, "", fmt.Errorf("%s: its shape %v is not that of images, [n, h, w], [n, h, w, c] or [n, c, h, w] with c 1, 3 or 4", a.where, s)
	}
	if a.Shape[0] == 0 || f.h == 0 || f.w == 0 || f.h > maxPixels/f.w {
		return f, "", fmt.Errorf("%s: an array of shape %v is no set of images", a.where, a.Shape)
	}
	a.block = max(1, min(a.block, (64<<20)/a.rowBytes()))
	least, most, err := rangeOf(a)
	if err == nil && a.Kind == npz.Uint && a.Size == 1 && most <= 1 {
		most, err = brightest(ctx, a)
	}
	if err != nil {
		return f, "", err
	}
	note, err := f.setLevel(a, least, most)
	if err != nil {
		return f, "", fmt.Errorf("%s: %w", a.where, err)
	}
	return f, note, nil
}

// rangeOf is the least and the largest number among the first rows.
func rangeOf(a *array) (least, most float64, err error) {
	get, err := a.Decoder()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", a.where, err)
	}
	rows, err := a.rows()
	if err != nil {
		return 0, 0, err
	}
	if c, ok := rows.(io.Closer); ok {
		defer c.Close()
	}
	b := make([]byte, min(a.block, a.Shape[0])*a.rowBytes())
	if err := rows.Read(b, 0); err != nil {
		return 0, 0, err
	}
	least, most = get(b), get(b)
	for ; len(b) > 0; b = b[a.Size:] {
		v := get(b)
		least, most = min(least, v), max(most, v)
	}
	return least, most, nil
}

var errBright = errors.New("a byte above 1 was found")

// brightest is a byte above 1 where an array of bytes holds one, however dark its first rows are, and 1 where it holds none.
func brightest(ctx context.Context, a *array) (float64, error) {
	most := byte(1)
	err := a.blocks(func(_ int, rows []byte) error {
		if most = max(most, slices.Max(rows)); most > 1 {
			return errBright
		}
		return ctx.Err()
	})
	if errors.Is(err, errBright) {
		err = nil
	}
	return float64(most), err
}

// setLevel chooses how bright a number is.
func (f *frame) setLevel(a *array, least, most float64) (note string, err error) {
	get, err := a.Decoder()
	if err != nil {
		return "", err
	}
	switch {
	case a.Kind == npz.Uint && a.Size == 1 && most > 1:
		return "", nil
	case a.Kind == npz.Bool || a.Kind == npz.Uint && a.Size == 1 || a.Kind == npz.Float && least >= 0 && most <= 1:
		f.level, f.number = func(b []byte) byte { return unit(get(b)) }, get
		return "Numbers from 0 to 1 become brightnesses from 0 to 255.", nil
	case a.Kind == npz.Float:
		return "", fmt.Errorf("its numbers go from %v to %v; images of floats are read where they lie between 0 and 1", least, most)
	}
	return "", fmt.Errorf("images of %s are not read; uint8, bool and floats between 0 and 1 are", a.DType())
}

// ownLabels reads the columns of labels, none where the file has none.
func ownLabels(f arrays, length int) ([]column, error) {
	a, err := first(f, labelNames)
	if a == nil || err != nil {
		return nil, err
	}
	if len(a.Shape) < 1 || len(a.Shape) > 2 || a.Shape[0] != length {
		return nil, fmt.Errorf("%s has shape %v, where %d images ask for [%d, factors]", a.where, a.Shape, length, length)
	}
	numbers, err := a.numbers()
	if err != nil {
		return nil, err
	}
	width := len(numbers) / length
	if err := checkNumbers(a, numbers, width); err != nil {
		return nil, err
	}
	names, err := namesOfColumns(f, width)
	if err != nil {
		return nil, err
	}
	columns := make([]column, width)
	for k := range columns {
		columns[k] = column{names[k], make([]string, length)}
		for n := range length {
			columns[k].values[n] = strconv.FormatFloat(numbers[n*width+k], 'g', -1, 64)
		}
	}
	return columns, nil
}

// checkNumbers refuses labels that are no classes: NaN and infinities, and whole numbers of which two may look alike.
func checkNumbers(a *array, numbers []float64, width int) error {
	const told = 1 << 53 // up to which float64 tells whole numbers apart
	for i, v := range numbers {
		switch whole := a.Kind != npz.Float && a.Size == 8; {
		case math.IsNaN(v), math.IsInf(v, 0):
			return fmt.Errorf("%s: row %d, column %d is %v; labels are finite numbers", a.where, i/width, i%width, v)
		case whole && math.Abs(v) >= told:
			return fmt.Errorf("%s: row %d, column %d is about %.0f; labels from %d on are not told apart", a.where, i/width, i%width, v, int64(told))
		}
	}
	return nil
}

// namesOfColumns reads the names of factors from an array of text, or numbers them.
func namesOfColumns(f arrays, width int) ([]string, error) {
	if n, ok := f.(npzArrays); ok {
		for _, name := range columnNames {
			a, err := n.Array(name)
			if err != nil {
				continue
			}
			names, err := a.Strings()
			if err != nil || len(names) != width {
				return nil, fmt.Errorf("%s: array %q does not name the %d columns of labels: %v", n.path, name, width, errors.Join(err))
			}
			return names, nil
		}
	}
	names := make([]string, width)
	for k := range names {
		names[k] = "factor_" + strconv.Itoa(k)
	}
	return names, nil
}

package data

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"slotscope/model"
)

// Orders of the axes of images: n images, h rows, w columns, c channels, the last axis fastest.
var (
	usualAxes = []string{"nhw", "nhwc", "nchw"}
	// matlabAxes are those of files in which the first axis is fastest, read in reverse: MATLAB's own h × w × c × n first, then arrays
	// that Python programs wrote as n × h × w × c or n × c × h × w, and those that were not reversed.
	matlabAxes = []string{"nwh", "whn", "ncwh", "cwhn", "whcn", "nhwc"}
)

// axesOf returns the order of the axes of some images: the requested one, or the likeliest. labelled reports whether a number of images
// agrees with other arrays of the file.
func axesOf(a *array, asked string, labelled func(n int) bool) (string, error) {
	if asked != "" {
		return askedAxes(a, asked)
	}
	usual := usualAxes
	if a.matlab {
		usual = matlabAxes
	}
	fits := slices.DeleteFunc(slices.Clone(usual), func(axes string) bool { return a.fits(axes) != nil })
	if len(fits) == 0 {
		return "", fmt.Errorf("%s: shape %v is not a shape of images; use [n, h, w], [n, h, w, c] or [n, c, h, w] with c = 1, 3 or 4, or name the axes in the option orientation",
			a.where, a.shown())
	}
	if !a.matlab {
		return fits[0], nil
	}
	return slices.MaxFunc(fits, func(x, y string) int { // of equals the first
		return cmp.Or(compare(labelled(a.length(x, 'n')), labelled(a.length(y, 'n'))), compare(a.length(x, 'h') == a.length(x, 'w'), a.length(y, 'h') == a.length(y, 'w')))
	}), nil
}

// compare orders true after false.
func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// askedAxes checks a user's order of axes, which is in the order of the file's own language.
func askedAxes(a *array, asked string) (string, error) {
	axes := strings.ToLower(strings.Join(strings.FieldsFunc(asked, func(r rune) bool { return strings.ContainsRune(" ,×", r) }), ""))
	sorted := []byte(axes)
	slices.Sort(sorted)
	if want := map[int]string{3: "hnw", 4: "chnw"}[len(a.Shape)]; string(sorted) != want {
		letters := "n (images), h (rows) and w (columns)"
		if len(a.Shape) == 4 {
			letters = "n (images), h (rows), w (columns) and c (channels)"
		}
		return "", model.Invalid{"orientation": fmt.Sprintf("%q does not name the %d axes of %s; write each of %s once, in the order of its shape %v", asked, len(a.Shape), a.where, letters, a.shown())}
	}
	if a.matlab {
		axes = backwards(axes)
	}
	if err := a.fits(axes); err != nil {
		return "", model.Invalid{"orientation": err.Error()}
	}
	return axes, nil
}

// fits returns an error unless the array can have these axes.
func (a *array) fits(axes string) error {
	if len(axes) != len(a.Shape) {
		return errors.New("another number of axes")
	}
	if c := a.length(axes, 'c'); c != 1 && c != 3 && c != 4 {
		return fmt.Errorf("%s has shape %v, so there would be %d channels; images have 1, 3 or 4", a.where, a.shown(), c)
	}
	return nil
}

// length returns the length of an axis, or 1 if there is none.
func (a *array) length(axes string, letter byte) int {
	if i := strings.IndexByte(axes, letter); i >= 0 {
		return a.Shape[i]
	}
	return 1
}

// shown returns the shape as programs of the file's own language give it.
func (a *array) shown() []int {
	shape := slices.Clone(a.Shape)
	if a.matlab {
		slices.Reverse(shape)
	}
	return shape
}

func backwards(axes string) string {
	b := []byte(axes)
	slices.Reverse(b)
	return string(b)
}

// alongRows returns labels whose first axis has a row for each of n images. MATLAB keeps them in rows or in columns.
func (a *array) alongRows(n int) *array {
	if !a.matlab || len(a.Shape) != 2 {
		return a
	}
	b := *a
	if b.Shape[1] == n {
		b = *a.moved(1)
	}
	b.matlab = false
	if b.Shape[1] == 1 {
		b.Shape = b.Shape[:1]
	}
	return &b
}

// maxMoved limits the bytes of an array that is kept in memory to move an axis, as npz does for Fortran order.
const maxMoved = 1 << 30

// moved returns the array with one of its axes moved to the front. Its rows are read from memory.
func (a *array) moved(axis int) *array {
	b := *a
	b.Shape = slices.Insert(without(a.Shape, axis), 0, a.Shape[axis])
	b.at, b.verify = nil, nil
	r := movedRows{n: a.Shape[axis], inner: a.Size, outer: 1}
	for _, s := range a.Shape[axis+1:] {
		r.inner *= s
	}
	for _, s := range a.Shape[:axis] {
		r.outer *= s
	}
	whole := sync.OnceValues(a.whole)
	b.rows = func() (rowReader, error) {
		all, err := whole()
		return movedRows{all, r.n, r.inner, r.outer}, err
	}
	return &b
}

// whole reads the bytes of all elements.
func (a *array) whole() ([]byte, error) {
	if size := int64(a.Len()) * int64(a.Size); size > maxMoved {
		return nil, fmt.Errorf("%s has %s, which is too much to reorder (limit %s); save it with the images along the slowest axis", a.where, Bytes(size), Bytes(maxMoved))
	}
	var all bytes.Buffer // grows with the actual data
	err := a.blocks(func(_ int, rows []byte) error {
		all.Write(rows)
		return nil
	})
	return all.Bytes(), err
}

// movedRows reads rows along an axis that is not the first: [outer, n, inner], inner in bytes.
type movedRows struct {
	all             []byte
	n, inner, outer int
}

func (r movedRows) Read(dst []byte, first int) error {
	if (first+len(dst)/(r.inner*r.outer))*r.inner*r.outer > len(r.all) {
		return io.ErrUnexpectedEOF
	}
	for ; len(dst) > 0; first++ {
		for o := range r.outer {
			dst = dst[copy(dst, r.all[(o*r.n+first)*r.inner:][:r.inner]):]
		}
	}
	return nil
}

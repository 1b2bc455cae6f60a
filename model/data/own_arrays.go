package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/format/hdf5"
	"slotscope/model/format/npz"
)

// arraysFormat reads images, and labels where there are any, from a visitor's own NumPy, HDF5 or MATLAB file.
var arraysFormat = Format{
	Name: "NumPy (.npz, .npy) and HDF5 files of images",
	Match: func(path string, head []byte) bool {
		return bytes.HasPrefix(head, []byte(hdf5.Magic)) || bytes.HasPrefix(head, []byte("\x93NUMPY")) ||
			slices.Contains([]string{".npz", ".npy", ".h5", ".hdf5"}, strings.ToLower(filepath.Ext(path)))
	},
	Arrays: true,
	Open: func(ctx context.Context, path string, r Reading) (Source, error) {
		f, err := openArrays(path)
		if err != nil {
			return nil, err
		}
		source, err := openOwnArrays(ctx, path, f, r)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		return source, nil
	},
}

// Names that images, labels and the names of label columns are looked for under, the first that is there, in any case; labels and names
// beside the images first, then at the top of the file.
var (
	imageNames  = []string{"images", "imgs", "image", "x", "data", ""}
	labelNames  = []string{"labels", "latents_classes", "latents/classes", "classes", "factors", "label", "y", "targets"}
	columnNames = []string{"factor_names", "label_names", "latents_names"}
)

// Reading says how the arrays of a visitor's own file are read, where that does not follow from them.
type Reading struct {
	Images string `json:"images,omitempty"` // the name of the array of images
	Labels string `json:"labels,omitempty"` // the names of arrays of labels, commas between; "none" for none
	// Scale says which numbers are black and white, as in "0..255" or "-1..1"; empty to find out.
	Scale string `json:"scale,omitempty"`
}

// ownFile is a visitor's own file of arrays.
type ownFile struct {
	arrays
	path string
	all  []*array // those that can be read, in order of name
	bad  []string // names of others
	used []string // roles of arrays, for people: "images: x, 100 × 64 × 64 of uint8"
	kept map[string]bool
}

func openOwnArrays(ctx context.Context, path string, f arrays, r Reading) (Source, error) {
	own, err := newOwnFile(path, f)
	if err != nil {
		return nil, err
	}
	images, err := own.images(r.Images)
	if err != nil {
		return nil, err
	}
	fr, note, err := frameOf(ctx, images, r.Scale)
	if err != nil {
		return nil, err
	}
	columns, remark, err := own.labels(r.Labels, images)
	if err != nil {
		return nil, err
	}
	notes := []string{note, fit(fr.h, fr.w), remark}
	unused := own.unused()
	if len(unused) > 0 {
		notes = append(notes, "Arrays not used: "+listSome(unused, 10)+".")
	}
	info := Info{Note: strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), " "), About: fmt.Sprintf("The images of %s.", filepath.Base(path))}
	var labels []uint16
	if info.Factors, labels, info.Complete, err = classify(columns, images.Shape[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newArraySource(info, labels, images, fr, f, Contents{own.used, unused}), nil
}

// newOwnFile opens every array that can be opened.
func newOwnFile(path string, f arrays) (*ownFile, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	own := &ownFile{arrays: f, path: path, kept: map[string]bool{}}
	for _, name := range names {
		if a, err := f.array(name); err == nil {
			own.all = append(own.all, a)
		} else {
			own.bad = append(own.bad, name)
		}
	}
	return own, nil
}

// keep notes what an array is used for.
func (f *ownFile) keep(role string, a *array) *array {
	f.used = append(f.used, role+": "+a.String())
	f.kept[a.name] = true
	return a
}

// unused are the arrays that are not read, for people.
func (f *ownFile) unused() []string {
	var left []string
	for _, a := range f.all {
		if !f.kept[a.name] {
			left = append(left, a.String())
		}
	}
	return append(left, f.bad...)
}

// listSome joins at most n of some texts.
func listSome(texts []string, n int) string {
	if len(texts) > n {
		return strings.Join(texts[:n], "; ") + fmt.Sprintf("; and %d more", len(texts)-n)
	}
	return strings.Join(texts, "; ")
}

// find is the first array of one of some names below one of some folders, in any case; nil where there is none.
func (f *ownFile) find(folders, names []string) *array {
	for _, folder := range folders {
		for _, name := range names {
			for _, a := range f.all {
				if strings.EqualFold(a.name, folder+name) {
					return a
				}
			}
		}
	}
	return nil
}

// named is the array of a name that a visitor gave.
func (f *ownFile) named(option, name string) (*array, error) {
	a, err := f.array(strings.Trim(name, "/"))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
	return a, nil
}

func (a *array) mayBeImages() bool { return a.text == nil && (len(a.Shape) == 3 || len(a.Shape) == 4) }

// images finds the array of images: as it was named, by a usual name, or because it is the only one that can be.
func (f *ownFile) images(asked string) (*array, error) {
	if asked != "" {
		a, err := f.named("images", asked)
		if err != nil {
			return nil, err
		}
		return f.keep("images", a), nil
	}
	if a := f.find([]string{""}, imageNames); a != nil && a.mayBeImages() {
		return f.keep("images", a), nil
	}
	var found, usual []*array
	for _, a := range f.all {
		if !a.mayBeImages() {
			continue
		}
		found = append(found, a)
		if slices.ContainsFunc(imageNames, func(name string) bool { return strings.EqualFold(path.Base(a.name), name) }) {
			usual = append(usual, a)
		}
	}
	switch {
	case len(usual) == 1:
		return f.keep("images", usual[0]), nil
	case len(found) == 1:
		return f.keep("images", found[0]), nil
	}
	names := make([]string, len(found))
	for i, a := range found {
		names[i] = a.String()
	}
	if len(found) == 0 {
		for _, name := range f.bad { // what is named as images are may say why it cannot be read
			if slices.ContainsFunc(imageNames, func(usual string) bool { return strings.EqualFold(path.Base(name), usual) }) {
				_, err := f.array(name)
				return nil, err
			}
		}
		return nil, fmt.Errorf("%s: no array has the three or four axes of images; it holds %s", f.path, listSome(f.unused(), 10))
	}
	return nil, fmt.Errorf("%s: %d arrays can be the images (%s); choose one with --images NAME, and its labels with --labels NAME", f.path, len(found), listSome(names, 10))
}

// frameOf says how pictures lie in an array, by its shape, and what its numbers mean, by its type and its first rows, or by as many
// as it takes to tell bytes from bits. The note says what a reader should know of it.
func frameOf(ctx context.Context, a *array, scale string) (frame, string, error) {
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
		return f, "", fmt.Errorf("%s: an array of shape %v is not a set of images", a.where, a.Shape)
	}
	a.block = max(1, min(a.block, (64<<20)/a.rowBytes()))
	note, err := f.setScale(ctx, a, scale)
	return f, note, err
}

// setScale says how bright a number is, by what a visitor said or by all numbers of the array. The note says what is assumed.
func (f *frame) setScale(ctx context.Context, a *array, scale string) (note string, err error) {
	get, err := a.Decoder()
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.where, err)
	}
	bytes := a.Kind == npz.Uint && a.Size == 1
	var low, high float64
	switch {
	case scale != "":
		if low, high, err = parseScale(scale); err != nil {
			return "", err
		}
	case a.Kind == npz.Bool:
		high = 1
	case bytes:
		if high, err = brightest(ctx, a); err != nil {
			return "", err
		}
		if high > 1 {
			high = 255
		}
	default:
		if low, high, err = usualScale(ctx, a, get); err != nil {
			return "", err
		}
	}
	if bytes && low == 0 && high == 255 {
		return "", nil
	}
	f.low, f.high = low, high
	f.level = func(b []byte) byte { return unit((get(b) - low) / (high - low)) }
	f.number = get
	return fmt.Sprintf("Numbers from %v to %v become brightnesses from 0 to 255.", low, high), nil
}

// parseScale reads LOW..HIGH.
func parseScale(text string) (low, high float64, err error) {
	a, b, found := strings.Cut(text, "..")
	low, errLow := strconv.ParseFloat(strings.TrimSpace(a), 64)
	high, errHigh := strconv.ParseFloat(strings.TrimSpace(b), 64)
	if !found || errors.Join(errLow, errHigh) != nil || !(low < high) || math.IsInf(high-low, 0) {
		return 0, 0, model.Invalid{"scale": fmt.Sprintf("%q is not a range of brightness; write LOW..HIGH, such as 0..255 or -1..1", text)}
	}
	return low, high, nil
}

// usualScale is the range in which all numbers of an array lie, of those that are usual for images.
func usualScale(ctx context.Context, a *array, get func([]byte) float64) (low, high float64, err error) {
	least, most, err := rangeOf(ctx, a, get)
	if err != nil {
		return 0, 0, err
	}
	whole := a.Kind != npz.Float
	switch { // between these ranges it could be either, or images with a few numbers astray
	case least >= 0 && most <= 1:
		return 0, 1, nil
	case least >= -1 && least <= -0.5 && most <= 1 && !whole:
		return -1, 1, nil
	case least >= 0 && most <= 255 && (whole || most >= 16):
		return 0, 255, nil
	case least >= 0 && most <= 65535 && most > 32767 && whole:
		return 0, 65535, nil
	}
	return 0, 0, fmt.Errorf("%s: its numbers go from %v to %v; say which are black and white with --scale LOW..HIGH, such as 0..255", a.where, least, most)
}

// rangeOf is the least and the largest number of an array.
func rangeOf(ctx context.Context, a *array, get func([]byte) float64) (least, most float64, err error) {
	least, most = math.Inf(1), math.Inf(-1)
	err = a.blocks(func(first int, rows []byte) error {
		for ; len(rows) > 0; rows = rows[a.Size:] {
			v := get(rows)
			if math.IsNaN(v) {
				return fmt.Errorf("%s: it holds NaN near row %d; brightness must be a number", a.where, first)
			}
			least, most = min(least, v), max(most, v)
		}
		return ctx.Err()
	})
	return least, most, err
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

// labels reads the columns of labels of some images, none where the file has none; the remark says what a reader should know.
func (f *ownFile) labels(asked string, images *array) (columns []column, remark string, err error) {
	if asked == "none" {
		return nil, "", nil
	}
	folders := []string{strings.TrimSuffix(images.name, path.Base("/"+images.name)), ""}
	var found []*array
	if asked != "" {
		for name := range strings.SplitSeq(asked, ",") {
			a, err := f.named("labels", strings.TrimSpace(name))
			if err != nil {
				return nil, "", err
			}
			found = append(found, a)
		}
	} else if a, err := f.usualLabels(folders, images); err != nil {
		return nil, "", err
	} else if a != nil {
		found = []*array{a}
	}
	length := images.Shape[0]
	for _, a := range found {
		f.keep("labels", a)
		if len(a.Shape) < 1 || len(a.Shape) > 2 || a.Shape[0] != length {
			return nil, "", fmt.Errorf("%s has shape %v; the labels of %d images have the shape [%d] or [%d, factors]", a.where, a.Shape, length, length, length)
		}
		width := 1
		if len(a.Shape) == 2 {
			width = a.Shape[1]
		}
		var names []string
		if len(found) == 1 {
			if names, remark, err = f.columnNames(folders, width); err != nil {
				return nil, "", err
			}
		}
		for k := range width {
			switch usual := slices.Contains(labelNames, strings.ToLower(path.Base(a.name))) || strings.HasPrefix(a.name, "arr_"); {
			case names != nil:
			case len(a.Shape) == 1 && (len(found) > 1 || !usual):
				names = []string{path.Base(a.name)}
			case len(found) > 1:
				names = append(names, path.Base(a.name)+"_"+strconv.Itoa(k))
				continue
			default:
				names = numberedFactors(width)
			}
		}
		more, err := a.columns(names)
		if err != nil {
			return nil, "", err
		}
		columns = append(columns, more...)
	}
	return columns, remark, nil
}

func numberedFactors(n int) []string {
	names := make([]string, n)
	for k := range names {
		names[k] = "factor_" + strconv.Itoa(k)
	}
	return names
}

// usualLabels finds labels by their name, or the only other array with a row or a number for every image; nil where there is none.
func (f *ownFile) usualLabels(folders []string, images *array) (*array, error) {
	if a := f.find(folders, labelNames); a != nil {
		return a, nil
	}
	for _, folder := range folders {
		for _, name := range labelNames {
			if slices.ContainsFunc(f.bad, func(bad string) bool { return strings.EqualFold(bad, folder+name) }) {
				_, err := f.array(folder + name)
				return nil, err
			}
		}
	}
	var found []*array
	for _, a := range f.all {
		if a != images && len(a.Shape) > 0 && len(a.Shape) <= 2 && a.Shape[0] == images.Shape[0] {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return nil, nil
	}
	return found[0], nil
}

// columns are the values of each of the columns of labels, under some names.
func (a *array) columns(names []string) ([]column, error) {
	length, width := a.Shape[0], len(names)
	columns := make([]column, width)
	for k := range columns {
		columns[k] = column{names[k], make([]string, length)}
	}
	if a.text != nil {
		texts, err := a.text()
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			if text == "" {
				return nil, fmt.Errorf("%s: row %d, column %d is empty", a.where, i/width, i%width)
			}
			columns[i%width].values[i/width] = text
		}
		return columns, nil
	}
	numbers, err := a.numbers()
	if err != nil {
		return nil, err
	}
	if err := checkNumbers(a, numbers, width); err != nil {
		return nil, err
	}
	bits := 64
	if a.Kind == npz.Float && a.Size < 8 {
		bits = 32 // as short as such a number may be written
	}
	for i, v := range numbers {
		columns[i%width].values[i/width] = strconv.FormatFloat(v, 'g', -1, bits)
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
			return fmt.Errorf("%s: row %d, column %d is about %.0f; labels from %d on lose precision as float64", a.where, i/width, i%width, v, int64(told))
		}
	}
	return nil
}

// columnNames reads the names of factors from an array of text; nil where there is none. The remark says why one is not used.
func (f *ownFile) columnNames(folders []string, width int) (names []string, remark string, err error) {
	if a := f.find(folders, columnNames); a != nil && a.text != nil {
		f.keep("names of factors", a)
		names, err := a.text()
		if err == nil && len(names) != width {
			err = fmt.Errorf("%s has %d names for the %d columns of labels", a.where, len(names), width)
		}
		return names, "", err
	}
	for _, name := range columnNames {
		for _, bad := range f.bad {
			if _, err := f.array(bad); err != nil && strings.EqualFold(path.Base(bad), name) {
				return nil, fmt.Sprintf("Factors are numbered, since their names cannot be read: %v.", err), nil
			}
		}
	}
	return nil, "", nil
}

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

// arraysFormat reads images and optional labels from a user's own NumPy, HDF5 or MATLAB file.
var arraysFormat = Format{
	Name:   "NumPy (.npz, .npy), HDF5 and MATLAB (.mat) files of images",
	Former: []string{"NumPy (.npz, .npy) and HDF5 files of images"},
	Match: func(path string, head []byte) bool {
		return bytes.HasPrefix(head, []byte(hdf5.Magic)) || bytes.HasPrefix(head, []byte("\x93NUMPY")) ||
			slices.Contains([]string{".npz", ".npy", ".h5", ".hdf5", ".mat"}, strings.ToLower(filepath.Ext(path)))
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

// Names to look for, in order and ignoring case, of the arrays of images, labels and label column names. Labels and column names are
// looked up next to the images first, then at the top of the file.
var (
	imageNames  = []string{"images", "imgs", "image", "x", "data", ""}
	labelNames  = []string{"labels", "latents_classes", "latents/classes", "classes", "factors", "label", "y", "targets"}
	columnNames = []string{"factor_names", "label_names", "latents_names"}
)

// Reading holds options for reading a user's own file of arrays, for what the file itself does not determine.
type Reading struct {
	Images string `json:"images,omitempty"` // the name of the array of images
	Labels string `json:"labels,omitempty"` // comma-separated names of arrays of labels; "none" for no labels
	// Scale holds the numbers for black and white, as in "0..255" or "-1..1"; empty to detect them.
	Scale string `json:"scale,omitempty"`
	// Orientation is the order of the axes of the images in their shape, as in "nhwc": n images, h rows, w columns, c channels; empty to
	// detect it.
	Orientation string `json:"orientation,omitempty"`
}

// ownFile is a user's own file of arrays.
type ownFile struct {
	arrays
	path string
	all  []*array // readable arrays, in order of name
	bad  []string // names of unreadable arrays
	used []string // arrays and their roles, for users: "images: x, 100 × 64 × 64 of uint8"
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
	axes, err := axesOf(images, r.Orientation, own.labelled)
	if err != nil {
		return nil, err
	}
	holds := Contents{Axes: axes}
	if images.matlab {
		holds.Axes = backwards(axes)
	}
	if axis := strings.IndexByte(axes, 'n'); axis > 0 {
		images, axes = images.moved(axis), "n"+axes[:axis]+axes[axis+1:]
	}
	fr, note, err := frameOf(ctx, images, axes, r.Scale)
	if err != nil {
		return nil, err
	}
	columns, remark, err := own.labels(r.Labels, images)
	if err != nil {
		return nil, err
	}
	holds.Scaling = sentences(note, fit(fr.h, fr.w))
	if remark != "" {
		holds.Remarks = []string{remark}
	}
	notes := []string{holds.Scaling, remark}
	holds.Used, holds.Unused = own.used, own.unused()
	if len(holds.Unused) > 0 {
		notes = append(notes, "Arrays not used: "+listSome(holds.Unused, 10)+".")
	}
	info := Info{Note: sentences(notes...), About: fmt.Sprintf("The images of %s.", filepath.Base(path))}
	var labels []uint16
	if info.Factors, labels, info.Complete, err = classify(columns, images.Shape[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newArraySource(info, labels, images, fr, f, holds), nil
}

// sentences joins sentences, some of which may be empty.
func sentences(all ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" }), " ")
}

// newOwnFile opens every readable array.
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

// keep records the role of an array.
func (f *ownFile) keep(role string, a *array) *array {
	f.used = append(f.used, role+": "+a.String())
	f.kept[a.name] = true
	return a
}

// unused lists the unused arrays, for users.
func (f *ownFile) unused() []string {
	var left []string
	for _, a := range f.all {
		if !f.kept[a.name] {
			left = append(left, a.String())
		}
	}
	return append(left, f.bad...)
}

// listSome joins at most n texts and counts the rest.
func listSome(texts []string, n int) string {
	if len(texts) > n {
		return strings.Join(texts[:n], "; ") + fmt.Sprintf("; and %d more", len(texts)-n)
	}
	return strings.Join(texts, "; ")
}

// find returns the first array with one of the names in one of the folders, ignoring case, or nil if there is none.
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

// named returns the array that a user named in an option.
func (f *ownFile) named(option, name string) (*array, error) {
	a, err := f.array(strings.Trim(name, "/"))
	if err != nil {
		return nil, model.Invalid{option: err.Error()}
	}
	return a, nil
}

// labelled reports whether an array of one or two axes, other than a single number, has a row or a column of n.
func (f *ownFile) labelled(n int) bool {
	return slices.ContainsFunc(f.all, func(a *array) bool { return len(a.Shape) <= 2 && a.Len() > 1 && slices.Contains(a.Shape, n) })
}

func (a *array) mayBeImages() bool { return a.text == nil && (len(a.Shape) == 3 || len(a.Shape) == 4) }

// images finds the array of images: the requested one, one with a usual name, or the only one with a suitable shape.
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
		for _, name := range f.bad { // explain why an array with a usual name cannot be read
			if slices.ContainsFunc(imageNames, func(usual string) bool { return strings.EqualFold(path.Base(name), usual) }) {
				_, err := f.array(name)
				return nil, err
			}
		}
		return nil, fmt.Errorf("%s: no array of images was found (an array with 3 or 4 axes); the file holds %s", f.path, listSome(f.unused(), 10))
	}
	return nil, model.Invalid{"images": fmt.Sprintf("%d arrays of %s could be the images (%s); name one, and its labels in the option labels", len(found), f.path, listSome(names, 10))}
}

// frameOf derives the layout of images from the order of their axes, n first, and their range of brightness from the type and numbers of
// the array unless scale is given. note tells users how numbers are converted.
func frameOf(ctx context.Context, a *array, axes, scale string) (frame, string, error) {
	f := frame{h: a.length(axes, 'h'), w: a.length(axes, 'w'), c: a.length(axes, 'c'), axes: axes[1:], size: a.Size}
	if a.Shape[0] == 0 || f.h == 0 || f.w == 0 || f.h > maxPixels/f.w {
		return f, "", fmt.Errorf("%s: shape %v is not usable; there must be at least one image, of 1 to %d pixels", a.where, a.shown(), maxPixels)
	}
	a.block = max(1, min(a.block, (64<<20)/a.rowBytes()))
	note, err := f.setScale(ctx, a, scale)
	return f, note, err
}

// setScale sets the range of brightness, from the user's scale or from the numbers of the array. The note says which range is used.
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
	return fmt.Sprintf("Numbers from %v to %v are mapped to brightness 0 to 255.", low, high), nil
}

// parseScale reads LOW..HIGH.
func parseScale(text string) (low, high float64, err error) {
	a, b, found := strings.Cut(text, "..")
	low, errLow := strconv.ParseFloat(strings.TrimSpace(a), 64)
	high, errHigh := strconv.ParseFloat(strings.TrimSpace(b), 64)
	if !found || errors.Join(errLow, errHigh) != nil || !(low < high) || math.IsInf(high-low, 0) {
		return 0, 0, model.Invalid{"scale": fmt.Sprintf("%q is not a range; write LOW..HIGH, such as 0..255 or -1..1", text)}
	}
	return low, high, nil
}

// usualScale returns the usual range for images that holds all numbers of an array, and fails if that is ambiguous.
func usualScale(ctx context.Context, a *array, get func([]byte) float64) (low, high float64, err error) {
	least, most, err := rangeOf(ctx, a, get)
	if err != nil {
		return 0, 0, err
	}
	whole := a.Kind != npz.Float
	switch { // numbers between these ranges are ambiguous, or a few are outliers
	case least >= 0 && most <= 1:
		return 0, 1, nil
	case least >= -1 && least <= -0.5 && most <= 1 && !whole:
		return -1, 1, nil
	case least >= 0 && most <= 255 && (whole || most >= 16):
		return 0, 255, nil
	case least >= 0 && most <= 65535 && most > 32767 && whole:
		return 0, 65535, nil
	}
	return 0, 0, model.Invalid{"scale": fmt.Sprintf("%s: numbers from %v to %v match no usual range of brightness; give the numbers for black and white, such as 0..255", a.where, least, most)}
}

// rangeOf returns the smallest and the largest number of an array.
func rangeOf(ctx context.Context, a *array, get func([]byte) float64) (least, most float64, err error) {
	least, most = math.Inf(1), math.Inf(-1)
	err = a.blocks(func(first int, rows []byte) error {
		for ; len(rows) > 0; rows = rows[a.Size:] {
			v := get(rows)
			if math.IsNaN(v) {
				return fmt.Errorf("%s: NaN near row %d; replace it, since brightness must be a number", a.where, first)
			}
			least, most = min(least, v), max(most, v)
		}
		return ctx.Err()
	})
	return least, most, err
}

var errBright = errors.New("a byte above 1 was found")

// brightest returns a byte above 1 if an array of bytes holds one anywhere, else 1.
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

// labels reads the columns of labels of some images, or none if the file has none. remark is a note for users.
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
		a = a.alongRows(length)
		if len(a.Shape) < 1 || len(a.Shape) > 2 || a.Shape[0] != length {
			return nil, "", fmt.Errorf("%s has shape %v; labels of %d images must have shape [%d] or [%d, factors]", a.where, a.Shape, length, length, length)
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

// usualLabels finds labels by their name, or the only other array with a row or a number for every image; nil if there is none.
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
		if rows := a.alongRows(images.Shape[0]); a.name != images.name && len(a.Shape) > 0 && len(a.Shape) <= 2 && rows.Shape[0] == images.Shape[0] {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return nil, nil
	}
	return found[0], nil
}

// columns returns the columns of an array of labels under the given names.
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
				return nil, fmt.Errorf("%s: row %d, column %d is empty; every image needs a label", a.where, i/width, i%width)
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
		bits = 32 // for the shortest text of a float32
	}
	for i, v := range numbers {
		columns[i%width].values[i/width] = strconv.FormatFloat(v, 'g', -1, bits)
	}
	return columns, nil
}

// checkNumbers returns an error for labels that cannot be classes: NaN, infinities, and integers too large to be distinct as float64.
func checkNumbers(a *array, numbers []float64, width int) error {
	const told = 1 << 53 // float64 represents all integers up to this
	for i, v := range numbers {
		switch whole := a.Kind != npz.Float && a.Size == 8; {
		case math.IsNaN(v), math.IsInf(v, 0):
			return fmt.Errorf("%s: row %d, column %d is %v; labels must be finite numbers", a.where, i/width, i%width, v)
		case whole && math.Abs(v) >= told:
			return fmt.Errorf("%s: row %d, column %d is about %.0f; integer labels ≥ %d lose precision as float64, so use smaller ones", a.where, i/width, i%width, v, int64(told))
		}
	}
	return nil
}

// columnNames reads the names of factors from an array of text; nil if there is none. remark explains why such an array is not used.
func (f *ownFile) columnNames(folders []string, width int) (names []string, remark string, err error) {
	if a := f.find(folders, columnNames); a != nil && a.text != nil {
		f.keep("names of factors", a)
		names, err := a.text()
		if err == nil && len(names) != width {
			err = fmt.Errorf("%s has %d names for %d columns of labels; give one name per column", a.where, len(names), width)
		}
		return names, "", err
	}
	for _, name := range columnNames {
		for _, bad := range f.bad {
			if _, err := f.array(bad); err != nil && strings.EqualFold(path.Base(bad), name) {
				return nil, fmt.Sprintf("Factors are numbered because their names cannot be read: %v.", err), nil
			}
		}
	}
	return nil, "", nil
}

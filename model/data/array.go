package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/format/hdf5"
	"slotscope/model/format/mat"
	"slotscope/model/format/npz"
)

// rowReader reads whole rows of an array, that is elements along its first axis. Reading in order is fastest.
type rowReader interface {
	Read(dst []byte, first int) error
}

// array is an array in a NumPy, HDF5 or MATLAB file.
type array struct {
	npz.Header
	name  string
	where string // for messages: the file and the array's name in it
	block int    // best number of rows to read at once
	rows  func() (rowReader, error)
	text  func() ([]string, error) // all elements of a text array; nil for numbers
	at    io.ReaderAt              // for random access to rows; nil if they are compressed
	// matlab says that users know the axes in reverse order, since the file has the first axis fastest.
	matlab bool
	// verify compares the array with the checksum of its archive; nil if there is none.
	verify func(ctx context.Context, tell func(done, of int64)) error
}

// String describes the array: "images, 100 × 64 × 64 of uint8".
func (a *array) String() string {
	sizes := make([]string, len(a.Shape))
	for i, s := range a.shown() {
		sizes[i] = strconv.Itoa(s)
	}
	name := a.name
	if name == "" {
		name = "the array"
	}
	return fmt.Sprintf("%s, %s of %s", name, strings.Join(sizes, " × "), a.DType())
}

// rowBytes returns the size of a row in bytes.
func (a *array) rowBytes() int {
	n := a.Size
	for _, s := range a.Shape[1:] {
		n *= s
	}
	return n
}

// arrays is a file of named arrays.
type arrays interface {
	io.Closer
	names() ([]string, error)
	// array returns an array by name; the error wraps model.ErrNotFound if there is none.
	array(name string) (*array, error)
}

// openArrays opens a file of arrays: .npz, .npy, HDF5 or MATLAB, whose version 7.3 is HDF5.
func openArrays(path string) (arrays, error) {
	ext := strings.ToLower(filepath.Ext(path))
	if f, err := hdf5.Open(path); err == nil {
		return hdf5Arrays{f, path, ext == ".mat"}, nil
	} else if ext == ".h5" || ext == ".hdf5" {
		return nil, err
	}
	if ext == ".mat" {
		f, err := mat.Open(path)
		if err != nil {
			return nil, err
		}
		return matArrays{f, path}, nil
	}
	f, err := npz.Open(path)
	if err != nil {
		return nil, err
	}
	return npzArrays{f, path}, nil
}

type hdf5Arrays struct {
	*hdf5.File
	path   string
	matlab bool
}

// names leaves out the datasets in which MATLAB keeps cells and its own data, "#refs#" and "#subsystem#".
func (f hdf5Arrays) names() ([]string, error) {
	names, err := f.Names()
	return slices.DeleteFunc(names, func(name string) bool { return f.matlab && strings.HasPrefix(name, "#") }), err
}

func (f hdf5Arrays) array(name string) (*array, error) {
	d, err := f.Dataset(name)
	if err != nil {
		return nil, err
	}
	a := &array{
		Header: npz.Header{Kind: npz.Kind(d.Kind), Size: d.Size, BigEndian: d.BigEndian, Shape: d.Shape},
		name:   name, where: fmt.Sprintf("%s: dataset %q", f.path, name), block: d.Block(), matlab: f.matlab,
		rows: func() (rowReader, error) { return d.Reader(), nil },
	}
	if d.Kind == hdf5.Varying || d.Kind == 'S' {
		a.Kind, a.text = npz.Bytes, func() ([]string, error) { return d.Strings(npz.MaxValues) }
	}
	return a, nil
}

type matArrays struct {
	*mat.File
	path string
}

func (f matArrays) names() (names []string, err error) {
	for _, a := range f.Arrays {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names, nil
}

func (f matArrays) array(name string) (*array, error) {
	i := slices.IndexFunc(f.Arrays, func(a *mat.Stored) bool { return a.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no array %q: %w", f.path, name, model.ErrNotFound)
	}
	m := f.Arrays[i]
	if m.Err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, m.Err)
	}
	shape := slices.Clone(m.Shape)
	slices.Reverse(shape) // the first axis is the fastest
	a := &array{
		Header: npz.Header{Kind: npz.Kind(m.Kind), Size: m.Size, Shape: shape}, name: name, where: fmt.Sprintf("%s: array %q", f.path, name), block: 256,
		at: m.InPlace(), matlab: true,
	}
	a.rows = func() (rowReader, error) {
		if a.at != nil {
			return placedRows{a}, nil
		}
		return &streamedRows{array: a, open: m.Stream}, nil
	}
	return a, nil
}

type npzArrays struct {
	*npz.File
	path string
}

func (f npzArrays) names() ([]string, error) { return f.Names(), nil }

func (f npzArrays) array(name string) (*array, error) {
	n, err := f.Array(name)
	if err != nil {
		return nil, err
	}
	return ofNPZ(n, f.path), nil
}

// ofNPZ wraps a NumPy array.
func ofNPZ(n *npz.Array, path string) *array {
	a := &array{Header: n.Header, name: n.Name, where: fmt.Sprintf("%s: array %q", path, n.Name), block: 256}
	if n.Name == "" {
		a.where = path
	}
	if n.Kind == npz.Bytes || n.Kind == npz.Unicode {
		a.text = n.Strings
	}
	switch {
	case n.Fortran && len(n.Shape) > 1:
		a.rows = func() (rowReader, error) { return reordered(n) }
	case n.InPlace() != nil:
		a.at, a.verify = n.InPlace(), n.Verify
		a.rows = func() (rowReader, error) { return placedRows{a}, nil }
	default:
		a.rows = func() (rowReader, error) { return &streamedRows{array: a, open: n.Stream}, nil }
	}
	return a
}

// placedRows reads uncompressed rows at their place in the file.
type placedRows struct{ *array }

func (r placedRows) Read(dst []byte, first int) error {
	_, err := r.at.ReadAt(dst, int64(first)*int64(r.rowBytes()))
	if err != nil {
		return fmt.Errorf("%s: reading row %d: %w", r.where, first, err)
	}
	return nil
}

// reordered reads a whole array in Fortran order and converts it to C order.
func reordered(n *npz.Array) (rowReader, error) {
	b, err := n.Elements()
	if err != nil {
		return nil, err
	}
	a := &array{Header: n.Header, at: bytes.NewReader(b)}
	return placedRows{a}, nil
}

// streamedRows decompresses rows in order.
type streamedRows struct {
	*array
	open func() (io.ReadCloser, error)
	r    io.ReadCloser
	next int
}

func (r *streamedRows) Read(dst []byte, first int) error {
	each := r.rowBytes()
	if r.r == nil || first < r.next {
		if err := r.restart(); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(io.Discard, r.r, int64(first-r.next)*int64(each)); err != nil {
		return fmt.Errorf("%s: skipping to row %d: %w", r.where, first, err)
	}
	if _, err := io.ReadFull(r.r, dst); err != nil {
		return fmt.Errorf("%s: reading row %d: %w", r.where, first, err)
	}
	r.next = first + len(dst)/each
	return r.end()
}

func (r *streamedRows) restart() (err error) {
	if r.r != nil {
		_ = r.r.Close()
	}
	r.r, err = r.open()
	r.next = 0
	return err
}

// end reads past the last row, which verifies the checksum.
func (r *streamedRows) end() error {
	if r.next < r.Shape[0] {
		return nil
	}
	n, err := r.r.Read(make([]byte, 1))
	if n != 0 || err != io.EOF {
		return fmt.Errorf("%s: after the last row: %w", r.where, errors.Join(err, errors.New("the archive is damaged")))
	}
	return nil
}

// numbers reads a whole array as numbers in C order. It fails for more than npz.MaxValues.
func (a *array) numbers() ([]float64, error) {
	if a.Len() > npz.MaxValues {
		return nil, fmt.Errorf("%s: %d labels are too many (limit %d)", a.where, a.Len(), npz.MaxValues)
	}
	get, err := a.Decoder()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.where, err)
	}
	if len(a.Shape) == 0 || a.Len() == 0 {
		return nil, fmt.Errorf("%s: the array is empty", a.where)
	}
	out := make([]float64, 0, a.Len())
	err = a.blocks(func(_ int, b []byte) error {
		for ; len(b) > 0; b = b[a.Size:] {
			out = append(out, get(b[:a.Size]))
		}
		return nil
	})
	return out, err
}

// blocks reads all rows in order.
func (a *array) blocks(do func(first int, rows []byte) error) error {
	r, err := a.rows()
	if err != nil {
		return err
	}
	each := a.rowBytes()
	n := max(1, (4<<20)/max(1, each))
	buffer := make([]byte, min(n, a.Shape[0])*each)
	for first := 0; first < a.Shape[0]; first += n {
		b := buffer[:min(n, a.Shape[0]-first)*each]
		if err := r.Read(b, first); err != nil {
			return err
		}
		if err := do(first, b); err != nil {
			return err
		}
	}
	return nil
}

// arraySource is a dataset whose images are the rows of an array.
type arraySource struct {
	info   Info
	labels []uint16
	images *array
	frame  frame
	file   io.Closer
	holds  Contents
}

// Contents describes what a file or folder holds for users: arrays, columns, tables.
type Contents struct {
	Used   []string `json:"used"`   // each with its role
	Unused []string `json:"unused"` // what is not read
	// Axes is the order of the axes of the images, as in "nhwc": n images, h rows, w columns, c channels; empty for image files.
	Axes string `json:"axes,omitempty"`
	// Scaling says how brightness and sizes change; empty if they do not. Remarks are the other sentences of the dataset's note.
	Scaling string   `json:"scaling,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

func (s *arraySource) contents() Contents { return s.holds }

// inPlaceArrays is an arraySource that needs no packing.
type inPlaceArrays struct{ *arraySource }

// newArraySource returns a source whose Info has the size and number of the images filled in.
func newArraySource(info Info, labels []uint16, images *array, f frame, file io.Closer, holds Contents) Source {
	info.H, info.W, info.C, info.Len = side, side, f.channels(), images.Shape[0]
	s := &arraySource{info, labels, images, f, file, holds}
	if images.at != nil && !f.scales() && f.number == nil {
		return inPlaceArrays{s}
	}
	return s
}

func (s *arraySource) Info() Info       { return s.info.clone() }
func (s *arraySource) Labels() []uint16 { return s.labels }
func (s *arraySource) Close() error     { return s.file.Close() }

func (s *arraySource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	rows, err := s.images.rows()
	if err != nil {
		return err
	}
	each, row := side*side*s.info.C, s.images.rowBytes()
	read := rows.Read
	if !s.frame.asIs() {
		raw, canvases := make([]byte, s.images.block*row), make([]canvas, runtime.GOMAXPROCS(0))
		read = func(dst []byte, first int) error {
			n := len(dst) / each
			if err := rows.Read(raw[:n*row], first); err != nil {
				return err
			}
			return onAllCores(n, func(worker, i int) error {
				if err := s.frame.check(raw[i*row : (i+1)*row]); err != nil {
					return fmt.Errorf("%s: row %d: %w", s.images.where, first+i, err)
				}
				s.frame.fill(&canvases[worker], dst[i*each:(i+1)*each], raw[i*row:(i+1)*row])
				return nil
			})
		}
	}
	return ahead(ctx, first, s.info.Len, s.images.block, each, read, yield)
}

func (s inPlaceArrays) verify(ctx context.Context, tell func(done, of int64)) error {
	if s.images.verify == nil {
		return nil
	}
	return s.images.verify(ctx, tell)
}

func (s inPlaceArrays) ReadImages(dst []byte, index []int) error {
	each := side * side * s.info.C
	if err := check(s.info, index, len(dst), each); err != nil {
		return err
	}
	rows := placedRows{s.images}
	if s.frame.asIs() {
		for b, i := range index {
			if err := rows.Read(dst[b*each:(b+1)*each], i); err != nil {
				return err
			}
		}
		return nil
	}
	raw := make([]byte, rows.rowBytes())
	for b, i := range index {
		if err := rows.Read(raw, i); err != nil {
			return err
		}
		s.frame.fill(nil, dst[b*each:(b+1)*each], raw)
	}
	return nil
}

// arrayOf opens an array of a published file and checks its shape and type.
func arrayOf(f arrays, name, dtype string, shape ...int) (*array, error) {
	a, err := f.array(name)
	if errors.Is(err, model.ErrNotFound) {
		return nil, fmt.Errorf("%w; check that this is the published file", err)
	}
	if err != nil {
		return nil, err
	}
	if a.DType() != dtype || !slices.Equal(a.Shape, shape) {
		return nil, fmt.Errorf("%s holds %s of shape %v, but the published file has %s of shape %v; it may be a file of another dataset with the same name",
			a.where, a.DType(), a.Shape, dtype, shape)
	}
	return a, nil
}

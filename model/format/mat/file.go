package mat

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zlib"

	"slotscope/model/format/regular"
)

// File is an open level 5 file whose arrays are read on demand. It is safe for concurrent use.
type File struct {
	Arrays []*Stored // in the order of the file
	file   *os.File
}

// Stored is a numeric array of a File, first axis fastest. Kind and Size are those of the numbers as stored: MATLAB and SciPy store
// numbers in a smaller type than their class if all of them fit.
type Stored struct {
	Name  string
	Shape []int
	Kind  byte  // 'i', 'u' or 'f'
	Size  int   // bytes of a number
	Err   error // why it cannot be read; nil if it can

	body   *io.SectionReader // of its element, compressed or not
	packed bool
	at     int64 // of the numbers, in the element's uncompressed data
	bytes  int64 // of the numbers
}

// Open opens a file for reading. The caller must Close it.
func Open(path string) (*File, error) {
	return regular.Open(path, func(file *os.File, size int64) (*File, error) {
		f := &File{file: file}
		return f, f.list(size)
	})
}

// Close closes the file, after which its arrays cannot be read.
func (f *File) Close() error { return f.file.Close() }

// list reads the names, shapes and types of all arrays.
func (f *File) list(size int64) error {
	head := make([]byte, 128)
	n, err := f.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if _, err := body(head[:n]); err != nil {
		return err
	}
	tag := make([]byte, 8)
	for at := int64(len(head)); at < size; {
		if _, err := f.file.ReadAt(tag, at); err != nil {
			return fmt.Errorf("the element at byte %d: %w", at, errEnds)
		}
		kind, long := binary.LittleEndian.Uint32(tag), int64(binary.LittleEndian.Uint32(tag[4:]))
		if kind>>16 != 0 || at+8+long > size {
			return fmt.Errorf("the element at byte %d: %w", at, errEnds)
		}
		if kind == miCOMPRESSED || kind == miMATRIX {
			a := &Stored{body: io.NewSectionReader(f.file, at+8, long), packed: kind == miCOMPRESSED}
			err := a.describe()
			if err != nil && !errors.Is(err, errNoArray) {
				return fmt.Errorf("the array at byte %d: %w", at, err)
			}
			if a.Name != "" { // data of MATLAB's own has no name
				f.Arrays = append(f.Arrays, a)
			}
		}
		if kind != miCOMPRESSED {
			long = (long + 7) &^ 7
		}
		at += 8 + long
	}
	return nil
}

// maxHead is above the size of the flags, dimensions and name of an array.
const maxHead = 4096

// describe reads everything but the numbers. Err is set for an array that is intact but not numeric.
func (a *Stored) describe() error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxHead))
	if err != nil && len(b) == 0 {
		return fmt.Errorf("unpacking: %w", err)
	}
	parts, rest, err := heads(b)
	if err != nil {
		return err
	}
	if len(parts[0]) < 4 {
		return errEnds
	}
	a.Name = string(parts[2])
	a.Err = a.numbers(parts, rest, int64(len(b)-len(rest)))
	return nil
}

// numbers finds the numbers, whose element starts at the given place.
func (a *Stored) numbers(parts [3][]byte, rest []byte, at int64) error {
	class := parts[0][0]
	if class < mxDOUBLE || class > mxUINT64 || parts[0][1]&8 != 0 {
		return fmt.Errorf("%q has class %s; save it as a real numeric array", a.Name, className(class))
	}
	if len(rest) < 8 {
		return errEnds
	}
	kind := binary.LittleEndian.Uint32(rest)
	a.at, a.bytes = at+8, int64(binary.LittleEndian.Uint32(rest[4:]))
	if small := kind >> 16; small != 0 {
		kind, a.at, a.bytes = kind&0xffff, at+4, int64(small)
	}
	decode, ok := stored[kind]
	if !ok {
		return fmt.Errorf("%q is stored as data type %d, which is not supported", a.Name, kind)
	}
	a.Size, a.Kind = decode.size, decode.kind
	for dims := parts[1]; len(dims) >= 4; dims = dims[4:] {
		a.Shape = append(a.Shape, int(binary.LittleEndian.Uint32(dims)))
	}
	room := a.body.Size()
	if a.packed {
		room *= maxRatio
	}
	n := int64(a.Size)
	for _, d := range a.Shape {
		if n *= int64(d); n > a.bytes {
			break
		}
	}
	if n != a.bytes || a.at+a.bytes > room || len(a.Shape) < 2 {
		return fmt.Errorf("the file is damaged: %q has %d bytes for shape %v", a.Name, a.bytes, a.Shape)
	}
	return nil
}

// open returns the uncompressed data of the element.
func (a *Stored) open() (io.ReadCloser, error) {
	whole := io.NewSectionReader(a.body, 0, a.body.Size())
	if !a.packed {
		return io.NopCloser(whole), nil
	}
	z, err := zlib.NewReader(whole)
	if err != nil {
		return nil, err
	}
	tag := make([]byte, 8)
	if _, err := io.ReadFull(z, tag); err != nil {
		return nil, errors.Join(errEnds, z.Close())
	}
	if binary.LittleEndian.Uint32(tag) != miMATRIX {
		return nil, errors.Join(errNoArray, z.Close())
	}
	return z, nil
}

// errNoArray is returned for an element of compressed data other than an array.
var errNoArray = errors.New("not an array")

// InPlace gives random access to the numbers; nil if they are compressed.
func (a *Stored) InPlace() io.ReaderAt {
	if a.packed {
		return nil
	}
	return io.NewSectionReader(a.body, a.at, a.bytes)
}

// Stream returns the numbers in order. At the end it verifies the checksum of compressed ones.
func (a *Stored) Stream() (io.ReadCloser, error) {
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, a.at); err != nil { // the heads
		return nil, errors.Join(err, r.Close())
	}
	return &numberStream{r, a.bytes}, nil
}

// numberStream reads the numbers, then past the end of the element.
type numberStream struct {
	io.ReadCloser
	left int64
}

func (s *numberStream) Read(b []byte) (int, error) {
	if s.left == 0 {
		_, err := io.CopyN(io.Discard, s.ReadCloser, 16) // padding, then the checksum
		return 0, cmp.Or(err, errors.New("the file is damaged: the array is longer than its shape"))
	}
	n, err := s.ReadCloser.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}

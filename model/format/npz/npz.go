package npz

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/format/regular"
)

// File is an open .npz archive, or a single .npy file, whose only array has the empty name.
type File struct {
	path   string
	file   *os.File
	arrays []*Array
}

// Array is one array of a file. Its methods are safe for concurrent use.
type Array struct {
	Name string
	Header

	path   string
	err    error // why the array cannot be read; returned only when it is opened
	at     io.ReaderAt
	member *zip.File // its entry in an archive; nil for a single .npy file
	skip   int64     // bytes of the header
}

// Open opens an archive or a single array. The caller must Close it.
func Open(path string) (*File, error) {
	return regular.Open(path, func(file *os.File, size int64) (*File, error) {
		f := &File{path: path, file: file}
		return f, f.read(size)
	})
}

// Close closes the file, after which its arrays cannot be read.
func (f *File) Close() error { return f.file.Close() }

func (f *File) read(size int64) error {
	start := make([]byte, 6)
	if _, err := f.file.ReadAt(start, 0); err == nil && string(start) == magic {
		a := &Array{path: f.path}
		a.open(io.NewSectionReader(f.file, 0, size))
		f.arrays = []*Array{a}
		return a.err
	}
	return f.readZip(size)
}

func (f *File) readZip(size int64) error {
	archive, err := zip.NewReader(f.file, size)
	if err != nil {
		return fmt.Errorf("not an .npz archive or .npy array, or incomplete: %w", err)
	}
	for _, member := range archive.File {
		name, ok := strings.CutSuffix(member.Name, ".npy")
		if !ok {
			continue
		}
		a := &Array{Name: name, path: f.path}
		a.openMember(f.file, size, member)
		f.arrays = append(f.arrays, a)
	}
	if len(f.arrays) == 0 {
		return errors.New("the archive has no .npy array")
	}
	return nil
}

// maxRatio is above the maximum compression ratio of deflate.
const maxRatio = 1040

func (a *Array) openMember(file io.ReaderAt, size int64, member *zip.File) {
	packed, unpacked := member.CompressedSize64, member.UncompressedSize64
	offset, err := member.DataOffset()
	switch {
	case err != nil:
		a.err = err
	case packed > uint64(size) || offset > size-int64(packed):
		a.err = errors.New("the file is incomplete: it ends before the array")
	case member.Flags&1 != 0:
		a.err = errors.New("encrypted archives are not supported; save it without a password")
	case member.Method == zip.Store && packed != unpacked:
		a.err = fmt.Errorf("the archive is damaged: the array is stored with sizes of %d and %d bytes", packed, unpacked)
	case member.Method == zip.Store:
		a.member = member
		a.open(io.NewSectionReader(file, offset, int64(packed)))
	case member.Method != zip.Deflate:
		a.err = fmt.Errorf("compression method %d is not supported; save it with numpy.savez or numpy.savez_compressed", member.Method)
	case unpacked > (packed+1)*maxRatio:
		a.err = fmt.Errorf("the archive is damaged: %d bytes cannot decompress to %d", packed, unpacked)
	default:
		a.openDeflated(member)
	}
}

func (a *Array) open(r *io.SectionReader) {
	if a.Header, a.skip, a.err = ReadHeader(r); a.err == nil {
		a.err = a.checkLength(uint64(r.Size()))
		a.at = io.NewSectionReader(r, a.skip, r.Size()-a.skip)
	}
}

func (a *Array) openDeflated(member *zip.File) {
	r, err := member.Open()
	if err != nil {
		a.err = err
		return
	}
	defer r.Close()
	a.member = member
	if a.Header, a.skip, a.err = ReadHeader(r); a.err == nil {
		a.err = a.checkLength(member.UncompressedSize64)
	}
}

// checkLength checks the shape against the number of bytes.
func (a *Array) checkLength(have uint64) error {
	if want := uint64(a.Bytes()); have-uint64(a.skip) != want {
		return fmt.Errorf("the file is damaged or incomplete: shape %v of %s takes %d bytes, but it has %d", a.Shape, a.DType(), want, int64(have)-a.skip)
	}
	return nil
}

// Names returns the names of all arrays in the order of the file, including unreadable ones.
func (f *File) Names() []string {
	names := make([]string, len(f.arrays))
	for i, a := range f.arrays {
		names[i] = a.Name
	}
	return names
}

// Array returns an array by name. The error wraps model.ErrNotFound if there is none.
func (f *File) Array(name string) (*Array, error) {
	i := slices.IndexFunc(f.arrays, func(a *Array) bool { return a.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no array %q (%w); available: %s", f.path, name, model.ErrNotFound, strings.Join(f.Names(), ", "))
	}
	if a := f.arrays[i]; a.err != nil {
		return nil, a.wrap(a.err)
	}
	return f.arrays[i], nil
}

// Arrays returns the readable arrays.
func (f *File) Arrays() []*Array {
	return slices.DeleteFunc(slices.Clone(f.arrays), func(a *Array) bool { return a.err != nil })
}

func (a *Array) wrap(err error) error {
	if a.Name == "" {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	return fmt.Errorf("%s: array %q: %w", a.path, a.Name, err)
}

// Bytes returns the size of all elements in bytes.
func (a *Array) Bytes() int64 { return int64(a.Len()) * int64(a.Size) }

// InPlace returns random access to the bytes of the elements, or nil if they are compressed.
func (a *Array) InPlace() io.ReaderAt { return a.at }

// Stream returns a reader of the bytes of all elements. For an array in an archive, the checksum is verified at the end.
func (a *Array) Stream() (io.ReadCloser, error) {
	if a.member == nil {
		return io.NopCloser(io.NewSectionReader(a.at, 0, a.Bytes())), nil
	}
	r, err := a.member.Open()
	if err != nil {
		return nil, a.wrap(err)
	}
	if _, err := io.CopyN(io.Discard, r, a.skip); err != nil {
		_ = r.Close()
		return nil, a.wrap(err)
	}
	return stream{bufio.NewReaderSize(r, 1<<16), r, a}, nil
}

// Verify compares an array of an archive with its checksum. A single .npy file has none. tell receives the number of bytes done.
func (a *Array) Verify(ctx context.Context, tell func(done, of int64)) error {
	if a.member == nil {
		return nil
	}
	r, err := a.Stream()
	if err != nil {
		return err
	}
	defer r.Close()
	for done, buffer := int64(0), make([]byte, 1<<20); ; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("checking %s: %w", a.path, err)
		}
		n, err := r.Read(buffer)
		done += int64(n)
		tell(done, a.Bytes())
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: the file is damaged", err)
		}
	}
}

// stream names the array in errors.
type stream struct {
	*bufio.Reader
	io.Closer
	array *Array
}

func (s stream) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = s.array.wrap(err)
	}
	return n, err
}

// Parse parses an .npy array in memory. Errors refer to it by name.
func Parse(name string, content []byte) (*Array, error) {
	a := &Array{path: name}
	a.open(io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))))
	if a.err != nil {
		return nil, a.wrap(a.err)
	}
	return a, nil
}

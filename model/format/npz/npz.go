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

// Array is one array of a file. Its methods may be called from several goroutines at once.
type Array struct {
	Name string
	Header

	path   string
	err    error // why the array cannot be read; such arrays matter only to those who ask for them
	at     io.ReaderAt
	member *zip.File // where it is in an archive
	skip   int64     // bytes of the header
}

// Open opens an archive or a single array; the file is closed by Close.
func Open(path string) (*File, error) {
	return regular.Open(path, func(file *os.File, size int64) (*File, error) {
		f := &File{path: path, file: file}
		return f, f.read(size)
	})
}

// Close closes the file; its arrays can then no longer be read.
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
		return fmt.Errorf("it is neither an .npz archive nor an .npy array, or it is incomplete: %w", err)
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

// maxRatio is more than deflate can compress anything; a member that claims more lies.
const maxRatio = 1040

func (a *Array) openMember(file io.ReaderAt, size int64, member *zip.File) {
	packed, unpacked := member.CompressedSize64, member.UncompressedSize64
	offset, err := member.DataOffset()
	switch {
	case err != nil:
		a.err = err
	case packed > uint64(size) || offset > size-int64(packed):
		a.err = errors.New("its bytes lie beyond the end of the file, which is incomplete")
	case member.Flags&1 != 0:
		a.err = errors.New("it is encrypted")
	case member.Method == zip.Store && packed != unpacked:
		a.err = fmt.Errorf("it is stored, yet its size is given as %d and as %d bytes", packed, unpacked)
	case member.Method == zip.Store:
		a.member = member
		a.open(io.NewSectionReader(file, offset, int64(packed)))
	case member.Method != zip.Deflate:
		a.err = fmt.Errorf("it is compressed by method %d; stored and deflated arrays are read", member.Method)
	case unpacked > (packed+1)*maxRatio:
		a.err = fmt.Errorf("%d bytes cannot unpack to the %d that it claims", packed, unpacked)
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

// checkLength holds the shape against the bytes that are there.
func (a *Array) checkLength(have uint64) error {
	if want := uint64(a.Bytes()); have-uint64(a.skip) != want {
		return fmt.Errorf("its shape %v of %s takes %d bytes, and %d are there", a.Shape, a.DType(), want, int64(have)-a.skip)
	}
	return nil
}

// Names lists the arrays in the order of the file, those that cannot be read too.
func (f *File) Names() []string {
	names := make([]string, len(f.arrays))
	for i, a := range f.arrays {
		names[i] = a.Name
	}
	return names
}

// Array finds an array by name; model.ErrNotFound is in the chain where there is none.
func (f *File) Array(name string) (*Array, error) {
	i := slices.IndexFunc(f.arrays, func(a *Array) bool { return a.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no array %q (%w); there is %s", f.path, name, model.ErrNotFound, strings.Join(f.Names(), ", "))
	}
	if a := f.arrays[i]; a.err != nil {
		return nil, a.wrap(a.err)
	}
	return f.arrays[i], nil
}

// Arrays are those that can be read.
func (f *File) Arrays() []*Array {
	return slices.DeleteFunc(slices.Clone(f.arrays), func(a *Array) bool { return a.err != nil })
}

func (a *Array) wrap(err error) error {
	if a.Name == "" {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	return fmt.Errorf("%s: array %q: %w", a.path, a.Name, err)
}

// Bytes is the size of all elements.
func (a *Array) Bytes() int64 { return int64(a.Len()) * int64(a.Size) }

// InPlace gives access to the elements' bytes where they lie in the file, or nil where they are deflated.
func (a *Array) InPlace() io.ReaderAt { return a.at }

// Stream reads the elements' bytes from the first on. Of an array in an archive the checksum is verified at its end.
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

// Verify reads an array of an archive and compares it with its checksum there; an array alone has none. tell is told of the bytes.
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

// Parse reads an .npy array that is in memory; name is what errors call it.
func Parse(name string, content []byte) (*Array, error) {
	a := &Array{path: name}
	a.open(io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content))))
	if a.err != nil {
		return nil, a.wrap(a.err)
	}
	return a, nil
}

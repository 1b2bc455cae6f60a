// Package norb reads the binary matrices of the NORB datasets: a magic number for the type, the number of axes, their sizes, then the
// elements, last axis fastest.
package norb

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"slotscope/model/format/regular"
)

// Matrix is a matrix of bytes or 32-bit integers, read sequentially.
type Matrix struct {
	Shape []int
	Size  int // bytes of an element: 1 unsigned, 4 signed

	path   string
	file   *os.File
	unzip  *gzip.Reader
	r      *bufio.Reader
	offset int64 // of the next element in the uncompressed file
}

// Magic numbers of the types.
const (
	bytesMagic = 0x1e3d4c55
	intsMagic  = 0x1e3d4c54
)

var others = map[uint32]string{0x1e3d4c51: "32-bit floats", 0x1e3d4c52: "packed bits", 0x1e3d4c53: "64-bit floats", 0x1e3d4c56: "16-bit integers"}

// Open opens a matrix. Files whose names end in .gz are decompressed.
func Open(path string) (*Matrix, error) {
	return regular.Open(path, func(file *os.File, _ int64) (*Matrix, error) {
		m := &Matrix{path: path, file: file}
		return m, m.open()
	})
}

// Close closes the file.
func (m *Matrix) Close() error { return m.file.Close() }

func (m *Matrix) open() error {
	m.r = bufio.NewReaderSize(m.file, 1<<16)
	if strings.HasSuffix(m.path, ".gz") {
		var err error
		if m.unzip, err = gzip.NewReader(m.r); err != nil {
			return fmt.Errorf("not a gzip file: %w", err)
		}
		m.r = bufio.NewReaderSize(m.unzip, 1<<16)
	}
	if err := m.header(); err != nil {
		return err
	}
	return m.checkSize()
}

func (m *Matrix) header() error {
	magic, axes := m.word(), m.word()
	switch magic {
	case bytesMagic:
		m.Size = 1
	case intsMagic:
		m.Size = 4
	default:
		if name := others[magic]; name != "" {
			return fmt.Errorf("matrices of %s are not supported, only bytes and 32-bit integers", name)
		}
		return errors.New("not a NORB binary matrix")
	}
	if axes < 1 || axes > 8 {
		return fmt.Errorf("the file is damaged: it has %d axes", axes)
	}
	for range axes {
		m.Shape = append(m.Shape, int(m.word()))
	}
	for range 3 - min(axes, 3) { // the header has at least three sizes
		m.word()
	}
	if m.offset < 0 {
		return errors.New("the file is incomplete: it ends within its header")
	}
	return nil
}

// word reads a number of the header. It makes offset negative if the file ends.
func (m *Matrix) word() uint32 {
	b := make([]byte, 4)
	if _, err := io.ReadFull(m.r, b); err != nil {
		m.offset = -1 << 62
	}
	m.offset += 4
	return binary.LittleEndian.Uint32(b)
}

// maxRatio is above the maximum compression ratio of deflate.
const maxRatio = 1040

// checkSize checks the shape against the size of the file.
func (m *Matrix) checkSize() error {
	stat, err := m.file.Stat()
	if err != nil {
		return err
	}
	have := stat.Size()
	if m.unzip != nil {
		have *= maxRatio
	}
	need := int64(m.Size)
	for _, s := range m.Shape {
		if need *= int64(s); need > have || s == 0 {
			return fmt.Errorf("the file is damaged or incomplete: shape %v needs more bytes than it has", m.Shape)
		}
	}
	if m.unzip == nil && m.offset+need != have {
		return fmt.Errorf("the file is damaged or incomplete: shape %v takes %d bytes, but it has %d", m.Shape, m.offset+need, have)
	}
	return nil
}

// Next fills b with the bytes of the next elements.
func (m *Matrix) Next(b []byte) error {
	n, err := io.ReadFull(m.r, b)
	if err != nil {
		return fmt.Errorf("%s: at byte %d: the file is damaged or incomplete: %w", m.path, m.offset+int64(n), err)
	}
	m.offset += int64(n)
	return nil
}

// End verifies that nothing follows, which also verifies the checksum of a gzip file.
func (m *Matrix) End() error {
	if n, err := m.r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("%s: after the last element: %w", m.path, errors.Join(err, errors.New("the file is damaged")))
	}
	return nil
}

// maxInts limits what Ints reads, well above any number of labels.
const maxInts = 1 << 24

// Ints reads a whole matrix of integers.
func (m *Matrix) Ints() ([]int32, error) {
	n := 1
	for _, s := range m.Shape {
		n *= s
	}
	if m.Size != 4 || n > maxInts {
		return nil, fmt.Errorf("%s: %d elements of %d bytes are not labels, which are at most %d elements of 4 bytes", m.path, n, m.Size, maxInts)
	}
	out := make([]int32, 0, n)
	b := make([]byte, 4)
	for range n {
		if err := m.Next(b); err != nil {
			return nil, err
		}
		out = append(out, int32(binary.LittleEndian.Uint32(b)))
	}
	return out, m.End()
}

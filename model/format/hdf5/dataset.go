package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Dataset is an array of numbers or text. Rows are its elements along the first axis.
type Dataset struct {
	Path      string
	Shape     []int
	Kind      byte // 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'S' text of Size bytes, Varying text in the file's heap
	Size      int  // bytes of an element
	BigEndian bool // whether the most significant byte comes first

	file    *File
	max     []int  // maximum shape; 0 for unlimited
	fill    []byte // value of unwritten elements; nil for zeros
	filters []filter
	layout  layout
}

// layout describes where the elements are.
type layout struct {
	compact []byte // in the header itself, or
	address uint64 // contiguous at an address, undefined if never written, or
	chunk   []int  // in chunks of this shape, found by the index
	grid    []int  // chunks along each axis
	chunks  []chunk
}

// dataset builds a dataset from the messages of its object header.
func (f *File) dataset(path string, messages []message) (*Dataset, error) {
	d := &Dataset{Path: path, file: f}
	for _, part := range []struct {
		kind  int
		need  bool
		parse func(*cursor) error
	}{
		{dataspaceMessage, true, d.dataspace},
		{datatypeMessage, true, d.datatype},
		{externalMessage, false, external},
		{fillMessage, false, d.fillValue},
		{filterMessage, false, d.pipeline},
		{layoutMessage, true, d.parseLayout},
	} {
		m, ok := find(messages, part.kind)
		if !ok && part.need {
			return nil, errors.New("it is a group, not a dataset; name a dataset in it")
		}
		if !ok {
			continue
		}
		if m.shared {
			var err error
			if m, err = f.elsewhere(m); err != nil {
				return nil, err
			}
		}
		c := &cursor{rest: m.data}
		if err := part.parse(c); err != nil {
			return nil, err
		}
		if c.short {
			return nil, fmt.Errorf("the file is damaged: a header message of type %#x is truncated", part.kind)
		}
	}
	return d, nil
}

// dataspace reads the shape, IV.A.2.b.
func (d *Dataset) dataspace(c *cursor) error {
	version, rank, flags := c.u8(), int(c.u8()), c.u8()
	switch {
	case version == 1:
		c.skip(5)
	case version == 2:
		c.skip(1)
	default:
		return fmt.Errorf("dataspace version %d is not supported (only versions 1 and 2)", version)
	}
	if rank == 0 || rank > 32 {
		return errors.New("it is a single value or empty, not an array")
	}
	for range rank {
		size := c.u64()
		if size > math.MaxInt {
			return fmt.Errorf("the file is damaged: an axis has length %d", size)
		}
		d.Shape = append(d.Shape, int(size))
	}
	d.max = d.Shape
	if flags&1 == 0 {
		return nil
	}
	d.max = make([]int, rank)
	for k, size := range d.Shape {
		switch most := c.u64(); {
		case most == undefined:
		case most > math.MaxInt || int(most) < size:
			return fmt.Errorf("the file is damaged: an axis of length %d has maximum length %d", size, most)
		default:
			d.max[k] = max(1, int(most))
		}
	}
	return nil
}

// classes are the names of datatype classes, by number.
var classes = []string{"integers", "floats", "times", "text", "bit fields", "opaque bytes", "records of several fields", "references",
	"an enumeration", "lists of varying length", "arrays"}

// datatype reads the type of the elements, IV.A.2.d.
func (d *Dataset) datatype(c *cursor) error {
	class := c.u8() & 15
	flags := c.u8()
	c.skip(2)
	size := c.u32()
	switch {
	case class == 3 && size > 0 && size <= maxText:
		d.Kind, d.Size = 'S', int(size)
		return d.checkSize()
	case class == 9 && flags&15 == 1 && size == 16:
		d.Kind, d.Size = Varying, int(size)
		return d.checkSize()
	case class == 8: // an enumeration: its type, then its names, which flags count
		if err := d.datatype(c); err != nil {
			return err
		}
		if d.Size == 1 && flags == 2 && bytes.HasPrefix(c.rest, []byte("FALSE\x00")) {
			d.Kind = 'b'
		}
		return nil
	case class > 1:
		name := "elements of an unknown kind"
		if int(class) < len(classes) {
			name = classes[class]
		}
		return fmt.Errorf("%s (datatype class %d) are not supported; save the data as integers, floats, bools or text", name, class)
	}
	d.Size, d.BigEndian = int(size), flags&1 != 0
	offset, precision := c.u16(), c.u16()
	if class == 0 {
		d.Kind = 'u'
		if flags&8 != 0 {
			d.Kind = 'i'
		}
		if size != 1 && size != 2 && size != 4 && size != 8 || offset != 0 || int(precision) != 8*d.Size {
			return fmt.Errorf("integers of %d bits in %d bytes are not supported; use 8, 16, 32 or 64 bits", precision, size)
		}
		return d.checkSize()
	}
	d.Kind = 'f'
	exponentAt, exponentBits := c.u8(), c.u8()
	ieee := map[uint32][2]byte{2: {10, 5}, 4: {23, 8}, 8: {52, 11}}
	if want, ok := ieee[size]; !ok || want != [2]byte{exponentAt, exponentBits} || offset != 0 {
		return fmt.Errorf("floats of %d bytes with %d exponent bits are not supported; use IEEE 754 floats of 16, 32 or 64 bits", size, exponentBits)
	}
	return d.checkSize()
}

// Varying is the Kind of variable-length text, which is stored in the file's heap.
const Varying = 'T'

// maxText limits the bytes of an element of text.
const maxText = 1 << 16

// maxRatio is above the maximum compression ratio of deflate.
const maxRatio = 1040

// checkSize returns an error for arrays that are too large for the file, however well they are compressed.
func (d *Dataset) checkSize() error {
	limit := math.MaxInt64 / 4
	if d.file.size < uint64(limit)/maxRatio {
		limit = int(d.file.size) * maxRatio
	}
	total := d.Size
	for _, s := range d.Shape {
		if s > 0 && total > limit/s {
			return fmt.Errorf("shape %v is larger than a file of %d bytes can hold; the file is damaged or incomplete", d.Shape, d.file.size)
		}
		total *= s
	}
	return nil
}

func external(*cursor) error {
	return errors.New("external storage in other files is not supported; save the data in the file itself")
}

// fillValue reads the value of unwritten elements, IV.A.2.f.
func (d *Dataset) fillValue(c *cursor) error {
	version := c.u8()
	defined := true
	switch version {
	case 1, 2:
		c.skip(2)
		defined = c.u8() != 0 || version == 1
	case 3:
		defined = c.u8()&0x20 != 0
	default:
		return fmt.Errorf("fill value version %d is not supported (only versions 1 to 3)", version)
	}
	if !defined {
		return nil
	}
	size := int(c.u32())
	if size == d.Size && size <= len(c.rest) {
		d.fill = c.take(size)
	}
	return nil
}

// parseLayout reads the data layout, IV.A.2.i.
func (d *Dataset) parseLayout(c *cursor) error {
	version, class := c.u8(), c.u8()
	if version != 3 && version != 4 {
		return fmt.Errorf("data layout version %d is not supported (only versions 3 and 4)", version)
	}
	switch class {
	case 0:
		n := int(c.u16())
		if d.layout.compact = c.take(n); n != d.bytes() {
			return fmt.Errorf("the file is damaged: shape %v takes %d bytes, but %d are stored", d.Shape, d.bytes(), n)
		}
		return nil
	case 1:
		return d.contiguous(c)
	case 2:
		if version == 3 {
			return d.chunked3(c)
		}
		return d.chunked4(c)
	case 3:
		return errors.New("virtual datasets are not supported; save the data in the file itself")
	}
	return fmt.Errorf("data layout class %d is not supported", class)
}

func (d *Dataset) contiguous(c *cursor) error {
	d.layout.address = c.u64()
	size := c.u64()
	if d.layout.address == undefined {
		return nil
	}
	if need := uint64(d.bytes()); size < need || d.layout.address > d.file.size || need > d.file.size-d.layout.address {
		return fmt.Errorf("the file is damaged or incomplete: %d bytes at address %d lie beyond its end at %d", need, d.layout.address, d.file.size)
	}
	return nil
}

// Len returns the number of rows.
func (d *Dataset) Len() int { return d.Shape[0] }

// RowBytes returns the size of a row in bytes.
func (d *Dataset) RowBytes() int { return product(d.Shape[1:]) * d.Size }

func (d *Dataset) bytes() int { return product(d.Shape) * d.Size }

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Dataset is an array of numbers or text. Rows are its entries along the first axis.
type Dataset struct {
	Path      string
	Shape     []int
	Kind      byte // 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'S' text of Size bytes, Varying text in the file's heap
	Size      int  // bytes of an element
	BigEndian bool // most significant byte first; else least

	file    *File
	max     []int  // what the shape may grow to; 0 for without limit
	fill    []byte // an element that was never written; nil for zeros
	filters []filter
	layout  layout
}

// layout is where the elements are.
type layout struct {
	compact []byte // in the header itself, or
	address uint64 // in one piece at an address, undefined where never written, or
	chunk   []int  // in chunks of this shape, found by the index
	grid    []int  // chunks along each axis
	chunks  []chunk
}

// dataset puts a dataset together from the messages of its object header.
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
			return nil, errors.New("it is a group, not a dataset")
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
			return nil, fmt.Errorf("the file is damaged: a header message of type %#x ends early", part.kind)
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
		return fmt.Errorf("dataspace version %d is not supported; versions 1 and 2 are", version)
	}
	if rank == 0 || rank > 32 {
		return errors.New("it is a single value or nothing, not an array")
	}
	for range rank {
		size := c.u64()
		if size > math.MaxInt {
			return fmt.Errorf("an axis of %d is longer than any file", size)
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
			return fmt.Errorf("the file is damaged: an axis of %d may grow to %d at most", size, most)
		default:
			d.max[k] = max(1, int(most))
		}
	}
	return nil
}

// classes of types, by number.
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
	case class == 8: // an enumeration: its type, then its names; flags count them
		if err := d.datatype(c); err != nil {
			return err
		}
		if d.Size == 1 && flags == 2 && bytes.HasPrefix(c.rest, []byte("FALSE\x00")) {
			d.Kind = 'b'
		}
		return nil
	case class > 1:
		name := "things of an unknown kind"
		if int(class) < len(classes) {
			name = classes[class]
		}
		return fmt.Errorf("it holds %s (datatype class %d); integers, floats, bools and text are read", name, class)
	}
	d.Size, d.BigEndian = int(size), flags&1 != 0
	offset, precision := c.u16(), c.u16()
	if class == 0 {
		d.Kind = 'u'
		if flags&8 != 0 {
			d.Kind = 'i'
		}
		if size != 1 && size != 2 && size != 4 && size != 8 || offset != 0 || int(precision) != 8*d.Size {
			return fmt.Errorf("integers of %d bits in %d bytes are not read; those of 8, 16, 32 and 64 bits are", precision, size)
		}
		return d.checkSize()
	}
	d.Kind = 'f'
	exponentAt, exponentBits := c.u8(), c.u8()
	ieee := map[uint32][2]byte{2: {10, 5}, 4: {23, 8}, 8: {52, 11}}
	if want, ok := ieee[size]; !ok || want != [2]byte{exponentAt, exponentBits} || offset != 0 {
		return fmt.Errorf("floats of %d bytes with %d bits of exponent are not read; IEEE 754 ones of 16, 32 and 64 bits are", size, exponentBits)
	}
	return d.checkSize()
}

// Varying is the Kind of text whose elements differ in length and lie in the file's heap.
const Varying = 'T'

// maxText bounds the bytes of an element of text.
const maxText = 1 << 16

// maxRatio is more than deflate can compress anything.
const maxRatio = 1040

// checkSize refuses arrays that the file cannot hold, however well they are compressed.
func (d *Dataset) checkSize() error {
	limit := math.MaxInt64 / 4
	if d.file.size < uint64(limit)/maxRatio {
		limit = int(d.file.size) * maxRatio
	}
	total := d.Size
	for _, s := range d.Shape {
		if s > 0 && total > limit/s {
			return fmt.Errorf("its shape %v is larger than a file of %d bytes can hold", d.Shape, d.file.size)
		}
		total *= s
	}
	return nil
}

func external(*cursor) error {
	return errors.New("its elements lie in other files (external storage) (unsupported)")
}

// fillValue reads what elements are that were never written, IV.A.2.f.
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
		return fmt.Errorf("fill value version %d is not supported; versions 1 to 3 are", version)
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

// parseLayout reads where the elements are, IV.A.2.i.
func (d *Dataset) parseLayout(c *cursor) error {
	version, class := c.u8(), c.u8()
	if version != 3 && version != 4 {
		return fmt.Errorf("data layout version %d is not supported; versions 3 and 4 are", version)
	}
	switch class {
	case 0:
		n := int(c.u16())
		if d.layout.compact = c.take(n); n != d.bytes() {
			return fmt.Errorf("its shape %v takes %d bytes, and %d are there", d.Shape, d.bytes(), n)
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
		return errors.New("it is a virtual dataset, put together from others (unsupported)")
	}
	return fmt.Errorf("data layout class %d is unknown", class)
}

func (d *Dataset) contiguous(c *cursor) error {
	d.layout.address = c.u64()
	size := c.u64()
	if d.layout.address == undefined {
		return nil
	}
	if need := uint64(d.bytes()); size < need || d.layout.address > d.file.size || need > d.file.size-d.layout.address {
		return fmt.Errorf("the file is damaged or incomplete: %d bytes at %d lie beyond its %d", need, d.layout.address, d.file.size)
	}
	return nil
}

// Len is the number of rows.
func (d *Dataset) Len() int { return d.Shape[0] }

// RowBytes is the size of a row.
func (d *Dataset) RowBytes() int { return product(d.Shape[1:]) * d.Size }

func (d *Dataset) bytes() int { return product(d.Shape) * d.Size }

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

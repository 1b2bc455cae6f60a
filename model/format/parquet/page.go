package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Values are the values of a column. Only the list for the column's type is filled.
type Values struct {
	Ints   []int64   // booleans and integers
	Floats []float64 // floats and doubles
	Bytes  [][]byte  // bytes and text
}

// Len returns the number of values.
func (v *Values) Len() int { return len(v.Ints) + len(v.Floats) + len(v.Bytes) }

// MaxRows is the maximum number of rows of a row group.
const MaxRows = 1 << 22

// Read reads one column of one row group. Nulls are an error.
func (f *File) Read(group, column int) (*Values, error) {
	g, c := f.Groups[group], f.Columns[column]
	v, err := f.read(g, c, g.chunks[column])
	if err != nil {
		return nil, fmt.Errorf("%s: row group %d, column %q: %w", f.path, group, c.Path, err)
	}
	return v, nil
}

func (f *File) read(g Group, c Column, one chunk) (*Values, error) {
	switch {
	case c.Repeated:
		return nil, errors.New("columns of lists are not supported; use scalar columns")
	case c.Type == int96 || c.Type > FixedLength || c.Type < 0:
		return nil, fmt.Errorf("%s are not supported; use another column type", c.Type)
	case g.Rows > MaxRows:
		return nil, fmt.Errorf("the row group has %d rows (limit %d); write the file with smaller groups", g.Rows, MaxRows)
	case one.values != g.Rows:
		return nil, fmt.Errorf("the file is damaged: the column has %d values for %d rows", one.values, g.Rows)
	}
	b, err := f.bytes(one.offset, one.size)
	if err != nil {
		return nil, err
	}
	r := pages{column: c, codec: one.codec, left: one.values}
	for r.left > 0 {
		first := one.values - r.left
		if b, err = r.page(b); err != nil {
			return nil, fmt.Errorf("the page at row %d of the group: %w", first, err)
		}
	}
	return &r.out, nil
}

// pages reads the pages of a chunk in order.
type pages struct {
	column Column
	codec  int
	left   int // values still to be read
	dict   Values
	out    Values
}

// Types of pages and encodings.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPage2      = 3

	plain           = 0
	plainDictionary = 2
	rle             = 3
	deltaBinary     = 5
	deltaLength     = 6
	deltaBytes      = 7
	rleDictionary   = 8
	streamSplit     = 9
)

// page reads a page, PageHeader and data, and returns the rest. Header field 1 is the type, 2 and 3 the uncompressed and compressed size,
// 4 the optional checksum.
func (p *pages) page(b []byte) ([]byte, error) {
	head, b, err := structure(b)
	if err != nil {
		return nil, err
	}
	size, stored := head.field(2).number, head.field(3).number
	if stored < 0 || stored > int64(len(b)) || size < 0 || size > maxPage {
		return nil, errors.New("the file is damaged: a page is longer than its column")
	}
	data, rest := b[:stored], b[stored:]
	if head.has(4) && uint32(head.field(4).number) != crc32.ChecksumIEEE(data) {
		return nil, errors.New("the file is damaged: the checksum of a page does not match")
	}
	switch head.field(1).number {
	case dictionaryPage:
		h := head.field(7)
		if data, err = p.unpack(data, size); err == nil {
			p.dict = Values{}
			err = p.plain(&p.dict, data, int(h.field(1).number))
		}
	case dataPage:
		err = p.data1(head.field(5), data, size)
	case dataPage2:
		err = p.data2(head.field(8), data, size)
	case indexPage:
	default:
		err = fmt.Errorf("pages of type %d are not supported", head.field(1).number)
	}
	return rest, err
}

// maxPage limits the bytes of an uncompressed page.
const maxPage = 1 << 30

// unpack decompresses a page to the size given in its header.
func (p *pages) unpack(b []byte, size int64) (out []byte, err error) {
	switch p.codec {
	case 0:
		out = b
	case 1:
		n, err := snappy.DecodedLen(b)
		if err != nil || int64(n) != size || size > 32*int64(len(b))+64 { // Snappy expands 3 bytes to at most 64
			return nil, errors.New("the file is damaged: a page does not decompress to its size")
		}
		if out, err = snappy.Decode(nil, b); err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
	case 2:
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return limited(r, size)
	case 6:
		r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage))
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		defer r.Close()
		return limited(r, size)
	case 4:
		return limited(brotli.NewReader(bytes.NewReader(b)), size)
	case 5:
		return lz4Framed(b, size)
	case 7:
		return lz4(b, size)
	default:
		return nil, fmt.Errorf("codec %d is not supported; use Snappy, gzip, Brotli, LZ4 or Zstandard", p.codec)
	}
	if int64(len(out)) != size {
		return nil, errors.New("the file is damaged: a page does not decompress to its size")
	}
	return out, nil
}

// limited reads exactly size bytes. Memory grows with the actual data.
func limited(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, size+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if n != size {
		return nil, errors.New("the file is damaged: a page does not decompress to its size")
	}
	return b.Bytes(), nil
}

// data1 reads a data page: 1 number of values, 2 encoding. If the column is optional, definition levels come first, preceded by their
// length.
func (p *pages) data1(h value, b []byte, size int64) error {
	b, err := p.unpack(b, size)
	if err != nil {
		return err
	}
	n := int(h.field(1).number)
	if p.column.Optional > 0 {
		if len(b) < 4 {
			return errEnds
		}
		length := int64(binary.LittleEndian.Uint32(b))
		if length > int64(len(b)-4) {
			return errEnds
		}
		if err := p.defined(b[4:4+length], n); err != nil {
			return err
		}
		b = b[4+length:]
	}
	return p.values(h.field(2).number, b, n)
}

// data2 reads a data page of version 2: 1 number of values, 4 encoding, 5 and 6 lengths of the uncompressed levels, 7 whether the values
// are compressed.
func (p *pages) data2(h value, b []byte, size int64) error {
	n, levels := int(h.field(1).number), h.field(5).number
	if levels < 0 || h.field(6).number != 0 || levels > int64(len(b)) || levels > size {
		return errEnds
	}
	if p.column.Optional > 0 {
		if err := p.defined(b[:levels], n); err != nil {
			return err
		}
	}
	b = b[levels:]
	if !h.has(7) || h.field(7).number == 1 {
		var err error
		if b, err = p.unpack(b, size-levels); err != nil {
			return err
		}
	}
	return p.values(h.field(4).number, b, n)
}

var errEnds = errors.New("the file is damaged: a page is truncated")

// defined checks that none of n values is null.
func (p *pages) defined(levels []byte, n int) error {
	if n < 0 || n > p.left {
		return errors.New("the file is damaged: a page has more values than its column")
	}
	row := 0
	return hybrid(levels, bits.Len(uint(p.column.Optional)), n, func(level uint32) error {
		if int(level) != p.column.Optional {
			return fmt.Errorf("row %d of the page is null; every row needs an image and all factors", row)
		}
		row++
		return nil
	})
}

func (p *pages) values(encoding int64, b []byte, n int) error {
	if n < 0 || n > p.left {
		return errors.New("the file is damaged: a page has more values than its column")
	}
	p.left -= n
	switch encoding {
	case plain:
		return p.plain(&p.out, b, n)
	case plainDictionary, rleDictionary:
		if len(b) == 0 {
			return errEnds
		}
		return hybrid(b[1:], int(b[0]), n, p.lookUp)
	case rle:
		if p.column.Type == Boolean && len(b) >= 4 {
			return hybrid(b[4:], 1, n, func(v uint32) error { p.out.Ints = append(p.out.Ints, int64(v)); return nil })
		}
	}
	return p.other(encoding, b, n)
}

// lookUp appends an entry of the dictionary.
func (p *pages) lookUp(i uint32) error {
	if int(i) >= p.dict.Len() {
		return errors.New("the file is damaged: a dictionary entry is missing")
	}
	switch {
	case p.dict.Ints != nil:
		p.out.Ints = append(p.out.Ints, p.dict.Ints[i])
	case p.dict.Floats != nil:
		p.out.Floats = append(p.out.Floats, p.dict.Floats[i])
	default:
		p.out.Bytes = append(p.out.Bytes, p.dict.Bytes[i])
	}
	return nil
}

// plain appends n plainly encoded values.
func (p *pages) plain(out *Values, b []byte, n int) error {
	width := map[Type]int{Int32: 4, Int64: 8, Float: 4, Double: 8, ByteArray: 4, FixedLength: p.column.Length}[p.column.Type]
	if n < 0 || width*n > len(b) || p.column.Type == Boolean && (n+7)/8 > len(b) {
		return errEnds
	}
	for i := range n {
		switch p.column.Type {
		case FixedLength:
			out.Bytes = append(out.Bytes, b[:width])
		case Boolean:
			out.Ints = append(out.Ints, int64(b[i/8]>>(i%8)&1))
			continue
		case Int32:
			out.Ints = append(out.Ints, int64(int32(binary.LittleEndian.Uint32(b))))
		case Int64:
			out.Ints = append(out.Ints, int64(binary.LittleEndian.Uint64(b)))
		case Float:
			out.Floats = append(out.Floats, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		case Double:
			out.Floats = append(out.Floats, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case ByteArray:
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return errEnds
			}
			end := 4 + int(binary.LittleEndian.Uint32(b))
			out.Bytes = append(out.Bytes, b[4:end])
			b = b[end:]
			continue
		}
		b = b[width:]
	}
	return nil
}

// hybrid reads n numbers of width bits, encoded as runs and bit-packed groups of eight.
func hybrid(b []byte, width, n int, emit func(uint32) error) error {
	if width > 32 {
		return errors.New("the file is damaged: numbers of more than 32 bits in a page")
	}
	for n > 0 {
		head, used := binary.Uvarint(b)
		if used <= 0 {
			return errEnds
		}
		b = b[used:]
		count, size := head>>1, uint64(width+7)/8
		if head&1 == 1 {
			size = count * uint64(width)
			count *= 8
		}
		if head>>1 == 0 || head>>1 > math.MaxInt32 || size > uint64(len(b)) {
			return errEnds
		}
		packed := b[:size]
		b = b[size:]
		for i := 0; i < int(min(count, uint64(n))); i++ {
			at := 0
			if head&1 == 1 {
				at = i * width
			}
			if err := emit(number(packed, at, width)); err != nil {
				return err
			}
		}
		n -= int(min(count, uint64(n)))
	}
	return nil
}

// number reads width bits starting at bit at, least significant first.
func number(b []byte, at, width int) uint32 {
	var v uint64
	for k := range (at%8 + width + 7) / 8 {
		v |= uint64(b[at/8+k]) << (8 * k)
	}
	return uint32(v >> (at % 8) & (1<<width - 1))
}

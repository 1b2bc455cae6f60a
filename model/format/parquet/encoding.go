package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// other reads values in encodings other than plain and dictionary.
func (p *pages) other(encoding int64, b []byte, n int) error {
	switch t := p.column.Type; {
	case encoding == deltaBinary && (t == Int32 || t == Int64):
		return p.deltas(b, n)
	case encoding == deltaLength && t == ByteArray:
		return p.lengths(b, n)
	case encoding == deltaBytes && (t == ByteArray || t == FixedLength):
		return p.prefixes(b, n)
	case encoding == streamSplit:
		width := map[Type]int{Int32: 4, Int64: 8, Float: 4, Double: 8, FixedLength: p.column.Length}[t]
		if width > 0 {
			return p.split(b, n, width)
		}
	}
	return fmt.Errorf("encoding %d of %s is not supported; write the file with another encoding", encoding, p.column.Type)
}

// deltas appends integers that are stored as differences.
func (p *pages) deltas(b []byte, n int) error {
	numbers, _, err := binaryPacked(b, n)
	if err != nil {
		return err
	}
	if p.column.Type == Int32 {
		for i, v := range numbers {
			numbers[i] = int64(int32(v)) // differences wrap around as 32-bit integers
		}
	}
	p.out.Ints = append(p.out.Ints, numbers...)
	return nil
}

// binaryPacked reads n integers, DELTA_BINARY_PACKED: block size, number of miniblocks, count, first value; then for each block the
// smallest difference, the bit width of every miniblock, and the differences minus the smallest.
func binaryPacked(b []byte, n int) (out []int64, rest []byte, err error) {
	uvarint := func() uint64 {
		v, used := binary.Uvarint(b)
		if used <= 0 {
			err, b = errEnds, nil
			return 0
		}
		b = b[used:]
		return v
	}
	zigzag := func() int64 { v := uvarint(); return int64(v>>1) ^ -int64(v&1) }
	block, minis, count, last := uvarint(), uvarint(), uvarint(), zigzag()
	if err != nil {
		return nil, nil, err
	}
	if count != uint64(n) || minis == 0 || block == 0 || block > 1<<20 || block%minis != 0 || block/minis%8 != 0 {
		return nil, nil, errors.New("the file is damaged: a page of differences has an invalid header")
	}
	each := int(block / minis)
	if n > 0 {
		out = append(out, last)
	}
	for len(out) < n {
		least := zigzag()
		if err != nil || uint64(len(b)) < minis {
			return nil, nil, errEnds
		}
		widths := b[:minis]
		b = b[minis:]
		for _, width := range widths {
			if len(out) == n {
				break // miniblocks without values are not stored
			}
			size := each / 8 * int(width)
			if width > 64 || size > len(b) {
				return nil, nil, errEnds
			}
			for i := 0; i < each && len(out) < n; i++ {
				last += least + int64(bitsAt(b, i*int(width), int(width)))
				out = append(out, last)
			}
			b = b[size:]
		}
	}
	return out, b, nil
}

// bitsAt reads up to 64 bits starting at bit at, least significant first.
func bitsAt(b []byte, at, width int) uint64 {
	var v uint64
	for k := 0; k < width; {
		shift := (at + k) % 8
		take := min(8-shift, width-k)
		v |= uint64(b[(at+k)/8]>>shift&byte(1<<take-1)) << k
		k += take
	}
	return v
}

// lengths appends byte arrays, DELTA_LENGTH_BYTE_ARRAY: all lengths, then all contents.
func (p *pages) lengths(b []byte, n int) error {
	lengths, b, err := binaryPacked(b, n)
	if err != nil {
		return err
	}
	for _, length := range lengths {
		if length < 0 || length > int64(len(b)) {
			return errEnds
		}
		p.out.Bytes = append(p.out.Bytes, b[:length:length])
		b = b[length:]
	}
	return nil
}

// prefixes appends byte arrays, DELTA_BYTE_ARRAY: the length of the prefix that each shares with the previous one, then the suffixes.
func (p *pages) prefixes(b []byte, n int) error {
	shared, b, err := binaryPacked(b, n)
	if err != nil {
		return err
	}
	suffixes := pages{column: p.column}
	if err := suffixes.lengths(b, n); err != nil {
		return err
	}
	var last []byte
	total := 0
	for i, suffix := range suffixes.out.Bytes {
		if shared[i] < 0 || shared[i] > int64(len(last)) || p.column.Type == FixedLength && int(shared[i])+len(suffix) != p.column.Length {
			return errEnds
		}
		if total += int(shared[i]) + len(suffix); total > maxPage {
			return errors.New("a page decompresses to more than 1 GiB; write the file with smaller pages")
		}
		last = append(append([]byte(nil), last[:shared[i]]...), suffix...)
		p.out.Bytes = append(p.out.Bytes, last)
	}
	return nil
}

// split appends values, BYTE_STREAM_SPLIT: all first bytes, then all second bytes, and so on.
func (p *pages) split(b []byte, n, width int) error {
	if n < 0 || len(b)/width < n {
		return errEnds
	}
	joined := make([]byte, n*width)
	for k := range width {
		for i := range n {
			joined[i*width+k] = b[k*n+i]
		}
	}
	return p.plain(&p.out, joined, n)
}

var errLZ4 = errors.New("the file is damaged: LZ4 data cannot be decompressed")

// lz4 decompresses an LZ4 block, of literals and back-references, to size bytes.
func lz4(b []byte, size int64) ([]byte, error) {
	if size > 255*int64(len(b)) {
		return nil, errLZ4
	}
	out := make([]byte, 0, size)
	length := func(n int) (int, bool) {
		if n != 15 {
			return n, true
		}
		for len(b) > 0 {
			more := b[0]
			b, n = b[1:], n+int(more)
			if more != 255 {
				return n, n <= math.MaxInt32
			}
		}
		return 0, false
	}
	for len(b) > 0 {
		token := int(b[0])
		b = b[1:]
		n, ok := length(token >> 4)
		if !ok || n > len(b) || len(out)+n > int(size) {
			return nil, errLZ4
		}
		out, b = append(out, b[:n]...), b[n:]
		if len(b) == 0 {
			break
		}
		if len(b) < 2 {
			return nil, errLZ4
		}
		from := len(out) - int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		n, ok = length(token & 15)
		if n += 4; !ok || from < 0 || from >= len(out) || len(out)+n > int(size) {
			return nil, errLZ4
		}
		for range n { // byte by byte, since a back-reference may overlap its output
			out = append(out, out[from])
			from++
		}
	}
	if int64(len(out)) != size {
		return nil, errLZ4
	}
	return out, nil
}

// lz4Framed decompresses the older codec LZ4: Hadoop frames, each preceded by its uncompressed and compressed size, or a single block.
func lz4Framed(b []byte, size int64) ([]byte, error) {
	var out []byte
	for rest := b; ; {
		if len(rest) == 0 && int64(len(out)) == size {
			return out, nil
		}
		if len(rest) < 8 {
			return lz4(b, size)
		}
		unpacked, packed := int64(binary.BigEndian.Uint32(rest)), int64(binary.BigEndian.Uint32(rest[4:]))
		if packed > int64(len(rest)-8) || unpacked > size-int64(len(out)) {
			return lz4(b, size)
		}
		part, err := lz4(rest[8:8+packed], unpacked)
		if err != nil {
			return lz4(b, size)
		}
		out, rest = append(out, part...), rest[8+packed:]
	}
}

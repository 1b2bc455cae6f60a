package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// filter is a filter that was applied to chunks when they were written.
type filter struct {
	id   uint16
	size int // of an element, for shuffle
}

const (
	deflateFilter  = 1
	shuffleFilter  = 2
	fletcherFilter = 3
	lzfFilter      = 32000
)

// others are the names of known but unsupported filters.
var others = map[uint16]string{4: "szip", 5: "nbit", 6: "scale-offset", 307: "bzip2", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle",
	32013: "zfp", 32015: "zstd", 32026: "blosc2"}

// pipeline reads which filters were applied, in order, IV.A.2.l.
func (d *Dataset) pipeline(c *cursor) error {
	version, count := c.u8(), int(c.u8())
	switch version {
	case 1:
		c.skip(6)
	case 2:
	default:
		return fmt.Errorf("filter pipeline version %d is not supported (only versions 1 and 2)", version)
	}
	for range count {
		id := c.u16()
		name := 0
		if version == 1 || id >= 256 {
			name = int(c.u16())
		}
		c.skip(2) // flags
		values := int(c.u16())
		if version == 1 {
			name, values = (name+7)&^7, values+values%2
		}
		c.skip(name)
		c.skip(4 * values)
		if (id < deflateFilter || id > fletcherFilter) && id != lzfFilter {
			return fmt.Errorf("compression with %s (filter %d) is not supported; save it with gzip, LZF or no compression", orUnknown(others[id]), id)
		}
		d.filters = append(d.filters, filter{id, d.Size})
	}
	return nil
}

func orUnknown(name string) string {
	if name == "" {
		return "an unknown filter"
	}
	return name
}

// inflater is a zlib reader that can be reset.
type inflater interface {
	io.Reader
	zlib.Resetter
}

// unfilter undoes the filters of a stored chunk. If only inflating is left, the returned reader inflates as it is read. z may be nil; the
// returned inflater can be passed to the next call.
func (d *Dataset) unfilter(c chunk, stored []byte, z inflater) (io.Reader, inflater, error) {
	for i := len(d.filters) - 1; i >= 0; i-- {
		if c.skipped>>i&1 == 1 {
			continue
		}
		var err error
		switch f := d.filters[i]; f.id {
		case fletcherFilter:
			stored, err = fletcher(stored)
		case shuffleFilter:
			stored = unshuffle(stored, f.size)
		case lzfFilter:
			stored, err = unlzf(stored, d.chunkBytes()+4*i)
		case deflateFilter:
			if z, err = inflate(stored, z); err == nil && !d.more(c, i) {
				return z, z, nil
			}
			if err == nil {
				stored, err = d.inflated(z, d.chunkBytes()+4*i) // filters before may have added checksums
			}
		}
		if err != nil {
			return nil, z, err
		}
	}
	return bytes.NewReader(stored), z, nil
}

// more reports whether filters before the given one changed a chunk. Shuffling single bytes changes nothing.
func (d *Dataset) more(c chunk, before int) bool {
	for i, f := range d.filters[:before] {
		if c.skipped>>i&1 == 0 && (f.id != shuffleFilter || f.size > 1) {
			return true
		}
	}
	return false
}

func inflate(stored []byte, z inflater) (inflater, error) {
	if z != nil {
		return z, z.Reset(bytes.NewReader(stored), nil)
	}
	r, err := zlib.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	return r.(inflater), nil
}

// inflated reads everything from z and fails if it is more than limit bytes.
func (d *Dataset) inflated(z inflater, limit int) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(z, int64(limit)+1))
	if err == nil && n > int64(limit) {
		err = fmt.Errorf("the file is damaged: a chunk inflates to more than %d bytes", limit)
	}
	return b.Bytes(), err
}

// unlzf decompresses LZF: literals of up to 32 bytes, and back-references. It fails if the result is more than limit bytes.
func unlzf(in []byte, limit int) ([]byte, error) {
	bad := errors.New("the file is damaged: LZF data cannot be decompressed")
	var out []byte
	for len(in) > 0 {
		control := int(in[0])
		in = in[1:]
		if control < 32 {
			n := control + 1
			if n > len(in) || len(out)+n > limit {
				return nil, bad
			}
			out, in = append(out, in[:n]...), in[n:]
			continue
		}
		n := control>>5 + 2
		if n == 9 && len(in) > 0 {
			n, in = n+int(in[0]), in[1:]
		}
		if len(in) == 0 {
			return nil, bad
		}
		from := len(out) - (control&31<<8 | int(in[0])) - 1
		in = in[1:]
		if from < 0 || len(out)+n > limit {
			return nil, bad
		}
		for range n { // byte by byte, since a back-reference may overlap its output
			out = append(out, out[from])
			from++
		}
	}
	return out, nil
}

// unshuffle restores elements from planes of their first bytes, second bytes and so on.
func unshuffle(in []byte, size int) []byte {
	if size < 2 {
		return in
	}
	n := len(in) / size
	out := make([]byte, len(in))
	for place := range size {
		plane := in[place*n : (place+1)*n]
		for i, b := range plane {
			out[i*size+place] = b
		}
	}
	copy(out[n*size:], in[n*size:])
	return out
}

// fletcher verifies and removes the checksum at the end of a chunk: Fletcher's, of 16-bit words, most significant byte first.
func fletcher(in []byte) ([]byte, error) {
	if len(in) < 4 {
		return nil, errors.New("the file is damaged: a Fletcher checksum is missing")
	}
	body, want := in[:len(in)-4], binary.LittleEndian.Uint32(in[len(in)-4:])
	var low, high uint64
	for b := body; len(b) > 0; {
		if len(b) == 1 {
			low += uint64(b[0]) << 8
			b = nil
		} else {
			low += uint64(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		low %= 65535
		high = (high + low) % 65535
	}
	if got := uint32(high<<16 | low); reduce(got) != reduce(want) {
		return nil, fmt.Errorf("the file is damaged: the Fletcher checksum is %08x, not %08x", got, want)
	}
	return body, nil
}

// reduce maps 65535 to 0 in both halves, since the HDF5 library writes either.
func reduce(sum uint32) uint32 {
	return sum>>16%65535<<16 | sum&0xffff%65535
}

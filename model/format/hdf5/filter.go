package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// filter is a step that chunks went through when they were written.
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

// others are the filters that are met, and not read.
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
		return fmt.Errorf("filter pipeline version %d is not supported; versions 1 and 2 are", version)
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
			return fmt.Errorf("it is compressed by %s (filter %d), which is not read; gzip, LZF, shuffle and fletcher32 are", orUnknown(others[id]), id)
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

// inflater is a zlib reader that can begin anew.
type inflater interface {
	io.Reader
	zlib.Resetter
}

// unfilter undoes the filters of a stored chunk. Where only inflating is left, it is done while the result is read. z is reused,
// and returned to be so again.
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

// more says whether filters before the given one changed a chunk; shuffling single bytes changes nothing.
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

// inflated reads all, at most limit bytes.
func (d *Dataset) inflated(z inflater, limit int) ([]byte, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(z, int64(limit)+1))
	if err == nil && n > int64(limit) {
		err = fmt.Errorf("it inflates to more than the %d bytes of a chunk", limit)
	}
	return b.Bytes(), err
}

// unlzf undoes LZF: pieces of up to 32 bytes as they are, and repetitions of what came before; at most limit bytes.
func unlzf(in []byte, limit int) ([]byte, error) {
	bad := errors.New("the file is damaged: what LZF packed does not unpack")
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
		for range n { // byte by byte: a repetition may reach into itself
			out = append(out, out[from])
			from++
		}
	}
	return out, nil
}

// unshuffle gathers the bytes of each element, which shuffle sorted by their place in it.
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
		return nil, errors.New("its checksum is missing")
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
		return nil, fmt.Errorf("its Fletcher checksum is %08x, not %08x", got, want)
	}
	return body, nil
}

// reduce takes 65535 for 0 in either half: the library's own sums end with either.
func reduce(sum uint32) uint32 {
	return sum>>16%65535<<16 | sum&0xffff%65535
}

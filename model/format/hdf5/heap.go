package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// fractalHeap holds objects in blocks of doubling size, III.G.
type fractalHeap struct {
	file                  *File
	idBytes               int
	offsetBytes, lenBytes int // of an object's offset and length in its ID
	columns               int // blocks in a row of the doubling table
	start                 uint64
	directRows            int // rows of direct blocks, which hold objects; later rows hold indirect blocks
	root                  uint64
	rows                  int // rows of the root; 0 if the root is a direct block
}

func (f *File) fractalHeap(address uint64) (*fractalHeap, error) {
	b, err := f.bytes(address, 142)
	if err != nil {
		return nil, err
	}
	c := &cursor{rest: b[5:]}
	h := &fractalHeap{file: f, idBytes: int(c.u16())}
	filters := c.u16()
	c.skip(1)
	managed := c.u32()
	c.skip(12 * 8)
	h.columns, h.start = int(c.u16()), c.u64()
	largest := c.u64()
	heapBits := int(c.u16())
	c.skip(2)
	h.root, h.rows = c.u64(), int(c.u16())
	switch {
	case string(b[:4]) != "FRHP" || h.columns == 0 || h.columns > 1<<12 || h.start == 0 || h.start&(h.start-1) != 0 || h.start > 1<<32 ||
		largest < h.start || largest&(largest-1) != 0 || largest > 1<<32 || heapBits > 64 || h.rows > 64:
		return nil, fmt.Errorf("the file is damaged: no heap at address %d", address)
	case filters != 0:
		return nil, errors.New("links in a compressed heap are not supported; save the data again with h5py")
	}
	h.offsetBytes = (heapBits + 7) / 8
	h.lenBytes = min((bits.Len64(largest)-1+7)/8, width(uint64(managed)))
	h.directRows = bits.Len64(largest) - bits.Len64(h.start) + 2
	if 1+h.offsetBytes+h.lenBytes > h.idBytes {
		return nil, fmt.Errorf("the file is damaged: the heap at address %d has IDs of %d bytes", address, h.idBytes)
	}
	return h, nil
}

// object reads the object with an ID.
func (h *fractalHeap) object(id []byte) ([]byte, error) {
	if kind := id[0] >> 4 & 3; kind != 0 {
		return nil, fmt.Errorf("links in heap objects of kind %d are not supported; save the data again with h5py", kind)
	}
	c := &cursor{rest: id[1:]}
	offset, length := c.uint(h.offsetBytes), c.uint(h.lenBytes)
	if h.rows == 0 {
		if offset > h.start {
			return nil, errors.New("the file is damaged: a heap object lies beyond its heap")
		}
		return h.file.bytes(h.root+offset, length)
	}
	at, err := h.place(h.root, h.rows, 0, offset, 0)
	if err != nil {
		return nil, err
	}
	return h.file.bytes(at, length)
}

// place finds the address of a heap offset in an indirect block that starts at offset base.
func (h *fractalHeap) place(block uint64, rows int, base, offset uint64, depth int) (uint64, error) {
	bad := errors.New("the file is damaged: a heap object lies beyond its heap")
	if depth > 8 {
		return 0, bad
	}
	direct := min(rows, h.directRows)
	head := 13 + h.offsetBytes
	b, err := h.file.bytes(block, uint64(head+8*h.columns*rows))
	if err != nil {
		return 0, err
	}
	if string(b[:4]) != "FHIB" {
		return 0, fmt.Errorf("the file is damaged: no heap block at address %d", block)
	}
	c := &cursor{rest: b[head:]}
	for row := range rows {
		size := h.start << max(0, row-1)
		for range h.columns {
			child := c.u64()
			if offset >= base && offset-base < size {
				switch {
				case child == undefined:
					return 0, bad
				case row < direct:
					return child + (offset - base), nil
				}
				below := bits.Len64(size) - bits.Len64(h.start*uint64(h.columns)) + 1
				return h.place(child, below, base, offset, depth+1)
			}
			base += size
		}
	}
	return 0, bad
}

// Strings reads an array of text in order. It fails for more than limit elements or MaxTextBytes bytes.
func (d *Dataset) Strings(limit int) ([]string, error) {
	n := product(d.Shape)
	if d.Kind != 'S' && d.Kind != Varying {
		return nil, d.file.wrap(fmt.Errorf("dataset %q holds numbers, not text", d.Path))
	}
	if n > limit || n > MaxTextBytes/d.Size {
		return nil, d.file.wrap(fmt.Errorf("dataset %q: %d elements of text are too many (limit %d elements, %d bytes)", d.Path, n, limit, MaxTextBytes))
	}
	b := make([]byte, n*d.Size)
	if n > 0 {
		if err := d.Reader().Read(b, 0); err != nil {
			return nil, err
		}
	}
	out := make([]string, n)
	heaps, left := map[uint64]map[uint32]string{}, MaxTextBytes
	for i := range out {
		element := b[i*d.Size : (i+1)*d.Size]
		if d.Kind == 'S' {
			out[i] = strings.TrimRight(string(element), "\x00 ")
			continue
		}
		text, err := d.file.varying(element, heaps, &left)
		if err != nil {
			return nil, d.file.wrap(fmt.Errorf("dataset %q, element %d: %w", d.Path, i, err))
		}
		out[i] = text
	}
	return out, nil
}

// MaxTextBytes limits the text of one dataset that is kept in memory.
const MaxTextBytes = 256 << 20

// varying reads variable-length text, given by its length, the address of a global heap and its index there.
func (f *File) varying(element []byte, heaps map[uint64]map[uint32]string, left *int) (string, error) {
	length, address, number := binary.LittleEndian.Uint32(element), binary.LittleEndian.Uint64(element[4:]), binary.LittleEndian.Uint32(element[12:])
	if length == 0 {
		return "", nil
	}
	heap, known := heaps[address]
	if !known {
		var err error
		if heap, err = f.globalHeap(address, left); err != nil {
			return "", err
		}
		heaps[address] = heap
	}
	text, found := heap[number]
	if !found || uint64(length) > uint64(len(text)) {
		return "", fmt.Errorf("the file is damaged: its text is not in the heap at address %d", address)
	}
	return strings.TrimRight(text[:length], "\x00"), nil
}

// globalHeap reads a collection of objects by index, III.E.
func (f *File) globalHeap(address uint64, left *int) (map[uint32]string, error) {
	head, err := f.bytes(address, 16)
	if err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(head[8:])
	if string(head[:4]) != "GCOL" || size < 16 || size > uint64(*left) {
		return nil, fmt.Errorf("the file is damaged: no heap of text at address %d", address)
	}
	*left -= int(size)
	b, err := f.bytes(address, size)
	if err != nil {
		return nil, err
	}
	objects := map[uint32]string{}
	for c := (&cursor{rest: b[16:]}); len(c.rest) >= 16; {
		number := uint32(c.u16())
		c.skip(6)
		n := c.u64()
		if number == 0 || n > uint64(len(c.rest)) {
			break // free space
		}
		objects[number] = string(c.take(int(n)))
		c.skip(min(int(-n&7), len(c.rest)))
	}
	return objects, nil
}

package hdf5

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// chunk is the location of a stored chunk.
type chunk struct {
	number  int // row-major in the grid of chunks
	address uint64
	size    uint32 // bytes as stored
	skipped uint32 // bit i: filter i was not applied
}

// chunked3 reads a chunked layout of version 3: always a B-tree of version 1.
func (d *Dataset) chunked3(c *cursor) error {
	rank := int(c.u8())
	root := c.u64()
	sizes := make([]uint64, 0, 33)
	for range min(rank, 33) {
		sizes = append(sizes, uint64(c.u32()))
	}
	if err := d.setChunk(sizes); err != nil || root == undefined {
		return err
	}
	if err := d.tree(root, map[uint64]bool{}); err != nil {
		return err
	}
	return d.sortChunks()
}

// chunked4 reads a chunked layout of version 4 and its index.
func (d *Dataset) chunked4(c *cursor) error {
	flags, rank, width := c.u8(), int(c.u8()), int(c.u8())
	sizes := make([]uint64, 0, 33)
	for range min(rank, 33) {
		sizes = append(sizes, c.uint(width))
	}
	if err := d.setChunk(sizes); err != nil {
		return err
	}
	if flags&1 != 0 && len(d.filters) > 0 {
		return errors.New("unfiltered partial edge chunks are not supported; save the data again with h5py")
	}
	switch index := c.u8(); index {
	case 1:
		return d.single(c, flags&2 != 0)
	case 2:
		return d.implicit(c.u64())
	case 3:
		bits := int(c.u8())
		if err := d.fixedArray(c.u64(), bits); err != nil {
			return err
		}
		return d.sortChunks()
	case 4:
		c.skip(5) // repeated in the array's header
		if err := d.extensibleArray(c.u64()); err != nil {
			return err
		}
		return d.sortChunks()
	case 5:
		c.skip(6)
		if err := d.chunkRecords(c.u64()); err != nil {
			return err
		}
		return d.sortChunks()
	default:
		return fmt.Errorf("chunk index type %d is not supported", index)
	}
}

// most returns the maximum number of chunks along an axis, or 0 if unlimited.
func (d *Dataset) most(k int) int {
	return (d.max[k] + d.layout.chunk[k] - 1) / d.layout.chunk[k]
}

// numbering returns a function from the place of a chunk in an array index to its number in the grid. Such an index counts the chunks of
// the array at its maximum size, with the unlimited axis slowest. outside is true for chunks beyond the current size.
func (d *Dataset) numbering() func(place int) (number int, outside bool) {
	order := make([]int, 0, len(d.Shape)) // axes, fastest first
	endless := slices.Index(d.max, 0)
	for k := len(d.Shape) - 1; k >= 0; k-- {
		if k != endless {
			order = append(order, k)
		}
	}
	at := make([]int, len(d.Shape))
	return func(place int) (number int, outside bool) {
		for _, k := range order {
			at[k] = place % d.most(k)
			place /= d.most(k)
		}
		if endless >= 0 {
			at[endless], place = place, 0
		}
		outside = place > 0
		for k, along := range d.layout.grid {
			outside = outside || at[k] >= along
			number = number*along + at[k]
		}
		return number, outside
	}
}

// maxChunk is the format's limit for the bytes of a chunk.
const maxChunk = math.MaxUint32

// setChunk sets the shape of chunks; the last size is that of an element.
func (d *Dataset) setChunk(sizes []uint64) error {
	if len(sizes) != len(d.Shape)+1 {
		return fmt.Errorf("the file is damaged: chunks have %d axes, but the array has %d", len(sizes)-1, len(d.Shape))
	}
	total, chunks := uint64(d.Size), 1
	for k, s := range sizes[:len(d.Shape)] {
		if s == 0 || s > maxChunk/total {
			return fmt.Errorf("the file is damaged: chunk shape %v is impossible", sizes[:len(d.Shape)])
		}
		total *= s
		along := (d.Shape[k] + int(s) - 1) / int(s)
		if along > 0 && chunks > math.MaxInt32/along {
			return fmt.Errorf("the file is damaged: it has more than %d chunks", math.MaxInt32)
		}
		chunks *= along
		d.layout.chunk, d.layout.grid = append(d.layout.chunk, int(s)), append(d.layout.grid, along)
	}
	if total/maxRatio > d.file.size {
		return fmt.Errorf("the file is damaged: chunks of %d bytes are too large for a file of %d bytes", total, d.file.size)
	}
	return nil
}

func (d *Dataset) chunkBytes() int { return product(d.layout.chunk) * d.Size }

// add adds a chunk to the index. Unwritten chunks have no address and are skipped.
func (d *Dataset) add(c chunk) error {
	if c.address == undefined {
		return nil
	}
	if c.address > d.file.size || uint64(c.size) > d.file.size-c.address {
		return fmt.Errorf("the file is damaged or incomplete: chunk %d, %d bytes at address %d, lies beyond its end at %d", c.number, c.size, c.address, d.file.size)
	}
	d.layout.chunks = append(d.layout.chunks, c)
	return nil
}

func (d *Dataset) sortChunks() error {
	slices.SortFunc(d.layout.chunks, func(a, b chunk) int { return a.number - b.number })
	for i := 1; i < len(d.layout.chunks); i++ {
		if d.layout.chunks[i].number == d.layout.chunks[i-1].number {
			return fmt.Errorf("the file is damaged: the index lists chunk %d twice", d.layout.chunks[i].number)
		}
	}
	return nil
}

// tree reads a node of a version 1 B-tree of chunks and its subtree, III.A.1. seen detects nodes that are reached twice, which happens
// only in damaged files.
func (d *Dataset) tree(address uint64, seen map[uint64]bool) error {
	if seen[address] {
		return fmt.Errorf("the file is damaged: the index node at address %d is reached twice", address)
	}
	seen[address] = true
	head, err := d.file.bytes(address, 24)
	if err != nil {
		return err
	}
	if string(head[:4]) != "TREE" || head[4] != 1 {
		return fmt.Errorf("the file is damaged: no chunk index at address %d", address)
	}
	c := &cursor{rest: head[5:]}
	level, count := c.u8(), uint64(c.u16())
	key := 8 + 8*(len(d.Shape)+1)
	b, err := d.file.bytes(address+24, count*uint64(key+8))
	if err != nil {
		return err
	}
	for c := (&cursor{rest: b}); len(c.rest) > 0; {
		size, skipped := c.u32(), c.u32()
		number, err := d.chunkAt(c)
		c.skip(8) // offset within the element
		child := c.u64()
		switch {
		case level > 0:
			err = d.tree(child, seen)
		case err == nil:
			err = d.add(chunk{number, child, size, skipped})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunkAt reads the position of a chunk's first element and returns the chunk's number.
func (d *Dataset) chunkAt(c *cursor) (int, error) {
	number, outside := 0, false
	for k, along := range d.layout.grid {
		at := c.u64() / uint64(d.layout.chunk[k])
		outside = outside || at >= uint64(along)
		number = number*along + int(at)
	}
	if outside {
		return 0, errors.New("the file is damaged: the index lists a chunk outside the array")
	}
	return number, nil
}

// single reads the index of a dataset with a single chunk.
func (d *Dataset) single(c *cursor, filtered bool) error {
	one := chunk{size: uint32(d.chunkBytes())}
	if filtered {
		size := c.u64()
		one.skipped = c.u32()
		if size > maxChunk {
			return fmt.Errorf("the file is damaged: the chunk has %d bytes", size)
		}
		one.size = uint32(size)
	}
	if one.address = c.u64(); product(d.layout.grid) != 1 {
		return errors.New("the file is damaged: an index for one chunk is used for several")
	}
	return d.add(one)
}

// implicit sets up an implicit index: chunks are stored consecutively, unfiltered.
func (d *Dataset) implicit(address uint64) error {
	if address == undefined {
		return nil
	}
	each, count := uint64(d.chunkBytes()), uint64(product(d.layout.grid))
	if len(d.filters) > 0 || address > d.file.size || count > (d.file.size-address)/each {
		return fmt.Errorf("the file is damaged or incomplete: %d chunks of %d bytes at address %d lie beyond its end at %d", count, each, address, d.file.size)
	}
	for i := range count {
		d.layout.chunks = append(d.layout.chunks, chunk{number: int(i), address: address + i*each, size: uint32(each)})
	}
	return nil
}

// fixedArray reads a fixed array index, VII.C.
func (d *Dataset) fixedArray(address uint64, bits int) error {
	if address == undefined {
		return nil
	}
	b, err := d.file.bytes(address, 24)
	if err != nil {
		return err
	}
	c := &cursor{rest: b[5:]}
	filtered, entry := c.u8() == 1, int(c.u8())
	c.skip(1) // page bits, repeated in the layout
	count, data := c.u64(), c.u64()
	if string(b[:4]) != "FAHD" || bits > 30 || filtered && (entry < 13 || entry > 20) || !filtered && entry != 8 {
		return fmt.Errorf("the file is damaged: no fixed array of chunks at address %d", address)
	}
	all := uint64(1)
	for k := range d.Shape {
		if all *= uint64(d.most(k)); all == 0 || all > math.MaxInt32 {
			break
		}
	}
	if count != all || all > math.MaxInt32 || count > d.file.size/uint64(entry) {
		return fmt.Errorf("the file is damaged: the index has %d chunks, but the array has %d", count, all)
	}
	if data == undefined {
		return nil
	}
	return d.fixedBlock(data, int(count), 1<<bits, entry, filtered)
}

// fixedBlock reads the data block: "FADB", version, client, owner; then entries, or if they do not fit on one page, a bitmap of used
// pages, a checksum, and pages that each have a checksum.
func (d *Dataset) fixedBlock(address uint64, count, page, entry int, filtered bool) error {
	at := address + 4 + 1 + 1 + 8
	var used []byte
	if count > page {
		pages := (count + page - 1) / page
		var err error
		if used, err = d.file.bytes(at, uint64(pages+7)/8); err != nil {
			return err
		}
		at += uint64(len(used)) + 4
	}
	for first := 0; first < count; first += page {
		n := min(page, count-first)
		p := first / page
		if used == nil || used[p/8]>>(7-p%8)&1 == 1 {
			b, err := d.file.bytes(at, uint64(n*entry))
			if err != nil {
				return err
			}
			if err := d.entries(b, first, entry, filtered); err != nil {
				return err
			}
		}
		at += uint64(n*entry) + 4
	}
	return nil
}

// entries reads consecutive entries of an array index, starting at place: the address and, if filtered, the stored size and the mask of
// skipped filters.
func (d *Dataset) entries(b []byte, place, entry int, filtered bool) error {
	number := d.numbering()
	for c := (&cursor{rest: b}); len(c.rest) > 0; place++ {
		number, outside := number(place)
		one := chunk{number: number, address: c.u64(), size: uint32(d.chunkBytes())}
		if filtered {
			size := c.uint(entry - 12)
			one.skipped = c.u32()
			if size > maxChunk {
				return fmt.Errorf("the file is damaged: chunk %d has %d bytes", number, size)
			}
			one.size = uint32(size)
		}
		if outside {
			continue
		}
		if err := d.add(one); err != nil {
			return err
		}
	}
	return nil
}

package hdf5

import (
	"fmt"
	"math/bits"
)

// tree2 is a B-tree of version 2, III.A.2.
type tree2 struct {
	file   *File
	kind   byte
	record int   // bytes
	counts int   // bytes of a child's number of records in its parent
	totals []int // by depth: bytes of the number of records in a child's subtree
	left   uint64
	visit  func(kind byte, record []byte) error
}

// records visits the records of a version 2 B-tree. It terminates for damaged trees too, since it fails after more records than the header
// claims, and the claim is limited by the size of the file.
func (f *File) records(address uint64, visit func(kind byte, record []byte) error) error {
	if address == undefined {
		return nil
	}
	b, err := f.bytes(address, 4+1+1+4+2+2+2+8+2+8)
	if err != nil {
		return err
	}
	c := &cursor{rest: b[5:]}
	t := tree2{file: f, kind: c.u8(), visit: visit}
	node, record, depth := int(c.u32()), int(c.u16()), int(c.u16())
	c.skip(2) // when nodes are split and merged
	root, count := c.u64(), int(c.u16())
	t.record, t.left = record, c.u64()
	if string(b[:4]) != "BTHD" || record == 0 || node < 10+record || depth > 16 || t.left > f.size/uint64(record) {
		return fmt.Errorf("the file is damaged: no index at address %d", address)
	}
	most := (node - 10) / record // of a leaf
	t.counts = width(uint64(most))
	all := uint64(most)
	t.totals = []int{0}
	for d := 1; d <= depth; d++ {
		pointer := 8 + t.counts + t.totals[d-1]
		most := uint64(max(0, (node-10-pointer)/(record+pointer)))
		if all > 1<<56/(most+1) {
			return fmt.Errorf("the file is damaged: the index at address %d is too deep", address)
		}
		all = (most+1)*all + most
		t.totals = append(t.totals, width(all))
	}
	if root == undefined {
		return nil
	}
	return t.node(root, count, depth)
}

// width returns the number of bytes needed for numbers up to most.
func width(most uint64) int { return (bits.Len64(most)-1)/8 + 1 }

// node reads "BTLF" or "BTIN", version, type; records; and in "BTIN", for each child, its address, its number of records, and that of its
// subtree.
func (t *tree2) node(address uint64, count, depth int) error {
	pointer := 0
	if depth > 0 {
		pointer = 8 + t.counts + t.totals[depth-1]
	}
	b, err := t.file.bytes(address, uint64(6+count*t.record+(count+1)*pointer))
	if err != nil {
		return err
	}
	want := "BTLF"
	if depth > 0 {
		want = "BTIN"
	}
	if string(b[:4]) != want || b[5] != t.kind || uint64(count) > t.left {
		return fmt.Errorf("the file is damaged: no index node at address %d", address)
	}
	t.left -= uint64(count)
	for i := range count {
		if err := t.visit(t.kind, b[6+i*t.record:6+(i+1)*t.record]); err != nil {
			return err
		}
	}
	if depth == 0 {
		return nil
	}
	c := &cursor{rest: b[6+count*t.record:]}
	for range count + 1 {
		child, n := c.u64(), int(c.uint(t.counts))
		c.skip(t.totals[depth-1])
		if n == 0 { // else a node could refer to itself endlessly
			return fmt.Errorf("the file is damaged: the index at address %d has an empty node", address)
		}
		if err := t.node(child, n, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// chunkRecords reads the version 2 B-tree of chunks of a dataset that can grow along several axes. A record holds the address; if filtered,
// the stored size and the mask of skipped filters; and the chunk's position along each axis.
func (d *Dataset) chunkRecords(address uint64) error {
	rank := len(d.Shape)
	return d.file.records(address, func(kind byte, record []byte) error {
		c := &cursor{rest: record}
		one := chunk{address: c.u64(), size: uint32(d.chunkBytes())}
		rest := len(record) - 8 - 8*rank
		switch {
		case kind == 10 && rest == 0:
		case kind == 11 && rest > 4 && rest <= 12:
			size := c.uint(rest - 4)
			if size > maxChunk {
				return fmt.Errorf("the file is damaged: a chunk has %d bytes", size)
			}
			one.size, one.skipped = uint32(size), c.u32()
		default:
			return fmt.Errorf("the file is damaged: the chunk index has type %d and records of %d bytes", kind, len(record))
		}
		for k, along := range d.layout.grid {
			at := c.u64()
			if at >= uint64(d.most(k)) && d.most(k) > 0 {
				return fmt.Errorf("the file is damaged: the index lists a chunk outside the array")
			}
			if at >= uint64(along) {
				return nil // from before the array was shrunk
			}
			one.number = one.number*along + int(at)
		}
		return d.add(one)
	})
}

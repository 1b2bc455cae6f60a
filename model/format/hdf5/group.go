package hdf5

import (
	"bytes"
	"errors"
	"fmt"
)

// link is an entry of a group.
type link struct {
	name    string
	address uint64 // of an object header
	target  string // path of a soft link, which has no address
	outside bool   // whether it is an external link, which has no address
}

// links returns the links of a group with the given messages.
func (f *File) links(messages []message) ([]link, error) {
	var links []link
	for _, m := range messages {
		c := &cursor{rest: m.data}
		switch m.kind {
		case symbolTableMessage:
			tree, heap := c.u64(), c.u64()
			names, err := f.heap(heap)
			if err != nil {
				return nil, err
			}
			if err := f.symbols(tree, names, map[uint64]bool{}, &links); err != nil {
				return nil, err
			}
		case linkInfoMessage:
			dense, err := f.dense(c)
			if err != nil {
				return nil, err
			}
			links = append(links, dense...)
		case linkMessage:
			l, err := parseLink(c)
			if err != nil {
				return nil, err
			}
			links = append(links, l)
		}
	}
	return links, nil
}

// dense returns the links of a large group, which are in a fractal heap indexed by a B-tree of names, IV.A.2.c.
func (f *File) dense(c *cursor) ([]link, error) {
	c.skip(1)
	if c.u8()&1 != 0 {
		c.skip(8) // creation order
	}
	heapAt, names := c.u64(), c.u64()
	if heapAt == undefined || c.short {
		return nil, nil
	}
	heap, err := f.fractalHeap(heapAt)
	if err != nil {
		return nil, err
	}
	var links []link
	err = f.records(names, func(kind byte, record []byte) error {
		if kind != 5 || len(record) < 4+heap.idBytes {
			return fmt.Errorf("the file is damaged: the index of link names has type %d", kind)
		}
		object, err := heap.object(record[4 : 4+heap.idBytes]) // after the hash of the name
		if err != nil {
			return err
		}
		l, err := parseLink(&cursor{rest: object})
		links = append(links, l)
		return err
	})
	return links, err
}

// parseLink reads a link message, IV.A.2.g.
func parseLink(c *cursor) (link, error) {
	c.skip(1) // version
	flags, kind := c.u8(), byte(0)
	if flags&8 != 0 {
		kind = c.u8()
	}
	if flags&4 != 0 {
		c.skip(8) // creation order
	}
	if flags&16 != 0 {
		c.skip(1) // character set
	}
	length := c.uint(1 << (flags & 3))
	if length > uint64(len(c.rest)) {
		return link{}, errors.New("the file is damaged: a link's name is longer than the link")
	}
	l := link{name: string(c.take(int(length))), outside: kind > 1}
	switch kind {
	case 0:
		l.address = c.u64()
	case 1:
		l.target = string(c.take(int(c.u16())))
	}
	if c.short {
		return link{}, errors.New("the file is damaged: a link is truncated")
	}
	return l, nil
}

// heap reads a local heap, which holds the names of an old-style group, III.D.
func (f *File) heap(address uint64) ([]byte, error) {
	b, err := f.bytes(address, 32)
	if err != nil {
		return nil, err
	}
	if string(b[:4]) != "HEAP" {
		return nil, fmt.Errorf("the file is damaged: no heap of names at address %d", address)
	}
	c := &cursor{rest: b[8:]}
	size := c.u64()
	c.skip(8) // free list
	return f.bytes(c.u64(), size)
}

// symbols reads a node of the B-tree of an old-style group and its subtree, III.A.1 and III.B. seen detects nodes that are reached twice,
// which happens only in damaged files.
func (f *File) symbols(address uint64, names []byte, seen map[uint64]bool, links *[]link) error {
	if seen[address] {
		return fmt.Errorf("the file is damaged: the group node at address %d is reached twice", address)
	}
	seen[address] = true
	head, err := f.bytes(address, 8)
	if err != nil {
		return err
	}
	count := uint64(head[6]) | uint64(head[7])<<8
	switch string(head[:4]) {
	case "SNOD":
		return f.symbolNode(address+8, count, names, links)
	case "TREE":
		b, err := f.bytes(address+24, count*16+8)
		if err != nil {
			return err
		}
		for c := (cursor{rest: b[8:]}); count > 0; count-- {
			child := c.u64()
			c.skip(8)
			if err := f.symbols(child, names, seen, links); err != nil {
				return err
			}
			if len(c.rest) == 0 {
				break
			}
		}
		return nil
	}
	return fmt.Errorf("the file is damaged: no group node at address %d", address)
}

func (f *File) symbolNode(address, count uint64, names []byte, links *[]link) error {
	const entry = 40
	b, err := f.bytes(address, count*entry)
	if err != nil {
		return err
	}
	for ; len(b) > 0; b = b[entry:] {
		c := &cursor{rest: b}
		at, header, cache := c.u64(), c.u64(), c.u32()
		if at >= uint64(len(names)) {
			return fmt.Errorf("the file is damaged: a link at address %d has no name", address)
		}
		name, _, _ := bytes.Cut(names[at:], []byte{0})
		l := link{name: string(name), address: header}
		if cache == 2 { // a soft link: read the offset of its path
			c.skip(4)
			if at := uint64(c.u32()); at < uint64(len(names)) {
				target, _, _ := bytes.Cut(names[at:], []byte{0})
				l.target = string(target)
			} else {
				return fmt.Errorf("the file is damaged: the soft link %q has no path", name)
			}
		}
		*links = append(*links, l)
	}
	return nil
}

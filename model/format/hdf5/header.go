package hdf5

import (
	"errors"
	"fmt"
)

// Types of the header messages that are read.
const (
	dataspaceMessage    = 0x01
	linkInfoMessage     = 0x02
	datatypeMessage     = 0x03
	fillMessage         = 0x05
	linkMessage         = 0x06
	externalMessage     = 0x07
	layoutMessage       = 0x08
	filterMessage       = 0x0b
	continuationMessage = 0x10
	symbolTableMessage  = 0x11
)

// message is one message of an object header.
type message struct {
	kind   int
	shared bool // whether data is a reference to the message
	data   []byte
}

// elsewhere reads a shared message from another object header, such as that of a named datatype, IV.A.1.a and IV.A.2.
func (f *File) elsewhere(m message) (message, error) {
	c := &cursor{rest: m.data}
	switch version, where := c.u8(), c.u8(); {
	case version == 1:
		c.skip(6)
	case where != 0 && where != 2:
		return m, errors.New("header messages shared through a heap are not supported; save the data again with h5py")
	}
	address := c.u64()
	if c.short {
		return m, errors.New("the file is damaged: a shared header message is truncated")
	}
	messages, err := f.messages(address)
	if err != nil {
		return m, err
	}
	if found, ok := find(messages, m.kind); ok && !found.shared {
		return found, nil
	}
	return m, fmt.Errorf("the file is damaged: no message of type %#x at address %d", m.kind, address)
}

// find returns the first message of a kind.
func find(messages []message, kind int) (message, bool) {
	for _, m := range messages {
		if m.kind == kind {
			return m, true
		}
	}
	return message{}, false
}

// block is a part of an object header.
type block struct{ address, size uint64 }

// maxBlocks limits the parts of one object header, which may refer to each other in a cycle.
const maxBlocks = 256

// messages reads the object header at an address, IV.A.1.
func (f *File) messages(address uint64) ([]message, error) {
	start, err := f.bytes(address, 16)
	if err != nil {
		return nil, err
	}
	first, perMessage := block{}, version1
	switch {
	case string(start[:4]) == "OHDR":
		first, perMessage, err = f.header2(address)
	case start[0] == 1:
		c := cursor{rest: start[8:]}
		first = block{address + 16, uint64(c.u32())}
	default:
		err = fmt.Errorf("the file is damaged: no object header at address %d", address)
	}
	if err != nil {
		return nil, err
	}
	var out []message
	blocks := []block{first}
	for i := 0; i < len(blocks); i++ {
		if i == maxBlocks {
			return nil, fmt.Errorf("the file is damaged: the object header at address %d has more than %d parts", address, maxBlocks)
		}
		b, err := f.bytes(blocks[i].address, blocks[i].size)
		if err != nil {
			return nil, err
		}
		if err := perMessage(b, &out, &blocks); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// version1 splits a block into messages: 2 bytes type, 2 bytes size, 1 byte flags, 3 bytes reserved.
func version1(b []byte, out *[]message, blocks *[]block) error {
	for c := (cursor{rest: b}); len(c.rest) >= 8; {
		kind, size, flags := int(c.u16()), int(c.u16()), c.u8()
		c.skip(3)
		data := c.take(size)
		if c.short {
			return errors.New("the file is damaged: a header message is longer than its header")
		}
		add(message{kind, flags&2 != 0, data}, 0, out, blocks)
	}
	return nil
}

// add appends a message, or for a continuation the block that it refers to, without the frame around it.
func add(m message, frame uint64, out *[]message, blocks *[]block) {
	if m.kind != continuationMessage {
		*out = append(*out, m)
		return
	}
	c := cursor{rest: m.data}
	b := block{c.u64(), c.u64()}
	if frame > 0 && b.size >= 2*frame && b.address < undefined-frame {
		b = block{b.address + frame, b.size - 2*frame}
	}
	*blocks = append(*blocks, b)
}

// header2 reads the start of a version 2 header: "OHDR", version, flags, times, attribute limits, size of the first block.
func (f *File) header2(address uint64) (block, func([]byte, *[]message, *[]block) error, error) {
	start, err := f.bytes(address, min(34, f.size-address))
	if err != nil {
		return block{}, nil, err
	}
	c := &cursor{rest: start}
	c.skip(4)
	version, flags := c.u8(), c.u8()
	if version != 2 {
		return block{}, nil, fmt.Errorf("object header version %d is not supported (only versions 1 and 2)", version)
	}
	if flags&0x20 != 0 {
		c.skip(16)
	}
	if flags&0x10 != 0 {
		c.skip(4)
	}
	size := c.uint(1 << (flags & 3))
	if c.short {
		return block{}, nil, errors.New("the file is incomplete: it ends within an object header")
	}
	used := uint64(len(start) - len(c.rest))
	return block{address + used, size}, version2(flags&4 != 0), nil
}

// version2 returns a function that splits a block into messages: 1 byte type, 2 bytes size, 1 byte flags, and 2 more bytes with creation
// order.
func version2(order bool) func([]byte, *[]message, *[]block) error {
	head := 4
	if order {
		head = 6
	}
	return func(b []byte, out *[]message, blocks *[]block) error {
		for c := (cursor{rest: b}); len(c.rest) >= head; {
			kind, size, flags := int(c.u8()), int(c.u16()), c.u8()
			c.skip(head - 4)
			data := c.take(size)
			if c.short {
				return errors.New("the file is damaged: a header message is longer than its header")
			}
			add(message{kind, flags&2 != 0, data}, 4, out, blocks) // continuation: "OCHK", messages, checksum
		}
		return nil
	}
}

package hdf5

import (
	"fmt"
	"math/bits"
)

// extensible is an extensible array, VII.D: the chunk index of a dataset that can grow along one axis. Its first elements are in the
// index block, the next ones in data blocks listed by the index block, and the rest in data blocks listed by secondary blocks. Block sizes
// double every other secondary block.
type extensible struct {
	d        *Dataset
	filtered bool
	entry    int // bytes of an element
	limit    int // elements ever set; places from here on are empty
	least    int // elements of the smallest data blocks
	page     int // elements of a page; larger data blocks are paged
	offset   int // bytes of a block's offset in the array
}

// extensibleArray reads an extensible array index.
func (d *Dataset) extensibleArray(address uint64) error {
	if address == undefined {
		return nil
	}
	b, err := d.file.bytes(address, 12+7*8)
	if err != nil {
		return err
	}
	c := &cursor{rest: b[5:]}
	e := extensible{d: d, filtered: c.u8() == 1, entry: int(c.u8())}
	maxBits, inIndex, least, pointers, pageBits := int(c.u8()), int(c.u8()), int(c.u8()), int(c.u8()), int(c.u8())
	c.skip(4 * 8) // numbers and sizes of blocks
	set := c.u64()
	c.skip(8)
	index := c.u64()
	power := func(n int) bool { return n > 0 && n&(n-1) == 0 }
	endless := 0
	for _, most := range d.max {
		if most == 0 {
			endless++
		}
	}
	if string(b[:4]) != "EAHD" || endless != 1 || e.filtered && (e.entry < 13 || e.entry > 20) || !e.filtered && e.entry != 8 ||
		!power(least) || !power(pointers) || pointers < 2 || maxBits > 40 || pageBits > 30 || maxBits < bits.Len(uint(least)) {
		return fmt.Errorf("the file is damaged: no extensible array of chunks at address %d", address)
	}
	if set > d.file.size/uint64(e.entry)+uint64(inIndex) && set > uint64(product(d.layout.grid)) {
		return fmt.Errorf("the file is damaged: the chunk index claims %d chunks", set)
	}
	e.limit, e.least, e.page, e.offset = int(set), least, 1<<pageBits, (maxBits+7)/8
	if index == undefined {
		return nil
	}
	return e.indexBlock(index, inIndex, pointers, 1+maxBits-(bits.Len(uint(least))-1))
}

// indexBlock reads "EAIB", version, client, owner; elements; addresses of data blocks; addresses of secondary blocks.
func (e *extensible) indexBlock(address uint64, elements, pointers, secondary int) error {
	direct := 2 * (pointers - 1)
	own := 2 * (bits.Len(uint(pointers)) - 1) // secondary blocks whose data blocks are listed here
	n := 14 + elements*e.entry + 8*direct + 8*max(0, secondary-own)
	b, err := e.d.file.bytes(address, uint64(n))
	if err != nil {
		return err
	}
	if string(b[:4]) != "EAIB" {
		return fmt.Errorf("the file is damaged: no index block at address %d", address)
	}
	here := min(elements, e.limit)
	if err := e.d.entries(b[14:14+here*e.entry], 0, e.entry, e.filtered); err != nil {
		return err
	}
	c := &cursor{rest: b[14+elements*e.entry:]}
	place := elements
	for s := 0; s < secondary && place < e.limit; s++ {
		blocks, each := 1<<(s/2), e.least<<((s+1)/2)
		if s >= own {
			if err := e.secondaryBlock(c.u64(), place, blocks, each); err != nil {
				return err
			}
			place += blocks * each
			continue
		}
		for range blocks {
			if err := e.dataBlock(c.u64(), place, each, nil); err != nil {
				return err
			}
			place += each
		}
	}
	return nil
}

// secondaryBlock reads "EASB", version, client, owner, offset; a bitmap of used pages if data blocks are paged; addresses of data blocks.
func (e *extensible) secondaryBlock(address uint64, place, blocks, each int) error {
	if address == undefined {
		return nil
	}
	pages := 0
	if each > e.page {
		pages = each / e.page
	}
	bitmap := blocks * ((pages + 7) / 8)
	b, err := e.d.file.bytes(address, uint64(14+e.offset+bitmap+8*blocks))
	if err != nil {
		return err
	}
	if string(b[:4]) != "EASB" {
		return fmt.Errorf("the file is damaged: no secondary block at address %d", address)
	}
	used := b[14+e.offset:][:bitmap]
	c := &cursor{rest: b[14+e.offset+bitmap:]}
	for block := range blocks {
		if place >= e.limit {
			return nil
		}
		inUse := func(page int) bool {
			bit := block*pages + page
			return used[bit/8]>>(7-bit%8)&1 == 1
		}
		if err := e.dataBlock(c.u64(), place, each, inUse); err != nil {
			return err
		}
		place += each
	}
	return nil
}

// dataBlock reads "EADB", version, client, owner, offset; then elements, or a checksum and pages that each have a checksum.
func (e *extensible) dataBlock(address uint64, place, each int, inUse func(page int) bool) error {
	if address == undefined {
		return nil
	}
	head, err := e.d.file.bytes(address, 4)
	if err != nil {
		return err
	}
	if string(head) != "EADB" {
		return fmt.Errorf("the file is damaged: no data block of the chunk index at address %d", address)
	}
	at := address + uint64(14+e.offset)
	if each <= e.page {
		return e.elements(at, place, each)
	}
	at += 4
	for page := 0; page < each/e.page && place < e.limit; page++ {
		if inUse == nil || inUse(page) {
			if err := e.elements(at, place, e.page); err != nil {
				return err
			}
		}
		at, place = at+uint64(e.page*e.entry)+4, place+e.page
	}
	return nil
}

func (e *extensible) elements(at uint64, place, n int) error {
	b, err := e.d.file.bytes(at, uint64(max(0, min(n, e.limit-place))*e.entry))
	if err != nil {
		return err
	}
	return e.d.entries(b, place, e.entry, e.filtered)
}

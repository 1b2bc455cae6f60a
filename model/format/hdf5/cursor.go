package hdf5

import "encoding/binary"

// undefined is the address of missing objects.
const undefined = ^uint64(0)

// cursor reads fields from the front of a part of the file. Reading past its end sets short and returns zeros.
type cursor struct {
	rest  []byte
	short bool
}

// take returns the next n bytes, or min(n, 8) zeros if fewer than n are left.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.short, c.rest = true, nil
		return make([]byte, min(max(n, 0), 8))
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) skip(n int)  { c.take(n) }
func (c *cursor) u8() byte    { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

// uint reads an n-byte number, n ≤ 8.
func (c *cursor) uint(n int) uint64 {
	if n > 8 {
		c.short = true
		return 0
	}
	var v uint64
	for i, b := range c.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

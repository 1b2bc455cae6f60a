package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Out is a column to write. Exactly one of Ints, Floats and Texts is set.
type Out struct {
	Name   string
	Micros bool // Ints are microseconds since 1970, UTC
	Ints   []int64
	Floats []float64
	Texts  []string
}

// groupRows is the number of rows of a group.
const groupRows = 100_000

// Write writes columns of equal length as a Parquet file: plain encoding, no compression, no nulls.
func Write(w io.Writer, columns ...Out) error {
	rows := columns[0].len()
	for _, c := range columns {
		if c.len() != rows {
			return fmt.Errorf("column %s has %d values, %s has %d", c.Name, c.len(), columns[0].Name, rows)
		}
	}
	out := &counted{w: w}
	out.write([]byte(parquetMagic))
	var groups [][]byte
	for from := 0; from < rows; from += groupRows {
		groups = append(groups, out.group(columns, from, min(rows, from+groupRows)))
	}
	footer := out.footer(columns, rows, groups)
	out.write(footer)
	out.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	out.write([]byte(parquetMagic))
	if out.err != nil {
		return fmt.Errorf("writing Parquet: %w", out.err)
	}
	return nil
}

const parquetMagic = "PAR1"

// counted counts the bytes written and keeps the first error.
type counted struct {
	w   io.Writer
	at  int64
	err error
}

func (c *counted) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
	c.at += int64(len(b))
}

func (c Out) len() int { return len(c.Ints) + len(c.Floats) + len(c.Texts) }

// physical returns the column's type in parquet.thrift.
func (c Out) physical() int64 {
	switch {
	case c.Floats != nil:
		return 5
	case c.Texts != nil:
		return 6
	}
	return 2
}

// plain returns the plainly encoded values of the rows [from, to).
func (c Out) plain(from, to int) (b []byte) {
	le := binary.LittleEndian
	switch {
	case c.Floats != nil:
		for _, v := range c.Floats[from:to] {
			b = le.AppendUint64(b, math.Float64bits(v))
		}
	case c.Texts != nil:
		for _, v := range c.Texts[from:to] {
			b = append(le.AppendUint32(b, uint32(len(v))), v...)
		}
	default:
		for _, v := range c.Ints[from:to] {
			b = le.AppendUint64(b, uint64(v))
		}
	}
	return b
}

// group writes the rows [from, to) as a group with one page per column, and returns its RowGroup.
func (c *counted) group(columns []Out, from, to int) []byte {
	rows, start := int64(to-from), c.at
	var chunks [][]byte
	for _, column := range columns {
		values := column.plain(from, to)
		size := int64(len(values))
		data := new(builder).i32(1, rows).i32(2, 0).i32(3, 3).i32(4, 3).end() // plain; no levels
		head := new(builder).i32(1, 0).i32(2, size).i32(3, size).structure(5, data).end()
		offset := c.at
		c.write(head)
		c.write(values)
		size += int64(len(head))
		meta := new(builder).i32(1, column.physical()).i32s(2, 0).texts(3, column.Name).i32(4, 0).i64(5, rows).i64(6, size).i64(7, size).i64(9, offset).end()
		chunks = append(chunks, new(builder).i64(2, offset).structure(3, meta).end())
	}
	return new(builder).structures(1, chunks).i64(2, c.at-start).i64(3, rows).end()
}

func (c *counted) footer(columns []Out, rows int, groups [][]byte) []byte {
	schema := [][]byte{new(builder).text(4, "points").i32(5, int64(len(columns))).end()}
	for _, column := range columns {
		b := new(builder).i32(1, column.physical()).i32(3, 0).text(4, column.Name)
		switch {
		case column.Texts != nil:
			b.i32(6, 0) // UTF8
		case column.Micros:
			b.i32(6, 10) // TIMESTAMP_MICROS
		}
		schema = append(schema, b.end())
	}
	return new(builder).i32(1, 1).structures(2, schema).i64(3, int64(rows)).structures(4, groups).text(6, "slotscope").end()
}

// builder writes a structure of Thrift's compact protocol. Fields must be added in ascending order.
type builder struct {
	b    []byte
	last int
}

func (b *builder) field(id, kind int) *builder {
	b.b = append(b.b, byte(id-b.last)<<4|byte(kind))
	b.last = id
	return b
}

func (b *builder) zigzag(v int64) *builder {
	b.b = binary.AppendVarint(b.b, v)
	return b
}

func (b *builder) i32(id int, v int64) *builder { return b.field(id, 5).zigzag(v) }
func (b *builder) i64(id int, v int64) *builder { return b.field(id, 6).zigzag(v) }

func (b *builder) bytes(s string) *builder {
	b.b = append(binary.AppendUvarint(b.b, uint64(len(s))), s...)
	return b
}

func (b *builder) text(id int, s string) *builder { return b.field(id, 8).bytes(s) }

func (b *builder) structure(id int, content []byte) *builder {
	b.field(id, 12)
	b.b = append(b.b, content...)
	return b
}

// list begins a list of n elements.
func (b *builder) list(id, n, kind int) *builder {
	b.field(id, 9)
	if n < 15 {
		b.b = append(b.b, byte(n)<<4|byte(kind))
	} else {
		b.b = binary.AppendUvarint(append(b.b, 0xf0|byte(kind)), uint64(n))
	}
	return b
}

func (b *builder) i32s(id int, v int64) *builder   { return b.list(id, 1, 5).zigzag(v) }
func (b *builder) texts(id int, s string) *builder { return b.list(id, 1, 8).bytes(s) }
func (b *builder) structures(id int, all [][]byte) *builder {
	b.list(id, len(all), 12)
	for _, s := range all {
		b.b = append(b.b, s...)
	}
	return b
}

func (b *builder) end() []byte { return append(b.b, 0) }

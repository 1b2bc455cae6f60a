// Package parquet reads and writes columns of numbers, text and bytes in Parquet files. It reads all encodings and codecs in use, pages of
// both versions, and decimals, dates and times by their logical type. Lists, nulls and LZO are not supported; errors name them.
//
// Names follow the Apache Parquet format, parquet.thrift, version 2.10.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/format/regular"
)

// File is an open Parquet file. It is safe for concurrent use.
type File struct {
	Columns []Column
	Groups  []Group
	Meta    map[string]string // key-value metadata

	path string
	file *os.File
	size int64
}

// Column is a leaf column.
type Column struct {
	Path     string // names from the outermost on, separated by dots
	Type     Type
	Optional int  // number of nullable names on its path
	Repeated bool // whether it is a list, which is not supported
	Length   int  // bytes of a value of FixedLength

	meaning meaning
	scale   int // digits after the point of a decimal; digits of the fraction of a second of a time: 3, 6 or 9
}

// meaning is the logical type of a column.
type meaning int

const (
	itself meaning = iota
	decimal
	date     // days since 1970
	clock    // since midnight
	instant  // since 1970, UTC
	unsigned // unsigned integer
	float16  // two bytes
	uuid
)

// meaningOf returns the logical type of a schema element: 6 converted type, 7 scale, 10 logical type, a union.
func meaningOf(e value) (m meaning, scale int) {
	scale = int(e.field(7).number)
	fraction := func(t value) int { // 2 unit, a union of 1 milli-, 2 micro- and 3 nanoseconds
		for unit, digits := range []int{0, 3, 6, 9} {
			if t.field(2).has(unit) {
				return digits
			}
		}
		return 0
	}
	switch l := e.field(10); {
	case l.has(5):
		return decimal, int(l.field(5).field(1).number)
	case l.has(6):
		return date, 0
	case l.has(7):
		return clock, fraction(l.field(7))
	case l.has(8):
		return instant, fraction(l.field(8))
	case l.has(10) && l.field(10).field(2).number != 1:
		return unsigned, 0
	case l.has(14):
		return uuid, 0
	case l.has(15):
		return float16, 0
	}
	if !e.has(6) {
		return itself, 0
	}
	switch e.field(6).number {
	case 5:
		return decimal, scale
	case 6:
		return date, 0
	case 7:
		return clock, 3
	case 8:
		return clock, 6
	case 9:
		return instant, 3
	case 10:
		return instant, 6
	case 11, 12, 13, 14:
		return unsigned, 0
	}
	return itself, 0
}

// Group is a row group, the rows of which are stored together.
type Group struct {
	Rows   int
	chunks []chunk // by column
}

// chunk is the part of a column that belongs to a group.
type chunk struct {
	codec        int
	values       int
	offset, size int64
}

// Type is a physical type.
type Type int

const (
	Boolean Type = iota
	Int32
	Int64
	int96
	Float
	Double
	ByteArray
	FixedLength
)

func (t Type) String() string {
	names := []string{"booleans", "32-bit integers", "64-bit integers", "96-bit integers", "floats", "doubles", "bytes", "bytes of fixed length"}
	if int(t) < len(names) && t >= 0 {
		return names[t]
	}
	return fmt.Sprintf("values of type %d", int(t))
}

const magic = "PAR1"

// maxFooter limits the metadata at the end of a file.
const maxFooter = 64 << 20

// Open opens a file and reads its metadata. The caller must Close it.
func Open(path string) (*File, error) {
	return regular.Open(path, func(file *os.File, size int64) (*File, error) {
		f := &File{path: path, file: file, size: size}
		return f, f.footer()
	})
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Len returns the number of rows.
func (f *File) Len() int {
	n := 0
	for _, g := range f.Groups {
		n += g.Rows
	}
	return n
}

// Column returns the index of a column by path. The error wraps model.ErrNotFound if there is none.
func (f *File) Column(path string) (int, error) {
	if i := slices.IndexFunc(f.Columns, func(c Column) bool { return c.Path == path }); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s: there is no column %q: %w", f.path, path, model.ErrNotFound)
}

// footer reads the metadata: "PAR1" … metadata, its length, "PAR1".
func (f *File) footer() error {
	if f.size < 12 {
		return errors.New("not a Parquet file")
	}
	head, err := f.bytes(0, 4)
	if err != nil {
		return err
	}
	end, err := f.bytes(f.size-8, 8)
	switch {
	case err != nil:
		return err
	case string(head) == magic && string(end[4:]) != magic:
		return errors.New("the Parquet file is incomplete: its end is missing")
	case string(end[4:]) != magic:
		return errors.New("not a Parquet file")
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > f.size-12 || length > maxFooter {
		return fmt.Errorf("the file is damaged: the metadata claims %d bytes", length)
	}
	b, err := f.bytes(f.size-8-length, length)
	if err != nil {
		return err
	}
	meta, _, err := structure(b)
	if err != nil {
		return err
	}
	return f.describe(meta)
}

func (f *File) bytes(offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 || offset > f.size || n > f.size-offset {
		return nil, fmt.Errorf("the file is damaged or incomplete: %d bytes at byte %d lie beyond its end at %d", n, offset, f.size)
	}
	b := make([]byte, n)
	_, err := f.file.ReadAt(b, offset)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// describe reads FileMetaData: 2 schema, 3 number of rows, 4 row groups, 5 key-value metadata.
func (f *File) describe(meta value) error {
	schema := meta.field(2).list
	if len(schema) == 0 {
		return errThrift
	}
	root := schema[0]
	rest, err := f.columns(schema[1:], int(root.field(5).number), nil, 0, false)
	if err != nil || len(rest) > 0 {
		return errThrift
	}
	for _, g := range meta.field(4).list {
		if err := f.group(g); err != nil {
			return err
		}
	}
	if n := meta.field(3).number; n != int64(f.Len()) {
		return fmt.Errorf("the file is damaged: it has %d rows, but its row groups have %d", n, f.Len())
	}
	f.Meta = map[string]string{}
	for _, kv := range meta.field(5).list {
		f.Meta[string(kv.field(1).bytes)] = string(kv.field(2).bytes)
	}
	return nil
}

// columns reads count elements of the schema, a tree listed depth first: 1 type, 3 repetition, 4 name, 5 number of children.
func (f *File) columns(schema []value, count int, path []string, optional int, repeated bool) ([]value, error) {
	for range count {
		if len(schema) == 0 || len(path) > maxDepth {
			return nil, errThrift
		}
		e := schema[0]
		below := append(slices.Clone(path), string(e.field(4).bytes))
		maybe, list := optional, repeated || e.field(3).number == 2
		if e.field(3).number == 1 {
			maybe++
		}
		if schema = schema[1:]; e.field(5).number > 0 {
			var err error
			if schema, err = f.columns(schema, int(e.field(5).number), below, maybe, list); err != nil {
				return nil, err
			}
			continue
		}
		c := Column{Path: strings.Join(below, "."), Type: Type(e.field(1).number), Optional: maybe, Repeated: list}
		if c.Type == FixedLength {
			c.Length = int(e.field(2).number)
		}
		if c.meaning, c.scale = meaningOf(e); c.scale < 0 || c.scale > 1000 || c.Type == FixedLength && (c.Length < 1 || c.Length > 1<<20) {
			return nil, errThrift
		}
		f.Columns = append(f.Columns, c)
	}
	return schema, nil
}

// group reads a RowGroup: 1 column chunks, 3 rows. Field 3 of a chunk is its metadata: 4 codec, 5 number of values, 7 stored bytes, 9 first
// data page, 11 dictionary page.
func (f *File) group(g value) error {
	rows := g.field(3).number
	if rows < 0 || rows > 1<<40 || len(g.field(1).list) != len(f.Columns) {
		return errors.New("the file is damaged: a row group does not have all columns")
	}
	group := Group{Rows: int(rows)}
	for k, c := range g.field(1).list {
		m := c.field(3)
		offset := m.field(9).number
		if d := m.field(11); m.has(11) && d.number > 0 {
			offset = min(offset, d.number)
		}
		one := chunk{codec: int(m.field(4).number), values: int(m.field(5).number), offset: offset, size: m.field(7).number}
		if one.offset < 0 || one.size < 0 || one.offset > f.size || one.size > f.size-one.offset {
			return fmt.Errorf("the file is damaged or incomplete: column %q lies beyond its end at %d", f.Columns[k].Path, f.size)
		}
		group.chunks = append(group.chunks, one)
	}
	f.Groups = append(f.Groups, group)
	return nil
}

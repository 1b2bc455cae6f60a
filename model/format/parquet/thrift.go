package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

// value is a value of Thrift's compact protocol, the encoding of Parquet's headers.
type value struct {
	number int64 // booleans, integers, the bits of doubles
	bytes  []byte
	list   []value
	fields map[int]value
}

// field returns a field of a structure, or the zero value if absent.
func (v value) field(id int) value { return v.fields[id] }

// has reports whether a field is present.
func (v value) has(id int) bool { _, ok := v.fields[id]; return ok }

var errThrift = errors.New("the file is damaged: a header cannot be read")

// thrift reads from the front of rest. After an error, bad is set and further values are zero.
type thrift struct {
	rest  []byte
	bad   bool
	depth int
}

// structure reads a structure and returns the rest.
func structure(b []byte) (value, []byte, error) {
	t := &thrift{rest: b}
	v := t.structure()
	if t.bad {
		return value{}, nil, errThrift
	}
	return v, t.rest, nil
}

func (t *thrift) u8() byte {
	if len(t.rest) == 0 {
		t.bad = true
		return 0
	}
	b := t.rest[0]
	t.rest = t.rest[1:]
	return b
}

func (t *thrift) varint() uint64 {
	v, n := binary.Uvarint(t.rest)
	if n <= 0 {
		t.bad = true
		return 0
	}
	t.rest = t.rest[n:]
	return v
}

func (t *thrift) zigzag() int64 {
	v := t.varint()
	return int64(v>>1) ^ -int64(v&1)
}

// maxDepth limits the nesting of structures.
const maxDepth = 32

func (t *thrift) structure() value {
	v := value{fields: map[int]value{}}
	if t.depth++; t.depth > maxDepth {
		t.bad = true
	}
	defer func() { t.depth-- }()
	id := 0
	for !t.bad {
		head := t.u8()
		kind := head & 15
		if kind == 0 {
			break
		}
		if delta := int(head >> 4); delta > 0 {
			id += delta
		} else {
			id = int(int16(t.zigzag()))
		}
		if kind <= 2 { // a boolean is its own type
			v.fields[id] = value{number: int64(2 - kind)}
		} else {
			v.fields[id] = t.value(kind)
		}
	}
	return v
}

// value reads a value of a type: 3 byte, 4 to 6 integers, 7 double, 8 bytes, 9 list, 10 set, 11 map, 12 structure.
func (t *thrift) value(kind byte) value {
	switch kind {
	case 1, 2, 3:
		return value{number: int64(int8(t.u8()))}
	case 4, 5, 6:
		return value{number: t.zigzag()}
	case 7:
		if len(t.rest) >= 8 {
			bits := binary.LittleEndian.Uint64(t.rest)
			t.rest = t.rest[8:]
			return value{number: int64(bits)}
		}
	case 8:
		if n := t.varint(); n <= uint64(len(t.rest)) {
			b := t.rest[:n]
			t.rest = t.rest[n:]
			return value{bytes: b}
		}
	case 9, 10:
		return t.sequence()
	case 12:
		return t.structure()
	}
	t.bad = true // Parquet uses no maps
	return value{}
}

func (t *thrift) sequence() value {
	head := t.u8()
	n, kind := uint64(head>>4), head&15
	if n == 15 {
		n = t.varint()
	}
	if n > uint64(len(t.rest)) || n > math.MaxInt32 { // every element takes at least one byte
		t.bad = true
	}
	if t.depth++; t.depth > maxDepth {
		t.bad = true
	}
	defer func() { t.depth-- }()
	var v value
	for range n {
		if t.bad {
			break
		}
		v.list = append(v.list, t.value(kind))
	}
	return v
}

// Package npz reads and writes NumPy files: .npy arrays and .npz archives of them. Uncompressed arrays allow random access, compressed
// ones are streamed. Sizes in a file are checked against the size of the file before they are used.
package npz

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Header is the header of an .npy array.
type Header struct {
	Kind      Kind
	Size      int // bytes of an element
	BigEndian bool
	Fortran   bool // first axis fastest
	Shape     []int
}

// Kind is the type of the elements, by NumPy's letters.
type Kind byte

const (
	Bool    Kind = 'b'
	Int     Kind = 'i'
	Uint    Kind = 'u'
	Float   Kind = 'f'
	Bytes   Kind = 'S' // text, one byte per character, padded with zeros
	Unicode Kind = 'U' // text, four bytes per character, padded with zeros
)

// Len returns the number of elements.
func (h Header) Len() int {
	n := 1
	for _, s := range h.Shape {
		n *= s
	}
	return n
}

// DType returns NumPy's name of the element type, such as "uint8", or "text".
func (h Header) DType() string {
	switch h.Kind {
	case Bool:
		return "bool"
	case Int:
		return fmt.Sprintf("int%d", 8*h.Size)
	case Uint:
		return fmt.Sprintf("uint%d", 8*h.Size)
	case Float:
		return fmt.Sprintf("float%d", 8*h.Size)
	}
	return "text"
}

const magic = "\x93NUMPY"

// maxHeader limits the text of a header. NumPy itself rejects untrusted headers of more than 10,000 characters.
const maxHeader = 1 << 16

// ReadHeader reads the header of an .npy array, versions 1 to 3, and returns its length in bytes; the elements follow.
func ReadHeader(r io.Reader) (Header, int64, error) {
	text, n, err := headerText(r)
	if err != nil {
		return Header{}, 0, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return Header{}, 0, fmt.Errorf("the .npy header %.200q cannot be read: %w", strings.TrimSpace(text), err)
	}
	return h, n, nil
}

func headerText(r io.Reader) (string, int64, error) {
	start := make([]byte, 10)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:6]) != magic {
		return "", 0, fmt.Errorf("not an .npy array: it does not start with \\x93NUMPY")
	}
	long := 0
	switch version := start[6]; version {
	case 1:
	case 2, 3: // two more bytes of length
		long = 2
	default:
		return "", 0, fmt.Errorf("version %d of the .npy format is not supported (only versions 1 to 3)", version)
	}
	width := append(start[8:10:10], make([]byte, 2)...)
	if _, err := io.ReadFull(r, width[2:2+long]); err != nil {
		return "", 0, fmt.Errorf("the file is incomplete: it ends within the .npy header")
	}
	length := binary.LittleEndian.Uint32(width)
	if length > maxHeader {
		return "", 0, fmt.Errorf("the .npy header has %d bytes (limit %d)", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", 0, fmt.Errorf("the file is incomplete: it ends within the .npy header")
	}
	return string(text), int64(10+long) + int64(length), nil
}

// parseHeader parses the Python dict {'descr': …, 'fortran_order': …, 'shape': …}.
func parseHeader(text string) (Header, error) {
	p := &literal{rest: text}
	h, seen := Header{}, map[string]bool{}
	err := p.dict(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("the key %s occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			err = h.setType(p)
		case "fortran_order":
			h.Fortran, err = p.boolean()
		case "shape":
			h.Shape, err = p.shape()
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		return err
	})
	if err == nil && len(seen) != 3 {
		err = fmt.Errorf("descr, fortran_order or shape is missing")
	}
	if err != nil {
		return Header{}, err
	}
	return h, h.checkSize()
}

// sizes are the supported element sizes in bytes, by kind.
var sizes = map[Kind][]int{Bool: {1}, Int: {1, 2, 4, 8}, Uint: {1, 2, 4, 8}, Float: {2, 4, 8}}

func (h *Header) setType(p *literal) error {
	if p.next('[') {
		return fmt.Errorf("structured arrays are not supported; save one plain array per field")
	}
	descr, err := p.text()
	if err != nil {
		return err
	}
	order, name := byte('|'), descr
	if descr != "" && strings.IndexByte("<>|=", descr[0]) >= 0 {
		order, name = descr[0], descr[1:]
	}
	if strings.HasPrefix(name, "O") {
		return fmt.Errorf("Python objects (dtype object, a pickle) are not read for safety; save the array as numbers or text")
	}
	if len(name) < 2 {
		return fmt.Errorf("unknown element type %q", descr)
	}
	h.Kind, h.BigEndian = Kind(name[0]), order == '>'
	if h.Size, err = strconv.Atoi(name[1:]); err != nil {
		return fmt.Errorf("unknown element type %q", descr)
	}
	return h.checkType(descr)
}

func (h *Header) checkType(descr string) error {
	switch h.Kind {
	case Unicode:
		if h.Size < 1 || h.Size > 1<<16 {
			return fmt.Errorf("text of %d characters is not supported (1 to 65,536)", h.Size)
		}
		h.Size *= 4
	case Bytes:
		if h.Size < 1 || h.Size > 1<<18 {
			return fmt.Errorf("text of %d bytes is not supported (1 to 262,144)", h.Size)
		}
	default:
		if !slices.Contains(sizes[h.Kind], h.Size) {
			return fmt.Errorf("element type %q is not supported; save integers, floats of 2, 4 or 8 bytes, bools or text", descr)
		}
	}
	return nil
}

// checkSize returns an error for shapes whose size in bytes exceeds 63 bits.
func (h Header) checkSize() error {
	total := int64(h.Size)
	for _, s := range h.Shape {
		if s > 0 && total > math.MaxInt64/int64(s) {
			return fmt.Errorf("shape %v is larger than any file; the header is damaged", h.Shape)
		}
		total *= int64(max(s, 1))
	}
	return nil
}

// literal parses the part of Python's syntax used in headers.
type literal struct{ rest string }

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

// next consumes c if it is the next character.
func (p *literal) next(c byte) bool {
	p.skip()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *literal) expect(c byte) error {
	if !p.next(c) {
		return fmt.Errorf("%q is missing before %.20q", c, p.rest)
	}
	return nil
}

// dict calls value for each key, which parses the value after the colon.
func (p *literal) dict(value func(key string) error) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	for !p.next('}') {
		key, err := p.text()
		if err != nil {
			return err
		}
		if err := p.expect(':'); err != nil {
			return err
		}
		if err := value(key); err != nil {
			return err
		}
		if !p.next(',') {
			return p.expect('}')
		}
	}
	return nil
}

// text parses 'a' or "a". Headers have no escapes.
func (p *literal) text() (string, error) {
	p.skip()
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", fmt.Errorf("quoted text is missing before %.20q", p.rest)
	}
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		return "", fmt.Errorf("the text %.20q has no closing quote", p.rest)
	}
	text := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	return text, nil
}

func (p *literal) boolean() (bool, error) {
	p.skip()
	for _, word := range []string{"True", "False"} {
		if rest, ok := strings.CutPrefix(p.rest, word); ok {
			p.rest = rest
			return word == "True", nil
		}
	}
	return false, fmt.Errorf("True or False is missing before %.20q", p.rest)
}

// maxAxes is NumPy's own limit.
const maxAxes = 64

// shape parses a tuple of sizes. Python 2 wrote long integers as 5L.
func (p *literal) shape() ([]int, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	shape := []int{}
	for !p.next(')') {
		p.skip()
		digits := len(p.rest) - len(bytes.TrimLeft([]byte(p.rest), "0123456789"))
		size, err := strconv.Atoi(p.rest[:digits])
		if err != nil || len(shape) == maxAxes {
			return nil, fmt.Errorf("the shape cannot be read at %.20q", p.rest)
		}
		shape, p.rest = append(shape, size), p.rest[digits:]
		p.next('L')
		if !p.next(',') {
			return shape, p.expect(')')
		}
	}
	return shape, nil
}

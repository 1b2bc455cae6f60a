// Package npz reads NumPy's files: .npy arrays and .npz archives of them. A stored array is read where it lies, a deflated one as a
// stream; nothing of a file is trusted before it was held against the file's size.
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

// Header is what an .npy array says of itself.
type Header struct {
	Kind      Kind
	Size      int // bytes of an element
	BigEndian bool
	Fortran   bool // first axis fastest
	Shape     []int
}

// Kind is what the elements are, in NumPy's letters.
type Kind byte

const (
	Bool    Kind = 'b'
	Int     Kind = 'i'
	Uint    Kind = 'u'
	Float   Kind = 'f'
	Bytes   Kind = 'S' // text, one byte a letter, filled up with zeros
	Unicode Kind = 'U' // text, four bytes a letter, filled up with zeros
)

// Len is the number of elements.
func (h Header) Len() int {
	n := 1
	for _, s := range h.Shape {
		n *= s
	}
	return n
}

// DType is the element type as NumPy names it, such as "uint8".
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

// maxHeader bounds the text of a header. NumPy itself reads no more than 10,000 letters of one that it does not trust.
const maxHeader = 1 << 16

// ReadHeader reads the header of an .npy array, versions 1 to 3, and says how many bytes it takes; the elements follow.
func ReadHeader(r io.Reader) (Header, int64, error) {
	text, n, err := headerText(r)
	if err != nil {
		return Header{}, 0, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return Header{}, 0, fmt.Errorf("the .npy header %.200q is not understood: %w", strings.TrimSpace(text), err)
	}
	return h, n, nil
}

func headerText(r io.Reader) (string, int64, error) {
	start := make([]byte, 10)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:6]) != magic {
		return "", 0, fmt.Errorf("not an .npy array: it does not begin with \\x93NUMPY")
	}
	long := 0
	switch version := start[6]; version {
	case 1:
	case 2, 3: // two more bytes of length
		long = 2
	default:
		return "", 0, fmt.Errorf("version %d of the .npy format is not read; versions 1 to 3 are", version)
	}
	width := append(start[8:10:10], make([]byte, 2)...)
	if _, err := io.ReadFull(r, width[2:2+long]); err != nil {
		return "", 0, fmt.Errorf("the file ends within the .npy header")
	}
	length := binary.LittleEndian.Uint32(width)
	if length > maxHeader {
		return "", 0, fmt.Errorf("its .npy header has %d bytes; the limit is %d", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", 0, fmt.Errorf("the file ends within the .npy header")
	}
	return string(text), int64(10+long) + int64(length), nil
}

// parseHeader reads the Python dict {'descr': …, 'fortran_order': …, 'shape': …}.
func parseHeader(text string) (Header, error) {
	p := &literal{rest: text}
	h, seen := Header{}, map[string]bool{}
	err := p.dict(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s stands there twice", key)
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
			err = fmt.Errorf("the key %q is unknown", key)
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

// sizes that elements of a kind may have.
var sizes = map[Kind][]int{Bool: {1}, Int: {1, 2, 4, 8}, Uint: {1, 2, 4, 8}, Float: {2, 4, 8}}

func (h *Header) setType(p *literal) error {
	if p.next('[') {
		return fmt.Errorf("records of several fields are not read; save one plain array per field")
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
		return fmt.Errorf("it holds Python objects (dtype object, a pickle), which are never read; save it as numbers or text")
	}
	if len(name) < 2 {
		return fmt.Errorf("the element type %q is unknown", descr)
	}
	h.Kind, h.BigEndian = Kind(name[0]), order == '>'
	if h.Size, err = strconv.Atoi(name[1:]); err != nil {
		return fmt.Errorf("the element type %q is unknown", descr)
	}
	return h.checkType(descr)
}

func (h *Header) checkType(descr string) error {
	switch h.Kind {
	case Unicode:
		if h.Size < 1 || h.Size > 1<<16 {
			return fmt.Errorf("text of %d letters is not read", h.Size)
		}
		h.Size *= 4
	case Bytes:
		if h.Size < 1 || h.Size > 1<<18 {
			return fmt.Errorf("text of %d bytes is not read", h.Size)
		}
	default:
		if !slices.Contains(sizes[h.Kind], h.Size) {
			return fmt.Errorf("elements of type %q are not read; whole numbers, floats of 2, 4 and 8 bytes, bool and text are", descr)
		}
	}
	return nil
}

// checkSize refuses shapes whose bytes a 63-bit number cannot count.
func (h Header) checkSize() error {
	total := int64(h.Size)
	for _, s := range h.Shape {
		if s > 0 && total > math.MaxInt64/int64(s) {
			return fmt.Errorf("an array of shape %v is larger than any file", h.Shape)
		}
		total *= int64(max(s, 1))
	}
	return nil
}

// literal reads the part of Python's syntax that headers are written in.
type literal struct{ rest string }

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

// next consumes c if it comes next.
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

// dict calls value for each key, which reads what follows the colon.
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

// text reads 'a' or "a"; escapes do not occur in headers.
func (p *literal) text() (string, error) {
	p.skip()
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", fmt.Errorf("text in quotes is missing before %.20q", p.rest)
	}
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		return "", fmt.Errorf("the text %.20q has no end", p.rest)
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

// maxAxes is the most axes that NumPy itself allows.
const maxAxes = 64

// shape reads a tuple of sizes; Python 2 wrote long ones as 5L.
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
			return nil, fmt.Errorf("the shape is unreadable at %.20q", p.rest)
		}
		shape, p.rest = append(shape, size), p.rest[digits:]
		p.next('L')
		if !p.next(',') {
			return shape, p.expect(')')
		}
	}
	return shape, nil
}

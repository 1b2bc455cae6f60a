package npz

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/x448/float16"
)

// MaxValues is the maximum number of elements that are converted at once. Larger arrays must be streamed.
const MaxValues = 1 << 26

// Float64s reads all elements as numbers in C order, last axis fastest. Integers beyond ±2⁵³ are rounded.
func (a *Array) Float64s() ([]float64, error) {
	get, err := a.Decoder()
	if err != nil {
		return nil, a.wrap(err)
	}
	return values(a, func(b []byte) (float64, error) { return get(b), nil })
}

// Ints reads all elements as integers in C order. Floats must be integers.
func (a *Array) Ints() ([]int, error) {
	if a.Kind == Bytes || a.Kind == Unicode {
		return nil, a.wrap(errors.New("it holds text, not integers"))
	}
	return values(a, a.integer())
}

// Strings reads an array of text in C order.
func (a *Array) Strings() ([]string, error) {
	if a.Kind != Bytes && a.Kind != Unicode {
		return nil, a.wrap(fmt.Errorf("it holds %s, not text", a.DType()))
	}
	return values(a, a.text)
}

// maxElements limits the bytes that Elements keeps in memory.
const maxElements = 1 << 30

// Elements reads the bytes of all elements in C order, at most 1 GiB.
func (a *Array) Elements() ([]byte, error) {
	if a.Bytes() > maxElements {
		return nil, a.wrap(fmt.Errorf("%d bytes in Fortran order are too many to reorder (limit %d); save it in C order with numpy.ascontiguousarray", a.Bytes(), maxElements))
	}
	r, err := a.Stream()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer // grows with the actual data
	if _, err := io.CopyN(&b, r, a.Bytes()); err != nil {
		return nil, a.wrap(err)
	}
	return turned(b.Bytes(), a.Header), atEnd(r)
}

// turned is like reorder for elements of any size.
func turned(in []byte, h Header) []byte {
	if !h.Fortran || len(h.Shape) < 2 {
		return in
	}
	out, size := make([]byte, len(in)), h.Size
	h.turn(func(from, to int) { copy(out[to*size:(to+1)*size], in[from*size:]) })
	return out
}

// values converts all elements with get.
func values[T any](a *Array, get func([]byte) (T, error)) ([]T, error) {
	if a.Len() > MaxValues {
		return nil, a.wrap(fmt.Errorf("%d elements are too many (limit %d)", a.Len(), MaxValues))
	}
	r, err := a.Stream()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []T // grows with the actual data
	block := make([]byte, max(1, 1<<15/a.Size)*a.Size)
	for left := a.Len(); left > 0; {
		part := block[:min(len(block), left*a.Size)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, a.wrap(fmt.Errorf("the file is incomplete: it ends after %d of %d elements: %w", len(out), a.Len(), err))
		}
		for ; len(part) > 0; part = part[a.Size:] {
			v, err := get(part[:a.Size])
			if err != nil {
				return nil, a.wrap(fmt.Errorf("element %d: %w", len(out), err))
			}
			out = append(out, v)
			left--
		}
	}
	return reorder(out, a.Header), atEnd(r)
}

// atEnd reads past the last element, which verifies the checksum.
func atEnd(r io.Reader) error {
	if _, err := io.ReadFull(r, make([]byte, 1)); err != io.EOF {
		return cmp.Or(err, errors.New("the file is damaged: the array is longer than its shape"))
	}
	return nil
}

// reorder converts Fortran order, first axis fastest, to C order.
func reorder[T any](in []T, h Header) []T {
	if !h.Fortran || len(h.Shape) < 2 {
		return in
	}
	out := make([]T, len(in))
	h.turn(func(from, to int) { out[to] = in[from] })
	return out
}

// turn visits all elements in Fortran order with their index in that order, from, and in C order, to.
func (h Header) turn(visit func(from, to int)) {
	index := make([]int, len(h.Shape))
	for from := range h.Len() {
		to := 0
		for k, i := range index {
			to = to*h.Shape[k] + i
		}
		visit(from, to)
		for k := range index {
			if index[k]++; index[k] < h.Shape[k] {
				break
			}
			index[k] = 0
		}
	}
}

// Decoder returns a function that decodes the bytes of one element as a number.
func (h Header) Decoder() (func([]byte) float64, error) {
	word := h.word()
	switch {
	case h.Kind == Bytes || h.Kind == Unicode:
		return nil, errors.New("it holds text, not numbers")
	case h.Kind == Bool || h.Kind == Uint:
		return func(b []byte) float64 { return float64(word(b)) }, nil
	case h.Kind == Int:
		return func(b []byte) float64 { return float64(h.signed(word(b))) }, nil
	case h.Size == 2:
		return func(b []byte) float64 { return float64(float16.Frombits(uint16(word(b))).Float32()) }, nil
	case h.Size == 4:
		return func(b []byte) float64 { return float64(math.Float32frombits(uint32(word(b)))) }, nil
	}
	return func(b []byte) float64 { return math.Float64frombits(word(b)) }, nil
}

// word returns a function that reads the bits of one element.
func (h Header) word() func([]byte) uint64 {
	order := binary.ByteOrder(binary.LittleEndian)
	if h.BigEndian {
		order = binary.BigEndian
	}
	switch h.Size {
	case 1:
		return func(b []byte) uint64 { return uint64(b[0]) }
	case 2:
		return func(b []byte) uint64 { return uint64(order.Uint16(b)) }
	case 4:
		return func(b []byte) uint64 { return uint64(order.Uint32(b)) }
	}
	return order.Uint64
}

// signed extends the sign of an element's bits.
func (h Header) signed(bits uint64) int64 {
	shift := 64 - 8*h.Size
	return int64(bits<<shift) >> shift
}

// integer returns a function that decodes the bytes of one element as an integer.
func (h Header) integer() func([]byte) (int, error) {
	word := h.word()
	switch h.Kind {
	case Int:
		return func(b []byte) (int, error) { return int(h.signed(word(b))), nil }
	case Float:
		get, _ := h.Decoder()
		return func(b []byte) (int, error) { return whole(get(b)) }
	}
	return func(b []byte) (int, error) {
		if v := word(b); v <= math.MaxInt {
			return int(v), nil
		}
		return 0, fmt.Errorf("%d is too large (limit %d)", word(b), math.MaxInt)
	}
}

func whole(v float64) (int, error) {
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, fmt.Errorf("%v is not an integer", v)
	}
	return int(v), nil
}

func (a *Array) text(b []byte) (string, error) {
	if a.Kind == Bytes {
		return string(bytes.TrimRight(b, "\x00")), nil
	}
	word := Header{Size: 4, BigEndian: a.BigEndian}.word()
	var s strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		s.WriteRune(rune(word(b)))
	}
	return strings.TrimRight(s.String(), "\x00"), nil
}

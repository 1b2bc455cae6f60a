package mat

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Numbers is a numeric array of any class, first axis fastest.
type Numbers struct {
	Name   string
	Shape  []int
	Values []float64
	Float  bool  // whether the class is double or single
	Err    error // why it cannot be read; nil if it was read
}

// All reads every numeric array of a file. Arrays of other classes are included, with Err set.
func All(content []byte) ([]Numbers, error) {
	var out []Numbers
	err := each(content, func(data []byte) error {
		parts, rest, err := heads(data)
		if err != nil {
			return err
		}
		n := Numbers{Name: string(parts[2])}
		if len(parts[0]) < 4 {
			return errEnds
		}
		n.Err = n.read(parts, rest)
		out = append(out, n)
		return nil
	})
	return out, err
}

const mxDOUBLE, mxSINGLE, mxUINT64 = 6, 7, 15

func (n *Numbers) read(parts [3][]byte, rest []byte) error {
	class := parts[0][0]
	if class < mxDOUBLE || class > mxUINT64 || parts[0][1]&8 != 0 {
		return fmt.Errorf("%q has class %s; save it as a real numeric array", n.Name, className(class))
	}
	n.Float = class == mxDOUBLE || class == mxSINGLE
	kind, data, _, err := element(rest)
	if err != nil {
		return err
	}
	decode, ok := stored[kind]
	if !ok || len(data)%decode.size != 0 {
		return fmt.Errorf("%q is stored as data type %d, which is not supported, or it is truncated", n.Name, kind)
	}
	a := Array{Data: make([]byte, len(data)/decode.size)} // checks the shape by the number of elements
	if err := a.setShape(n.Name, parts[1]); err != nil {
		return err
	}
	n.Shape, n.Values = a.Shape, make([]float64, len(a.Data))
	for i := range n.Values {
		n.Values[i] = decode.get(data[i*decode.size:])
	}
	return nil
}

// stored maps data types to decoders of numbers. Writers use a type smaller than the class if the values fit.
var stored = map[uint32]struct {
	size int
	kind byte // 'i', 'u' or 'f'
	get  func([]byte) float64
}{
	miINT8:  {1, 'i', func(b []byte) float64 { return float64(int8(b[0])) }},
	miUINT8: {1, 'u', func(b []byte) float64 { return float64(b[0]) }},
	3:       {2, 'i', func(b []byte) float64 { return float64(int16(binary.LittleEndian.Uint16(b))) }},
	4:       {2, 'u', func(b []byte) float64 { return float64(binary.LittleEndian.Uint16(b)) }},
	miINT32: {4, 'i', func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }},
	6:       {4, 'u', func(b []byte) float64 { return float64(binary.LittleEndian.Uint32(b)) }},
	7:       {4, 'f', func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	9:       {8, 'f', func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
	12:      {8, 'i', func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
	13:      {8, 'u', func(b []byte) float64 { return float64(binary.LittleEndian.Uint64(b)) }},
}

package db

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"slotscope/model"
)

// blockSteps is the number of steps of a series in one block.
const blockSteps = 256

// A block packs its samples as
//
//	form                     one byte: encoding of the values, and whether the steps have no gaps
//	count, first             uvarints: number of samples, offset of the first step in the block
//	gaps                     count − 1 uvarints: differences of successive steps; absent if the steps have no gaps
//	values                   count float32 or float64, little-endian; for times, varints of the differences
const (
	formFloat64 = 0
	formFloat32 = 1 // every value fits a float32
	formTimes   = 2
	formOf      = 0x0f
	formDense   = 0x10 // steps without gaps
)

var errDamaged = errors.New("a block of points is damaged; delete index.sqlite and the server rebuilds it from the run folders")

// packSamples packs the samples of one block in ascending order of steps; there must be at least one.
func packSamples(s []model.Sample) []byte {
	form := byte(formFloat32)
	for _, x := range s {
		if !isFloat32(x.Value) {
			form = formFloat64
			break
		}
	}
	b := packSteps(form, len(s), func(i int) int { return s[i].Step })
	for _, x := range s {
		if form == formFloat32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x.Value)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x.Value))
		}
	}
	return b
}

// isFloat32 reports whether a value survives conversion to float32; all NaNs count as one value.
func isFloat32(v float64) bool { return float64(float32(v)) == v || math.IsNaN(v) }

// packSteps returns the start of a block: its form and the steps of n samples.
func packSteps(form byte, n int, step func(int) int) []byte {
	b := make([]byte, 1, 8+9*n)
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendUvarint(b, uint64(step(0)%blockSteps))
	b[0] = form
	if step(n-1)-step(0) == n-1 {
		b[0] |= formDense
		return b
	}
	for i := 1; i < n; i++ {
		b = binary.AppendUvarint(b, uint64(step(i)-step(i-1)))
	}
	return b
}

// steps is the steps of a block's samples: n of them, starting at first.
type steps struct {
	n, first int
	gaps     []uint16 // differences of successive steps; nil if all are 1
}

// each calls take with the index and step of every sample.
func (s steps) each(take func(i, step int)) {
	step := s.first
	for i := range s.n {
		switch {
		case i > 0 && s.gaps == nil:
			step++
		case i > 0:
			step += int(s.gaps[i-1])
		}
		take(i, step)
	}
}

// unpackSteps splits a block into its form, its steps and the bytes of its values.
func unpackSteps(block int, data []byte) (form byte, s steps, values []byte, err error) {
	if len(data) == 0 {
		return 0, s, nil, errDamaged
	}
	form, rest := data[0], data[1:]
	next := func() int {
		v, size := binary.Uvarint(rest)
		if size <= 0 || v > blockSteps {
			err = errDamaged
			return 0
		}
		rest = rest[size:]
		return int(v)
	}
	s.n, s.first = next(), block*blockSteps+next()
	if s.n == 0 {
		err = errDamaged
	}
	if form&formDense == 0 && err == nil {
		s.gaps = make([]uint16, s.n-1)
		for i := range s.gaps {
			s.gaps[i] = uint16(next())
		}
	}
	return form & formOf, s, rest, err
}

// unpackSamples appends the samples of a block with steps in [from, to] to dst.
func unpackSamples(dst []model.Sample, block int, data []byte, from, to int) ([]model.Sample, error) {
	form, steps, values, err := unpackSteps(block, data)
	size := 8
	if form == formFloat32 {
		size = 4
	}
	if err != nil || form == formTimes || len(values) != size*steps.n {
		return dst, errors.Join(err, errDamaged)
	}
	if form == formFloat32 && steps.gaps == nil { // the common case
		first, last := max(0, from-steps.first), min(steps.n, to-steps.first+1)
		n := len(dst)
		dst = slices.Grow(dst, max(0, last-first))[:n+max(0, last-first)]
		for i := range dst[n:] {
			dst[n+i] = model.Sample{Step: steps.first + first + i, Value: float64(math.Float32frombits(binary.LittleEndian.Uint32(values[4*(first+i):])))}
		}
		return dst, nil
	}
	steps.each(func(i, step int) {
		if step < from || step > to {
			return
		}
		v := 0.0
		if size == 4 {
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:])))
		} else {
			v = math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:]))
		}
		dst = append(dst, model.Sample{Step: step, Value: v})
	})
	return dst, nil
}

// stamp is the time at which a step was measured, in nanoseconds since 1970.
type stamp struct {
	step int
	at   int64
}

// packTimes packs the stamps of one block.
func packTimes(s []stamp) []byte {
	b := packSteps(formTimes, len(s), func(i int) int { return s[i].step })
	before := int64(0)
	for _, x := range s {
		b = binary.AppendVarint(b, x.at-before)
		before = x.at
	}
	return b
}

// unpackTimes appends the stamps of a block with steps in [from, to] to dst.
func unpackTimes(dst []stamp, block int, data []byte, from, to int) ([]stamp, error) {
	form, steps, values, err := unpackSteps(block, data)
	if err != nil || form != formTimes {
		return dst, errDamaged
	}
	at := int64(0)
	steps.each(func(_, step int) {
		by, size := binary.Varint(values)
		if size <= 0 {
			err = errDamaged
			return
		}
		values, at = values[size:], at+by
		if step >= from && step <= to {
			dst = append(dst, stamp{step, at})
		}
	})
	return dst, err
}

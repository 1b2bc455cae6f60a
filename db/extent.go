package db

import (
	"encoding/binary"
	"math"
	"slices"

	"slotscope/model"
)

// extent summarises neighbouring samples for a chart: the extremes of the finite ones, the last, and the first non-finite one.
// A sample of step 0 means none.
type extent struct{ min, max, last, odd model.Sample }

// add includes a later sample.
func (e *extent) add(s model.Sample) {
	e.last = s
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		if e.odd.Step == 0 {
			e.odd = s
		}
		return
	}
	if e.min.Step == 0 || s.Value < e.min.Value {
		e.min = s
	}
	if e.max.Step == 0 || s.Value > e.max.Value {
		e.max = s
	}
}

// join includes a later extent.
func (e *extent) join(later *extent) {
	if m := later.min; m.Step > 0 && (e.min.Step == 0 || m.Value < e.min.Value) {
		e.min = m
	}
	if m := later.max; m.Step > 0 && (e.max.Step == 0 || m.Value > e.max.Value) {
		e.max = m
	}
	if e.odd.Step == 0 {
		e.odd = later.odd
	}
	if later.last.Step > 0 {
		e.last = later.last
	}
}

// samples appends the distinct samples of an extent, in ascending order of steps, to dst.
func (e *extent) samples(dst []model.Sample) []model.Sample {
	from := len(dst)
	for _, s := range []model.Sample{e.min, e.max, e.odd, e.last} {
		if s.Step > 0 && !slices.ContainsFunc(dst[from:], func(x model.Sample) bool { return x.Step == s.Step }) {
			dst = append(dst, s)
		}
	}
	slices.SortFunc(dst[from:], func(a, b model.Sample) int { return a.Step - b.Step })
	return dst
}

// span is the extent of one span of steps; n is its index among the spans of its level, from step 0.
type span struct {
	extent
	n int
}

// A part packs its spans one after the other, each as
//
//	n mod 64, holds          two bytes; holds flags which of the following are present and whether values are float32
//	min, max, last, odd      each one byte for the step's offset in the span, then the value; last is omitted if it equals min or max
const (
	holdsMin = 1 << iota
	holdsLast
	lastIsMin
	lastIsMax
	holdsOdd
	holdsFloat32
)

// packSpans packs the spans of one part; width is that of a span, in steps.
func packSpans(spans []span, width int) []byte {
	b := make([]byte, 0, 24*len(spans))
	for i := range spans {
		b = spans[i].pack(b, width)
	}
	return b
}

func (s *span) pack(b []byte, width int) []byte {
	holds := byte(0)
	if isFloat32(s.min.Value) && isFloat32(s.max.Value) && isFloat32(s.last.Value) {
		holds |= holdsFloat32
	}
	if s.min.Step > 0 {
		holds |= holdsMin
	}
	switch s.last.Step {
	case s.min.Step:
		holds |= lastIsMin
	case s.max.Step:
		holds |= lastIsMax
	default:
		holds |= holdsLast
	}
	if s.odd.Step > 0 {
		holds |= holdsOdd
	}
	b = append(b, byte(s.n%partSpans), holds)
	put := func(x model.Sample) {
		b = append(b, byte(x.Step-s.n*width))
		if holds&holdsFloat32 != 0 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x.Value)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x.Value))
		}
	}
	if holds&holdsMin != 0 {
		put(s.min)
		put(s.max)
	}
	if holds&holdsLast != 0 {
		put(s.last)
	}
	if holds&holdsOdd != 0 {
		put(s.odd) // NaN and infinities are float32 too
	}
	return b
}

// unpackSpans calls take with the spans of a part, in order. A span is valid only during the call.
func unpackSpans(data []byte, part, width int, take func(*span)) error {
	var s span
	for len(data) > 0 {
		if len(data) < 2 {
			return errDamaged
		}
		s = span{n: part*partSpans + int(data[0])}
		holds := data[1]
		data = data[2:]
		get := func(into *model.Sample) {
			size := 9
			if holds&holdsFloat32 != 0 {
				size = 5
			}
			if len(data) < size {
				data = nil
				return
			}
			into.Step = s.n*width + int(data[0])
			if size == 5 {
				into.Value = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[1:])))
			} else {
				into.Value = math.Float64frombits(binary.LittleEndian.Uint64(data[1:]))
			}
			data = data[size:]
		}
		if holds&holdsMin != 0 {
			get(&s.min)
			get(&s.max)
		}
		if holds&holdsLast != 0 {
			get(&s.last)
		}
		if holds&holdsOdd != 0 {
			get(&s.odd)
		}
		switch {
		case holds&lastIsMin != 0:
			s.last = s.min
		case holds&lastIsMax != 0:
			s.last = s.max
		}
		if s.last.Step == 0 {
			return errDamaged
		}
		take(&s)
	}
	return nil
}

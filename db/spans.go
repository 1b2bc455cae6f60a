package db

import (
	"errors"

	"slotscope/model"
)

// Levels of spans: how many steps a span of each is wide, the widest first. A step beyond a span's beginning fits into a byte.
var levels = []struct{ level, width int }{{2, 256}, {1, 16}}

// partSpans is how many spans one row of spans holds.
const partSpans = 64

// columns are the extents of a series over spans of a width, from the widest level of spans that is not wider.
func (r *reader) columns(key int64, width, first, last int) (samples []model.Sample, err error) {
	var open extent
	at := -1 // which span of width is open
	into := func(step int) *extent {
		if n := step / width; n != at {
			samples = open.samples(samples)
			open, at = extent{}, n
		}
		return &open
	}
	raw := func(first, last int) error {
		return r.raw(key, first, last, func(block []model.Sample) {
			for _, s := range block {
				into(s.Step).add(s)
			}
		})
	}
	for _, l := range levels {
		from, to := (first+l.width-1)/l.width, (last+1)/l.width // whole spans lie in [from, to)
		if l.width > width || from >= to {
			continue
		}
		err = errors.Join(
			raw(first, from*l.width-1),
			r.spans(key, l.level, l.width, from, to, func(s *span) { into(s.n * l.width).join(&s.extent) }),
			raw(to*l.width, last))
		return open.samples(samples), err
	}
	err = raw(first, last)
	return open.samples(samples), err
}

// spans hands over the spans [from, to) of a level.
func (r *reader) spans(key int64, level, width, from, to int, take func(*span)) error {
	return r.blobs(level, key, from/partSpans, (to-1)/partSpans, func(part int, data []byte) error {
		return unpackSpans(data, part, width, func(s *span) {
			if s.n >= from && s.n < to {
				take(s)
			}
		})
	})
}

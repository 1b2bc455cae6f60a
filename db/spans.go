package db

import (
	"errors"

	"slotscope/model"
)

// levels are the levels of spans with their widths in steps, the widest first. The offset of a step in its span fits into a byte.
var levels = []struct{ level, width int }{{2, 256}, {1, 16}}

// partSpans is the number of spans in one part, which is stored as one blob.
const partSpans = 64

// columns returns the extents of a series over spans of a width, read from the widest level of spans that is not wider.
func (r *reader) columns(key int64, width, first, last int) (samples []model.Sample, err error) {
	var open extent
	at := -1 // index of the open span of this width
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

// spans calls take with the spans [from, to) of a level.
func (r *reader) spans(key int64, level, width, from, to int, take func(*span)) error {
	return r.blobs(level, key, from/partSpans, (to-1)/partSpans, func(part int, data []byte) error {
		return unpackSpans(data, part, width, func(s *span) {
			if s.n >= from && s.n < to {
				take(s)
			}
		})
	})
}

package db

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"slotscope/model"
)

// spanSteps is how many steps one row of spans sums up.
const spanSteps = 16

// extent is what a chart needs of neighbouring samples: the extremes of the finite ones, the last, and the first that is
// not finite. A sample of step 0 stands for none.
type extent struct{ min, max, last, odd model.Sample }

// add takes in a later sample.
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

// join takes in a later extent.
func (e *extent) join(later extent) {
	for _, s := range []model.Sample{later.min, later.max, later.odd, later.last} {
		if s.Step > 0 {
			e.add(s)
		}
	}
}

// samples are the distinct samples of an extent, by step.
func (e *extent) samples() []model.Sample {
	out := []model.Sample{}
	for _, s := range []model.Sample{e.min, e.max, e.odd, e.last} {
		if s.Step > 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b model.Sample) int { return a.Step - b.Step })
	return slices.CompactFunc(out, func(a, b model.Sample) bool { return a.Step == b.Step })
}

// columnWidth is the least power of two such that steps first to last touch at most that many spans of it. Spans of a
// width begin at its multiples, so those of a growing series stay as they are until the width doubles.
func columnWidth(columns, first, last int) int {
	width := 1
	for last/width-first/width+1 > columns && width < 1<<40 {
		width *= 2
	}
	return width
}

// columns are the extents of a series over spans of a width, from rows of spans where those are finer.
func (r *reader) columns(key int64, width, first, last int) (samples []model.Sample, err error) {
	var open extent
	at := -1 // which span of width is open
	into := func(step int, take func()) {
		if n := step / width; n != at {
			samples = append(samples, open.samples()...)
			open, at = extent{}, n
		}
		take()
	}
	raw := func(s model.Sample) { into(s.Step, func() { open.add(s) }) }
	from, to := (first+spanSteps-1)/spanSteps, (last+1)/spanSteps // whole spans lie in [from, to)
	if width < spanSteps || from >= to {
		err = r.raw(key, first, last, raw)
	} else {
		err = errors.Join(
			r.raw(key, first, from*spanSteps-1, raw),
			r.spans(key, from, to, func(n int, e extent) { into(n*spanSteps, func() { open.join(e) }) }),
			r.raw(key, to*spanSteps, last, raw))
	}
	return append(samples, open.samples()...), err
}

const spanColumns = "span, min, min_step, max, max_step, last, last_kind, last_step, odd_kind, odd_step"

func scanSpan(row interface{ Scan(...any) error }) (n int, e extent, err error) {
	var least, most, last sql.NullFloat64
	var lastKind, oddKind int
	err = row.Scan(&n, &least, &e.min.Step, &most, &e.max.Step, &last, &lastKind, &e.last.Step, &oddKind, &e.odd.Step)
	e.min.Value, e.max.Value = least.Float64, most.Float64
	e.last.Value, e.odd.Value = decode(last, lastKind), decode(sql.NullFloat64{}, oddKind)
	return n, e, err
}

// spans hands over the rows [from, to).
func (r *reader) spans(key int64, from, to int, take func(int, extent)) error {
	rows, err := r.tx.QueryContext(r.ctx, "SELECT "+spanColumns+` FROM spans
		WHERE run = ? AND series = ? AND span >= ? AND span < ? ORDER BY span`, r.run, key, from, to)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		n, e, err := scanSpan(rows)
		if err != nil {
			return err
		}
		take(n, e)
	}
	return rows.Err()
}

// openSpan is a row of spans while its samples arrive.
type openSpan struct {
	extent
	series int64
	n      int // its number
}

// span is the open span of a series for a step; the one before it is saved.
func (w *writer) span(name string, step int) (*openSpan, error) {
	s := w.spans[name]
	n := step / spanSteps
	switch {
	case s == nil:
		key, err := seriesKey(w.ctx, w.tx, name)
		if err != nil {
			return nil, err
		}
		s = &openSpan{series: key, n: n}
		w.spans[name] = s
		return s, s.load(w)
	case s.n != n:
		if err := s.save(w); err != nil {
			return nil, err
		}
		s.extent, s.n = extent{}, n
	}
	return s, nil
}

// load goes on with what earlier transactions have stored of the span.
func (s *openSpan) load(w *writer) error {
	_, e, err := scanSpan(w.tx.QueryRowContext(w.ctx, "SELECT "+spanColumns+" FROM spans WHERE run = ? AND series = ? AND span = ?", w.run, s.series, s.n))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	s.extent = e
	return err
}

func (s *openSpan) save(w *writer) error {
	return saveSpan(w.ctx, w.tx, w.run, s.series, s.n, s.extent)
}

func saveSpan(ctx context.Context, tx *sql.Tx, run, series int64, n int, e extent) error {
	least, _ := encode(e.min.Value)
	most, _ := encode(e.max.Value)
	last, lastKind := encode(e.last.Value)
	_, oddKind := encode(e.odd.Value)
	_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO spans (run, series, "+spanColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		run, series, n, least, e.min.Step, most, e.max.Step, last, lastKind, e.last.Step, oddKind, e.odd.Step)
	return err
}

// rebuildSpan sums up anew the points of one span that are left.
func rebuildSpan(ctx context.Context, tx *sql.Tx, run, series int64, n int) error {
	r := &reader{ctx: ctx, tx: tx, run: run}
	var e extent
	if err := r.raw(series, max(1, n*spanSteps), (n+1)*spanSteps-1, e.add); err != nil || e.last.Step == 0 {
		return err
	}
	return saveSpan(ctx, tx, run, series, n, e)
}

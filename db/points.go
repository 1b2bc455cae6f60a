package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"slotscope/model"
)

const (
	pageSteps  = 5_000  // of a raw page where the query sets no limit
	mostSteps  = 50_000 // of a raw page
	mostColumn = 10_000
)

// AddPoints stores points of a run and moves its cursor, in one transaction. Points at or before the last step stored are
// passed over, so that no step is stored twice; the cursor's Head becomes the last step stored.
func (d *DB) AddPoints(ctx context.Context, id string, points []model.Point, c model.Cursor) error {
	err := d.tx(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		before, err := readCursor(ctx, tx, run)
		if err != nil {
			return err
		}
		w := &writer{ctx: ctx, tx: tx, run: run, head: before.Head}
		if err := w.add(points); err != nil {
			return err
		}
		c.Head = w.head
		return writeCursor(ctx, tx, run, c)
	})
	if err != nil {
		return fmt.Errorf("store points of run %s: %w", id, err)
	}
	return nil
}

// writer adds points of one run within a transaction.
type writer struct {
	ctx  context.Context
	tx   *sql.Tx
	run  int64
	head int

	step, point *sql.Stmt
	spans       map[string]*openSpan // of each series, the span that is being filled
}

func (w *writer) add(points []model.Point) (err error) {
	if w.step, err = w.tx.PrepareContext(w.ctx, "INSERT INTO steps (run, step, at) VALUES (?, ?, ?)"); err != nil {
		return err
	}
	defer w.step.Close()
	if w.point, err = w.tx.PrepareContext(w.ctx, "INSERT INTO points (run, series, step, value, kind) VALUES (?, ?, ?, ?, ?)"); err != nil {
		return err
	}
	defer w.point.Close()
	w.spans = map[string]*openSpan{}
	for _, p := range points {
		if p.Step <= w.head {
			continue
		}
		if err := w.one(p); err != nil {
			return fmt.Errorf("step %d: %w", p.Step, err)
		}
		w.head = p.Step
	}
	for _, s := range w.spans {
		if err := s.save(w); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) one(p model.Point) error {
	if _, err := w.step.ExecContext(w.ctx, w.run, p.Step, p.Time.UnixNano()); err != nil {
		return err
	}
	for name, v := range p.Values {
		s, err := w.span(name, p.Step)
		if err != nil {
			return err
		}
		value, kind := encode(v)
		if _, err := w.point.ExecContext(w.ctx, w.run, s.series, p.Step, value, kind); err != nil {
			return err
		}
		s.add(model.Sample{Step: p.Step, Value: v})
	}
	return nil
}

// encode splits a value into what SQLite can hold: a number, or its kind.
func encode(v float64) (sql.NullFloat64, int) {
	switch {
	case math.IsNaN(v):
		return sql.NullFloat64{}, 1
	case math.IsInf(v, 1):
		return sql.NullFloat64{}, 2
	case math.IsInf(v, -1):
		return sql.NullFloat64{}, 3
	}
	return sql.NullFloat64{Float64: v, Valid: true}, 0
}

func decode(value sql.NullFloat64, kind int) float64 {
	switch kind {
	case 1:
		return math.NaN()
	case 2:
		return math.Inf(1)
	case 3:
		return math.Inf(-1)
	}
	return value.Float64
}

// Points answers a query from one moment of the index.
func (d *DB) Points(ctx context.Context, id string, q model.PointQuery) (page model.PointPage, err error) {
	if err := check(q); err != nil {
		return page, err
	}
	err = d.view(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		page, err = (&reader{ctx: ctx, tx: tx, run: run}).page(q)
		return err
	})
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		err = fmt.Errorf("read points of run %s: %w", id, err)
	}
	return page, err
}

func check(q model.PointQuery) error {
	bad := model.Invalid{}
	for name, v := range map[string]int{"since": q.Since, "until": q.Until, "columns": q.Columns, "limit": q.Limit, "attempt": q.Attempt} {
		if v < 0 {
			bad[name] = fmt.Sprintf("%d is below 0", v)
		}
	}
	return bad.OrNil()
}

// reader reads one run within a transaction.
type reader struct {
	ctx context.Context
	tx  *sql.Tx
	run int64
}

func (r *reader) page(q model.PointQuery) (page model.PointPage, err error) {
	c, err := readCursor(r.ctx, r.tx, r.run)
	if err != nil {
		return page, err
	}
	page = model.PointPage{Attempt: c.Attempt, Head: c.Head, Series: map[string][]model.Sample{}}
	if page.Resumed, err = outlived(r.ctx, r.tx, r.run, q.Attempt, c.Attempt); err != nil {
		return page, err
	}
	first, last := q.Since+1, c.Head
	if q.Until > 0 {
		last = min(last, q.Until)
	}
	if q.Columns == 0 {
		if last, err = r.limit(first, last, q.Limit); err != nil {
			return page, err
		}
	}
	page.Last = max(last, min(q.Since, c.Head))
	if first > last {
		return page, nil
	}
	if page.Count, err = countSteps(r.ctx, r.tx, r.run, first, last); err != nil {
		return page, err
	}
	return page, r.fill(page.Series, q, first, last)
}

// limit is the last step of a raw page.
func (r *reader) limit(first, last, limit int) (int, error) {
	if limit == 0 {
		limit = pageSteps
	}
	limit = min(limit, mostSteps)
	if last-first < limit {
		return last, nil
	}
	var end int
	err := r.tx.QueryRowContext(r.ctx, "SELECT step FROM steps WHERE run = ? AND step BETWEEN ? AND ? ORDER BY step LIMIT 1 OFFSET ?",
		r.run, first, last, limit-1).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return last, nil
	}
	return end, err
}

// fill reads the series that are asked for.
func (r *reader) fill(into map[string][]model.Sample, q model.PointQuery, first, last int) error {
	all, err := allSeries(r.ctx, r.tx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if len(q.Names) > 0 && !slices.Contains(q.Names, s.name) {
			continue
		}
		samples, err := r.series(s.key, q.Columns, first, last)
		if err != nil {
			return fmt.Errorf("series %s: %w", s.name, err)
		}
		if len(samples) > 0 {
			into[s.name] = samples
		}
	}
	return nil
}

func (r *reader) series(key int64, columns, first, last int) (samples []model.Sample, err error) {
	if columns > 0 {
		if width := columnWidth(min(columns, mostColumn), first, last); width > 1 {
			return r.columns(key, width, first, last)
		}
	}
	err = r.raw(key, first, last, func(s model.Sample) { samples = append(samples, s) })
	return samples, err
}

// raw hands over every sample from first to last.
func (r *reader) raw(key int64, first, last int, to func(model.Sample)) error {
	if first > last {
		return nil
	}
	rows, err := r.tx.QueryContext(r.ctx, `SELECT step, value, kind FROM points
		WHERE run = ? AND series = ? AND step BETWEEN ? AND ? ORDER BY step`, r.run, key, first, last)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var step, kind int
		var value sql.NullFloat64
		if err := rows.Scan(&step, &value, &kind); err != nil {
			return err
		}
		to(model.Sample{Step: step, Value: decode(value, kind)})
	}
	return rows.Err()
}

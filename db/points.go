package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"slotscope/model"
)

const (
	pageSteps = 5_000  // steps in a raw page if the query sets no limit
	mostSteps = 50_000 // limit of steps in a raw page
)

// AddPoints stores points of a run and moves its cursor, in one transaction. Points at or before the last stored step are
// skipped, so that no step is stored twice; the cursor's Head becomes the last stored step.
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
		w, err := newWriter(ctx, tx, run)
		if err != nil {
			return err
		}
		defer w.close()
		fresh := after(points, before.Head)
		if err := w.add(fresh); err != nil {
			return err
		}
		c.Head = before.Head
		if len(fresh) > 0 {
			c.Head = fresh[len(fresh)-1].Step
		}
		if err := mergeLast(ctx, tx, run, fresh); err != nil {
			return err
		}
		return writeCursor(ctx, tx, run, c)
	})
	if err != nil {
		return fmt.Errorf("store points of run %s: %w", id, err)
	}
	return nil
}

// after returns the points after step head with strictly ascending steps.
func after(points []model.Point, head int) (fresh []model.Point) {
	for _, p := range points {
		if p.Step > head {
			fresh = append(fresh, p)
			head = p.Step
		}
	}
	return fresh
}

// Points answers a query from a consistent snapshot of the index.
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

// Walk calls take with every sample of the named series up to step until, series by series, each in blocks in ascending order of steps.
// A block is valid only during the call. If until is 0, Walk goes to the last stored step.
func (d *DB) Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error {
	err := d.view(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		c, err := readCursor(ctx, tx, run)
		if err != nil {
			return err
		}
		if until == 0 || until > c.Head {
			until = c.Head
		}
		all, err := allSeries(ctx, tx)
		if err != nil {
			return err
		}
		r := &reader{ctx: ctx, tx: tx, run: run, head: c.Head}
		for _, s := range all {
			if !slices.Contains(names, s.name) {
				continue
			}
			if err := r.raw(s.key, 1, until, func(block []model.Sample) {
				if len(block) > 0 {
					take(s.name, block)
				}
			}); err != nil {
				return fmt.Errorf("series %s: %w", s.name, err)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		err = fmt.Errorf("read points of run %s: %w", id, err)
	}
	return err
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

	head int // last stored step
}

func (r *reader) page(q model.PointQuery) (page model.PointPage, err error) {
	c, err := readCursor(r.ctx, r.tx, r.run)
	if err != nil {
		return page, err
	}
	r.head = c.Head
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
	if page.Count, err = r.countSteps(first, last); err != nil {
		return page, err
	}
	return page, r.fill(page.Series, q, first, last)
}

// limit returns the last step of a raw page.
func (r *reader) limit(first, last, limit int) (int, error) {
	if limit == 0 {
		limit = pageSteps
	}
	limit = min(limit, mostSteps)
	if last-first < limit {
		return last, nil
	}
	return r.stepAt(first, last, limit)
}

// fill reads the queried series.
func (r *reader) fill(into map[string][]model.Sample, q model.PointQuery, first, last int) error {
	all, err := allSeries(r.ctx, r.tx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if len(q.Names) > 0 && !slices.Contains(q.Names, s.name) {
			continue
		}
		samples, err := r.series(s.key, q.Width(r.head), first, last)
		if err != nil {
			return fmt.Errorf("series %s: %w", s.name, err)
		}
		if len(samples) > 0 {
			into[s.name] = samples
		}
	}
	return nil
}

func (r *reader) series(key int64, width, first, last int) (samples []model.Sample, err error) {
	if width > 1 {
		return r.columns(key, width, first, last)
	}
	err = r.blobs(0, key, first/blockSteps, last/blockSteps, func(n int, data []byte) (err error) {
		if samples == nil && len(data) > 2*blockSteps {
			samples = make([]model.Sample, 0, last-first+1) // assume the density of the first block
		}
		samples, err = unpackSamples(samples, n, data, first, last)
		return err
	})
	return samples, err
}

// raw calls take with every sample from step first to last, block by block. A block is valid only during the call.
func (r *reader) raw(key int64, first, last int, take func([]model.Sample)) error {
	if first > last {
		return nil
	}
	block := make([]model.Sample, 0, blockSteps)
	return r.blobs(0, key, first/blockSteps, last/blockSteps, func(n int, data []byte) (err error) {
		if block, err = unpackSamples(block[:0], n, data, first, last); err == nil {
			take(block)
		}
		return err
	})
}

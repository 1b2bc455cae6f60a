package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"slotscope/model"
)

// timesKey is the key of the series of measurement times.
const timesKey = 0

// writer changes the blocks and spans of one run within a transaction.
type writer struct {
	ctx context.Context
	tx  *sql.Tx
	run int64

	get, put *sql.Stmt
}

func newWriter(ctx context.Context, tx *sql.Tx, run int64) (w *writer, err error) {
	w = &writer{ctx: ctx, tx: tx, run: run}
	if w.get, err = tx.PrepareContext(ctx, "SELECT data FROM blobs WHERE key = ?"); err != nil {
		return nil, err
	}
	if w.put, err = tx.PrepareContext(ctx, "INSERT OR REPLACE INTO blobs (key, count, data) VALUES (?, ?, ?)"); err != nil {
		w.get.Close()
		return nil, err
	}
	return w, nil
}

func (w *writer) close() {
	w.get.Close()
	w.put.Close()
}

// load returns a blob, nil if there is none.
func (w *writer) load(level int, series int64, n int) (data []byte, err error) {
	err = w.get.QueryRowContext(w.ctx, blobKey(w.run, level, series, n)).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return data, err
}

func (w *writer) save(level int, series int64, n, count int, data []byte) error {
	_, err := w.put.ExecContext(w.ctx, blobKey(w.run, level, series, n), count, data)
	return err
}

// cut removes the blobs of a series from number n on.
func (w *writer) cut(level int, series int64, n int) error {
	_, err := w.tx.ExecContext(w.ctx, "DELETE FROM blobs WHERE key BETWEEN ? AND ?", blobKey(w.run, level, series, n), blobKey(w.run, level, series, 1<<numberBits-1))
	return err
}

// add appends points, which must all follow the stored ones.
func (w *writer) add(points []model.Point) error {
	if len(points) == 0 {
		return nil
	}
	times := make([]stamp, len(points))
	series := map[string][]model.Sample{}
	for i, p := range points {
		times[i] = stamp{p.Step, p.Time.UnixNano()}
		for name, v := range p.Values {
			series[name] = append(series[name], model.Sample{Step: p.Step, Value: v})
		}
	}
	if err := w.addTimes(times); err != nil {
		return fmt.Errorf("times: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		key, err := seriesKey(w.ctx, w.tx, name)
		if err == nil {
			err = fits(w.run, key, points[len(points)-1].Step)
		}
		if err == nil {
			err = errors.Join(w.addSamples(key, series[name]), w.addSpans(key, series[name]))
		}
		if err != nil {
			return fmt.Errorf("series %s: %w", name, err)
		}
	}
	return nil
}

// runsOf calls take with each run of consecutive elements that share a number; first marks the run that may continue a stored one.
func runsOf[T any](all []T, number func(T) int, take func(n int, part []T, first bool) error) error {
	for from := 0; from < len(all); {
		n, to := number(all[from]), from+1
		for to < len(all) && number(all[to]) == n {
			to++
		}
		if err := take(n, all[from:to], from == 0); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (w *writer) addTimes(times []stamp) error {
	return runsOf(times, func(s stamp) int { return s.step / blockSteps }, func(block int, part []stamp, first bool) error {
		if first {
			data, err := w.load(0, timesKey, block)
			if data != nil {
				var before []stamp
				before, err = unpackTimes(nil, block, data, 0, part[0].step-1)
				part = append(before, part...)
			}
			if err != nil {
				return err
			}
		}
		return w.save(0, timesKey, block, len(part), packTimes(part))
	})
}

func (w *writer) addSamples(key int64, samples []model.Sample) error {
	return runsOf(samples, func(s model.Sample) int { return s.Step / blockSteps }, func(block int, part []model.Sample, first bool) error {
		if first {
			data, err := w.load(0, key, block)
			if data != nil {
				var before []model.Sample
				before, err = unpackSamples(nil, block, data, 0, part[0].Step-1)
				part = append(before, part...)
			}
			if err != nil {
				return err
			}
		}
		return w.save(0, key, block, len(part), packSamples(part))
	})
}

// addSpans adds samples to the spans of every level.
func (w *writer) addSpans(key int64, samples []model.Sample) error {
	for _, l := range levels {
		number := func(s model.Sample) int { return s.Step / l.width / partSpans }
		err := runsOf(samples, number, func(part int, within []model.Sample, first bool) error {
			var spans []span
			if first {
				var err error
				if spans, err = w.loadSpans(key, l.level, l.width, part); err != nil {
					return err
				}
			}
			for _, s := range within {
				if n := s.Step / l.width; len(spans) == 0 || spans[len(spans)-1].n != n {
					spans = append(spans, span{n: n})
				}
				spans[len(spans)-1].add(s)
			}
			return w.saveSpans(key, l.level, l.width, part, spans)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) loadSpans(key int64, level, width, part int) (spans []span, err error) {
	data, err := w.load(level, key, part)
	if err == nil {
		err = unpackSpans(data, part, width, func(s *span) { spans = append(spans, *s) })
	}
	return spans, err
}

func (w *writer) saveSpans(key int64, level, width, part int, spans []span) error {
	return w.save(level, key, part, len(spans), packSpans(spans, width))
}

// dropAfter removes everything after step keep.
func (w *writer) dropAfter(keep int) error {
	all, err := allSeries(w.ctx, w.tx)
	if err != nil {
		return err
	}
	for _, s := range append([]series{{key: timesKey, name: "times"}}, all...) { // each is one range of the primary key
		if err := w.cutSeries(s.key, keep); err != nil {
			return fmt.Errorf("series %s: %w", s.name, err)
		}
	}
	return nil
}

func (w *writer) cutSeries(key int64, keep int) error {
	block := keep / blockSteps
	data, err := w.load(0, key, block)
	if err != nil {
		return err
	}
	if err := w.cut(0, key, block); err != nil {
		return err
	}
	if key == timesKey {
		if data == nil {
			return nil
		}
		left, err := unpackTimes(nil, block, data, 0, keep)
		if err != nil || len(left) == 0 {
			return err
		}
		return w.save(0, key, block, len(left), packTimes(left))
	}
	var left []model.Sample
	if data != nil {
		if left, err = unpackSamples(nil, block, data, 0, keep); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		if err := w.save(0, key, block, len(left), packSamples(left)); err != nil {
			return err
		}
	}
	return w.cutSpans(key, keep, left)
}

// cutSpans removes spans after step keep and recomputes the span of keep from the rest of its block. A block contains whole spans of
// every level.
func (w *writer) cutSpans(key int64, keep int, left []model.Sample) error {
	for _, l := range levels {
		part := keep / l.width / partSpans
		spans, err := w.loadSpans(key, l.level, l.width, part)
		if err != nil {
			return err
		}
		if err := w.cut(l.level, key, part); err != nil {
			return err
		}
		spans = slices.DeleteFunc(spans, func(s span) bool { return s.n >= keep/l.width })
		cut := span{n: keep / l.width}
		for _, s := range left {
			if s.Step/l.width == cut.n {
				cut.add(s)
			}
		}
		if cut.last.Step > 0 {
			spans = append(spans, cut)
		}
		if len(spans) == 0 {
			continue
		}
		if err := w.saveSpans(key, l.level, l.width, part, spans); err != nil {
			return err
		}
	}
	return nil
}

// blobs calls take with the blobs of a series from number from to number to. The data is valid only during the call.
func (r *reader) blobs(level int, series int64, from, to int, take func(n int, data []byte) error) error {
	rows, err := r.tx.QueryContext(r.ctx, "SELECT key, data FROM blobs WHERE key BETWEEN ? AND ? ORDER BY key", blobKey(r.run, level, series, from), blobKey(r.run, level, series, to))
	if err != nil {
		return err
	}
	defer rows.Close()
	var key int64
	var data sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&key, &data); err != nil {
			return err
		}
		if err := take(numberOf(key), data); err != nil {
			return err
		}
	}
	return rows.Err()
}

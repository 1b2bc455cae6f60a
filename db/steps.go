package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"slotscope/model"
)

// Match returns how many of the points, which follow step after, are stored with exactly the same step and time. It distinguishes
// points that were read from a file before from points that were measured again.
func (d *DB) Match(ctx context.Context, id string, after int, points []model.Point) (n int, err error) {
	if len(points) == 0 {
		return 0, nil
	}
	err = d.view(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		times, err := (&reader{ctx: ctx, tx: tx, run: run}).times(after+1, max(after, points[len(points)-1].Step))
		for ; n < min(len(times), len(points)); n++ {
			if times[n].step != points[n].Step || times[n].at != points[n].Time.UnixNano() {
				break
			}
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("compare points of run %s: %w", id, err)
	}
	return n, nil
}

// times returns the stamps of the steps first to last.
func (r *reader) times(first, last int) (all []stamp, err error) {
	err = r.blobs(0, timesKey, first/blockSteps, last/blockSteps, func(block int, data []byte) (err error) {
		all, err = unpackTimes(all, block, data, first, last)
		return err
	})
	return all, err
}

// countSteps counts the stored steps from first to last: whole blocks by their count column, the two at the ends by unpacking.
func (r *reader) countSteps(first, last int) (n int, err error) {
	from, to := first/blockSteps, last/blockSteps
	if from == to {
		all, err := r.times(first, last)
		return len(all), err
	}
	err = r.tx.QueryRowContext(r.ctx, "SELECT coalesce(sum(count), 0) FROM blobs WHERE key > ? AND key < ?",
		blobKey(r.run, 0, timesKey, from), blobKey(r.run, 0, timesKey, to)).Scan(&n)
	if err != nil {
		return 0, err
	}
	for _, edge := range [][2]int{{first, from*blockSteps + blockSteps - 1}, {to * blockSteps, last}} {
		all, err := r.times(edge[0], edge[1])
		if err != nil {
			return 0, err
		}
		n += len(all)
	}
	return n, nil
}

// stepAt returns the n-th stored step from first on, counting from 1, or last if there are fewer up to it.
func (r *reader) stepAt(first, last, n int) (int, error) {
	rows, err := r.tx.QueryContext(r.ctx, "SELECT key, count FROM blobs WHERE key BETWEEN ? AND ? ORDER BY key",
		blobKey(r.run, 0, timesKey, first/blockSteps), blobKey(r.run, 0, timesKey, last/blockSteps))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		var count int
		if err := rows.Scan(&key, &count); err != nil {
			return 0, err
		}
		block := numberOf(key)
		if n > count && block > first/blockSteps {
			n -= count
			continue
		}
		all, err := r.times(max(first, block*blockSteps), min(last, block*blockSteps+blockSteps-1))
		if err != nil {
			return 0, err
		}
		if n <= len(all) {
			return all[n-1].step, nil
		}
		n -= len(all)
	}
	return last, rows.Err()
}

// lastStep returns the last stored step, 0 if none.
func lastStep(ctx context.Context, tx *sql.Tx, run int64) (step int, err error) {
	var key int64
	var data []byte
	err = tx.QueryRowContext(ctx, "SELECT key, data FROM blobs WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
		blobKey(run, 0, timesKey, 0), blobKey(run, 0, timesKey, 1<<numberBits-1)).Scan(&key, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	block := numberOf(key)
	all, err := unpackTimes(nil, block, data, 0, block*blockSteps+blockSteps-1)
	if err != nil || len(all) == 0 {
		return 0, errors.Join(err, errDamaged)
	}
	return all[len(all)-1].step, nil
}

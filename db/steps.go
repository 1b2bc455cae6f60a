package db

import (
	"context"
	"database/sql"
	"fmt"

	"slotscope/model"
)

// Match counts how many of the points, which follow on step after, are stored one by one with the very same step and time:
// what was read from a file before is told from what was measured anew.
func (d *DB) Match(ctx context.Context, id string, after int, points []model.Point) (n int, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT step, at FROM steps WHERE run = ? AND step > ? ORDER BY step LIMIT ?", run, after, len(points))
		if err != nil {
			return err
		}
		defer rows.Close()
		for ; rows.Next(); n++ {
			var step int
			var at int64
			if err := rows.Scan(&step, &at); err != nil {
				return err
			}
			if step != points[n].Step || at != points[n].Time.UnixNano() {
				break
			}
		}
		return rows.Err()
	})
	if err != nil {
		return 0, fmt.Errorf("compare points of run %s: %w", id, err)
	}
	return n, nil
}

func lastStep(ctx context.Context, tx *sql.Tx, run int64) (step int, err error) {
	err = tx.QueryRowContext(ctx, "SELECT coalesce(max(step), 0) FROM steps WHERE run = ?", run).Scan(&step)
	return step, err
}

func countSteps(ctx context.Context, tx *sql.Tx, run int64, first, last int) (n int, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM steps WHERE run = ? AND step BETWEEN ? AND ?", run, first, last).Scan(&n)
	return n, err
}

package db

import (
	"context"
	"database/sql"
	"fmt"

	"slotscope/model"
)

// Rewind drops every stored point of a run after step keep and continues from the cursor, whose Attempt must be new, in
// one transaction. The cursor's Head becomes the last remaining step.
func (d *DB) Rewind(ctx context.Context, id string, keep int, c model.Cursor) error {
	err := d.tx(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		w, err := newWriter(ctx, tx, run)
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.dropAfter(keep); err != nil {
			return err
		}
		if c.Head, err = lastStep(ctx, tx, run); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO rewinds (run, attempt, keep) VALUES (?, ?, ?)", run, c.Attempt, keep); err != nil {
			return err
		}
		if err := writeCursor(ctx, tx, run, c); err != nil {
			return err
		}
		return reviewLast(ctx, tx, run)
	})
	if err != nil {
		return fmt.Errorf("drop points of run %s after step %d: %w", id, keep, err)
	}
	return nil
}

// outlived returns the last step kept by every rewind after an attempt. Attempt 0 means the one before the present.
func outlived(ctx context.Context, tx *sql.Tx, run int64, attempt, present int) (int, error) {
	if attempt == 0 {
		attempt = present - 1
	}
	var keep int
	err := tx.QueryRowContext(ctx, "SELECT coalesce(min(keep), 0) FROM rewinds WHERE run = ? AND attempt > ?", run, attempt).Scan(&keep)
	return keep, err
}

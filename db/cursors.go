package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"slotscope/model"
)

// Cursor returns how far a run's points are stored; the zero Cursor if none are.
func (d *DB) Cursor(ctx context.Context, id string) (c model.Cursor, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		key, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		c, err = readCursor(ctx, tx, key)
		return err
	})
	if err != nil {
		return model.Cursor{}, fmt.Errorf("read cursor of run %s: %w", id, err)
	}
	return c, nil
}

func readCursor(ctx context.Context, tx *sql.Tx, run int64) (c model.Cursor, err error) {
	err = tx.QueryRowContext(ctx, "SELECT offset, mark, attempt, head FROM cursors WHERE run = ?", run).
		Scan(&c.Offset, &c.Mark, &c.Attempt, &c.Head)
	if errors.Is(err, sql.ErrNoRows) {
		return model.Cursor{}, nil
	}
	return c, err
}

func writeCursor(ctx context.Context, tx *sql.Tx, run int64, c model.Cursor) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO cursors (run, offset, mark, attempt, head) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (run) DO UPDATE SET offset = excluded.offset, mark = excluded.mark, attempt = excluded.attempt, head = excluded.head`,
		run, c.Offset, int64(c.Mark), c.Attempt, c.Head)
	return err
}

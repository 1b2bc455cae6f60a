package db

import (
	"context"
	"database/sql"
	"errors"
)

type series struct {
	key  int64
	name string
}

// allSeries lists every name that any run has used.
func allSeries(ctx context.Context, tx *sql.Tx) ([]series, error) {
	rows, err := tx.QueryContext(ctx, "SELECT key, name FROM series ORDER BY key")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []series
	for rows.Next() {
		var s series
		if err := rows.Scan(&s.key, &s.name); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// seriesKey returns the key of a series by name, creating the series if necessary.
func seriesKey(ctx context.Context, tx *sql.Tx, name string) (key int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT key FROM series WHERE name = ?", name).Scan(&key)
	if !errors.Is(err, sql.ErrNoRows) {
		return key, err
	}
	made, err := tx.ExecContext(ctx, "INSERT INTO series (name) VALUES (?)", name)
	if err != nil {
		return 0, err
	}
	return made.LastInsertId()
}

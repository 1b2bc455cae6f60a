package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"slotscope/model"
)

const runColumns = `id, name, notes, config, created, state, step, checkpoint, resumed, attempt, pid, engine, engine_why,
	parameters, images_per_second, seconds_left, started, updated, ended, reason, revision, tags, star, archived, host, best, best_value, early, precision`

var saveRun = func() string {
	columns := strings.Split(runColumns, ",")
	set := make([]string, len(columns))
	for i, c := range columns {
		c = strings.TrimSpace(c)
		set[i] = c + " = excluded." + c
	}
	return "INSERT INTO runs (" + runColumns + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) +
		") ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ")
}()

// SaveRun inserts or updates a run.
func (d *DB) SaveRun(ctx context.Context, r model.Run) error {
	config, err := json.Marshal(r.Config)
	if err != nil {
		return fmt.Errorf("store run %s: %w", r.ID, err)
	}
	_, err = d.write.ExecContext(ctx, saveRun,
		r.ID, r.Name, r.Notes, string(config), millis(r.Created), r.State, r.Step, r.Checkpoint, r.Resumed, r.Attempt, r.PID,
		r.Engine, r.EngineWhy, r.Parameters, r.ImagesPerSecond, r.SecondsLeft, millis(r.Started), millis(r.Updated),
		millis(r.Ended), r.Reason, r.Revision, r.Tags, r.Star, r.Archived, r.Host, r.Best, r.BestValue, r.Early, r.Precision)
	if err != nil {
		return fmt.Errorf("store run %s: %w", r.ID, named(err))
	}
	return nil
}

// Runs lists every run, newest first.
func (d *DB) Runs(ctx context.Context) ([]model.Run, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT "+runColumns+" FROM runs ORDER BY created DESC, id DESC")
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	defer rows.Close()
	runs := []model.Run{}
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		runs = append(runs, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return runs, nil
}

// Run returns one run by ID; the error wraps model.ErrNotFound if there is none.
func (d *DB) Run(ctx context.Context, id string) (model.Run, error) {
	r, err := scanRun(d.read.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, notFound(id)
	}
	if err != nil {
		return r, fmt.Errorf("read run %s: %w", id, err)
	}
	return r, nil
}

// DeleteRun deletes a run and its points from the index. It is no error if there is no such run.
func (d *DB) DeleteRun(ctx context.Context, id string) error {
	err := d.tx(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if errors.Is(err, model.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM blobs WHERE key >= ? AND key < ?", blobKey(run, 0, 0, 0), blobKey(run+1, 0, 0, 0)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM runs WHERE key = ?", run) // the rest cascades
		return err
	})
	if err != nil {
		return fmt.Errorf("delete run %s from the index: %w", id, err)
	}
	return nil
}

func scanRun(row interface{ Scan(...any) error }) (model.Run, error) {
	var config []byte
	r, err := scanColumns(row, &config)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(config, &r.Config); err != nil {
		return r, fmt.Errorf("configuration of run %s: %w", r.ID, err)
	}
	return r, nil
}

// scanColumns reads runColumns, with the configuration as JSON; further receives the columns after them.
func scanColumns(row interface{ Scan(...any) error }, config any, further ...any) (r model.Run, err error) {
	var created, started, updated, ended sql.NullInt64
	err = row.Scan(append([]any{&r.ID, &r.Name, &r.Notes, config, &created, &r.State, &r.Step, &r.Checkpoint, &r.Resumed, &r.Attempt, &r.PID,
		&r.Engine, &r.EngineWhy, &r.Parameters, &r.ImagesPerSecond, &r.SecondsLeft, &started, &updated, &ended, &r.Reason, &r.Revision,
		&r.Tags, &r.Star, &r.Archived, &r.Host, &r.Best, &r.BestValue, &r.Early, &r.Precision}, further...)...)
	r.Created, r.Started, r.Updated, r.Ended = moment(created), moment(started), moment(updated), moment(ended)
	return r, err
}

// runKey returns the key that identifies a run in other tables.
func runKey(ctx context.Context, tx *sql.Tx, id string) (key int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT key FROM runs WHERE id = ?", id).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, notFound(id)
	}
	return key, err
}

func notFound(id string) error { return fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound) }

// millis and moment convert between times and milliseconds since 1970; the zero time is NULL.
func millis(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func moment(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return time.UnixMilli(v.Int64).UTC()
}

package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"slotscope/model"
)

// decoded is the JSON of a run's row with the decoded values, so that a list decodes only changed rows. Its maps are shared with callers
// and never change.
type decoded struct {
	texts          [3]string // config, last, scores
	config         model.Config
	values, scores model.Values
}

// Overviews lists every run with the last value of each series and its scores, newest first, with one query. Callers must not change
// the maps.
func (d *DB) Overviews(ctx context.Context) ([]model.Overview, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT "+runColumns+`, coalesce(o.last, '{}'), coalesce(o.scores, '{}')
		FROM runs LEFT JOIN overviews o ON o.run = runs.key ORDER BY created DESC, id DESC`)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	defer rows.Close()
	d.lists.Lock()
	known := d.known
	d.lists.Unlock()
	all, seen := make([]model.Overview, 0, len(known)), make(map[string]*decoded, len(known))
	for rows.Next() {
		o, row, err := scanOverview(rows, known)
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		all, seen[o.ID] = append(all, o), row
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	d.lists.Lock()
	d.known = seen
	d.lists.Unlock()
	return all, nil
}

// scanOverview reads a row and decodes its JSON unless known has it.
func scanOverview(rows *sql.Rows, known map[string]*decoded) (o model.Overview, row *decoded, err error) {
	var config, last, scores sql.RawBytes
	if o.Run, err = scanColumns(rows, &config, &last, &scores); err != nil {
		return o, nil, err
	}
	row = known[o.ID]
	if row == nil || row.texts[0] != string(config) || row.texts[1] != string(last) || row.texts[2] != string(scores) {
		row = &decoded{texts: [3]string{string(config), string(last), string(scores)}}
		if err := errors.Join(json.Unmarshal(config, &row.config), json.Unmarshal(last, &row.values), json.Unmarshal(scores, &row.scores)); err != nil {
			return o, nil, fmt.Errorf("run %s: %w", o.ID, err)
		}
	}
	o.Config, o.Values, o.Scores = row.config, row.values, row.scores
	return o, row, nil
}

// SaveScores stores the metrics of a run's scores; stamp identifies the scores and is "" if there are none.
func (d *DB) SaveScores(ctx context.Context, id, stamp string, scores model.Values) error {
	err := d.tx(ctx, func(tx *sql.Tx) error {
		run, err := runKey(ctx, tx, id)
		if err != nil {
			return err
		}
		text, err := json.Marshal(scores)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO overviews (run, scores, scored) VALUES (?, ?, ?)
			ON CONFLICT (run) DO UPDATE SET scores = excluded.scores, scored = excluded.scored`, run, string(text), stamp)
		return err
	})
	if err != nil {
		return fmt.Errorf("store scores of run %s: %w", id, err)
	}
	return nil
}

// Scored returns the stamps of the stored scores by run.
func (d *DB) Scored(ctx context.Context) (map[string]string, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT runs.id, o.scored FROM overviews o JOIN runs ON runs.key = o.run WHERE o.scored <> ''")
	if err != nil {
		return nil, fmt.Errorf("list scored runs: %w", err)
	}
	defer rows.Close()
	stamps := map[string]string{}
	for rows.Next() {
		var id, stamp string
		if err := rows.Scan(&id, &stamp); err != nil {
			return nil, fmt.Errorf("list scored runs: %w", err)
		}
		stamps[id] = stamp
	}
	return stamps, rows.Err()
}

// LastValues returns the last values of a run's series; empty if the run is unknown.
func (d *DB) LastValues(ctx context.Context, id string) (values model.Values, err error) {
	var text string
	err = d.read.QueryRowContext(ctx, "SELECT o.last FROM overviews o JOIN runs ON runs.key = o.run WHERE runs.id = ?", id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &values)
	}
	if err != nil {
		return nil, fmt.Errorf("read the last values of run %s: %w", id, err)
	}
	return values, nil
}

// mergeLast updates a run's last values with points after the stored ones.
func mergeLast(ctx context.Context, tx *sql.Tx, run int64, later []model.Point) error {
	news := model.Values{}
	for _, p := range later {
		maps.Copy(news, p.Values)
	}
	if len(news) == 0 {
		return nil
	}
	var text string
	err := tx.QueryRowContext(ctx, "SELECT last FROM overviews WHERE run = ?", run).Scan(&text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	last := model.Values{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			return err
		}
	}
	maps.Copy(last, news)
	return writeLast(ctx, tx, run, last)
}

// reviewUnknown computes the last values of runs stored by an older program.
func (d *DB) reviewUnknown(ctx context.Context) error {
	return d.tx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT key FROM runs WHERE key NOT IN (SELECT run FROM overviews)")
		if err != nil {
			return err
		}
		defer rows.Close()
		var keys []int64
		for rows.Next() {
			var key int64
			if err := rows.Scan(&key); err != nil {
				return err
			}
			keys = append(keys, key)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, key := range keys {
			if err := reviewLast(ctx, tx, key); err != nil {
				return err
			}
		}
		return nil
	})
}

// reviewLast recomputes a run's last values from its points.
func reviewLast(ctx context.Context, tx *sql.Tx, run int64) error {
	page, err := (&reader{ctx: ctx, tx: tx, run: run}).page(model.PointQuery{Columns: 1})
	if err != nil {
		return err
	}
	last := model.Values{}
	for name, samples := range page.Series {
		last[name] = samples[len(samples)-1].Value
	}
	return writeLast(ctx, tx, run, last)
}

func writeLast(ctx context.Context, tx *sql.Tx, run int64, last model.Values) error {
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO overviews (run, last) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET last = excluded.last", run, string(text))
	return err
}

package db

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"slotscope/model"
)

const (
	fewAlerts  = 100   // alerts in a list if the query sets no limit
	mostAlerts = 1_000 // limit of alerts in a list
)

// AddAlert stores an alert unless this attempt already has the same one; added reports whether it did.
func (d *DB) AddAlert(ctx context.Context, a model.Alert) (added bool, err error) {
	done, err := d.write.ExecContext(ctx, `INSERT OR IGNORE INTO alerts (run, attempt, kind, rule, step, text, at, state)
		SELECT key, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ?`, a.Attempt, a.Kind, a.Rule, a.Step, a.Text, millis(a.Time), a.Sending.State, a.Run)
	if err != nil {
		return false, fmt.Errorf("store an alert on run %s: %w", a.Run, named(err))
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

const alertColumns = "alerts.id, kind, runs.id, runs.name, alerts.attempt, alerts.step, rule, text, at, alerts.state, tries, sent, problem"

// Alerts lists alerts, newest first.
func (d *DB) Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error) {
	limit := min(cmp.Or(max(0, q.Limit), fewAlerts), mostAlerts)
	if q.Run == "" {
		return d.alerts(ctx, "alerts.id > ? ORDER BY alerts.id DESC LIMIT ?", q.After, limit)
	}
	return d.alerts(ctx, "alerts.run = (SELECT key FROM runs WHERE id = ?) AND alerts.id > ? ORDER BY alerts.id DESC LIMIT ?", q.Run, q.After, limit)
}

// QueuedAlerts lists the alerts not yet sent to the webhook, oldest first.
func (d *DB) QueuedAlerts(ctx context.Context) ([]model.Alert, error) {
	return d.alerts(ctx, "alerts.state = 'queued' ORDER BY alerts.id LIMIT ?", mostAlerts)
}

func (d *DB) alerts(ctx context.Context, where string, args ...any) ([]model.Alert, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT "+alertColumns+" FROM alerts JOIN runs ON runs.key = alerts.run WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	defer rows.Close()
	all := []model.Alert{}
	for rows.Next() {
		var a model.Alert
		var at, sent sql.NullInt64
		err := rows.Scan(&a.ID, &a.Kind, &a.Run, &a.Name, &a.Attempt, &a.Step, &a.Rule, &a.Text, &at, &a.Sending.State, &a.Sending.Tries, &sent, &a.Sending.Problem)
		if err != nil {
			return nil, fmt.Errorf("list alerts: %w", err)
		}
		a.Time, a.Sending.Sent = moment(at), moment(sent)
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return all, nil
}

// SetSending stores the delivery state of an alert. It does nothing if the alert was deleted with its run.
func (d *DB) SetSending(ctx context.Context, id int64, s model.Sending) error {
	_, err := d.write.ExecContext(ctx, "UPDATE alerts SET state = ?, tries = ?, sent = ?, problem = ? WHERE id = ?", s.State, s.Tries, millis(s.Sent), s.Problem, id)
	if err != nil {
		return fmt.Errorf("store the delivery of alert %d: %w", id, named(err))
	}
	return nil
}

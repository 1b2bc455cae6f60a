package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/verdict"
)

// AlertStore stores alerts and the state of their delivery; db.DB implements it.
type AlertStore interface {
	AddAlert(ctx context.Context, a model.Alert) (added bool, err error)
	Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error)
	QueuedAlerts(ctx context.Context) ([]model.Alert, error)
	SetSending(ctx context.Context, id int64, s model.Sending) error
}

// Alerting configures the alerts on runs in addition to those on ends and bad verdicts, and where alerts are sent.
type Alerting struct {
	Rules   []model.Condition // limits for series of every run
	Webhook *Webhook          // nil if none; pages show alerts anyway
	Kinds   []model.AlertKind // kinds sent to the webhook; nil for all
}

// sends reports whether alerts of a kind are sent to the webhook.
func (a Alerting) sends(kind model.AlertKind) bool {
	return a.Webhook != nil && (a.Kinds == nil || slices.Contains(a.Kinds, kind))
}

// judged is the progress of a run at its last check for alerts.
type judged struct {
	state         model.State
	attempt, step int
}

func judgedAs(r model.Run) judged { return judged{r.State, r.Attempt, r.Step} }

// Alerts lists alerts, newest first.
func (s *Supervisor) Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error) {
	return s.o.Store.Alerts(ctx, q)
}

// AlertPlan returns the alerts that the server sends, and their recipient.
func (s *Supervisor) AlertPlan() model.AlertPlan {
	p := model.AlertPlan{Kinds: []model.AlertKind{}, Rules: []string{}}
	for _, c := range s.o.Alerting.Rules {
		p.Rules = append(p.Rules, c.String())
	}
	for _, kind := range model.AlertKinds {
		if s.o.Alerting.sends(kind) {
			p.Kinds = append(p.Kinds, kind)
		}
	}
	if w := s.o.Alerting.Webhook; w != nil {
		p.Host, p.Signed = w.Host(), w.secret != ""
	}
	return p
}

// tell stores an alert and queues it for sending. A repeated alert of the same attempt is dropped.
func (s *Supervisor) tell(ctx context.Context, a model.Alert) error {
	a.Time = a.Time.UTC().Truncate(time.Millisecond)
	if s.o.Alerting.sends(a.Kind) {
		a.Sending.State = model.SendQueued
	}
	added, err := s.o.Store.AddAlert(ctx, a)
	if err != nil || !added {
		return err
	}
	s.watchers.notify(a.Run)
	poke(s.wakeSender)
	return nil
}

// alertLoop checks runs that have made progress since their last check, until ctx ends.
func (s *Supervisor) alertLoop(ctx context.Context) {
	tick := time.NewTicker(s.o.AlertPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, run := range s.unjudged() {
			if err := s.judgeAlerts(ctx, run); err != nil && ctx.Err() == nil {
				s.o.Log.Error("checking a run for alerts failed", "run", run.ID, "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// unjudged lists the runs that have made progress since their last check, and marks them as checked.
func (s *Supervisor) unjudged() (runs []model.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.runs {
		if now := judgedAs(e.run); e.known && e.judged != now && e.run.Step > 0 {
			e.judged = now
			runs = append(runs, e.run)
		}
	}
	return runs
}

// judgeAlerts raises alerts for a bad verdict on a run and for rules that hold.
func (s *Supervisor) judgeAlerts(ctx context.Context, run model.Run) error {
	var further []string
	for _, c := range s.o.Alerting.Rules {
		further = append(further, c.Series)
	}
	p, err := verdict.Read(ctx, s.o.Store, run, nil, further...)
	if err != nil {
		return err
	}
	a := model.Alert{Run: run.ID, Name: run.Name, Attempt: run.Attempt, Time: time.Now()}
	if v := verdict.Judge(p); v.Kind.Bad() {
		a.Kind, a.Rule, a.Step = model.AlertDiverged, v.Rule, v.Step
		if v.Kind == verdict.Collapsing {
			a.Kind = model.AlertCollapsed
		}
		a.Text = fmt.Sprintf("%s: %s at step %s: %s.", run.Name, strings.ToLower(v.Title), humanize.Comma(int64(v.Step)), v.Why)
		if err := s.tell(ctx, a); err != nil {
			return err
		}
	}
	for _, c := range s.o.Alerting.Rules {
		rule, why, holds := p.Holds(c)
		if !holds {
			continue
		}
		a.Kind, a.Rule, a.Step = model.AlertRule, rule, p.Last()
		a.Text = fmt.Sprintf("%s: %s.", run.Name, why)
		if err := s.tell(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// sendLoop sends queued alerts one by one, oldest first, until ctx ends. It includes alerts left by an earlier server.
func (s *Supervisor) sendLoop(ctx context.Context) {
	if s.o.Alerting.Webhook == nil {
		return
	}
	for ctx.Err() == nil {
		queued, err := s.o.Store.QueuedAlerts(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Log.Error("listing alerts failed", "error", err)
		}
		for _, a := range queued {
			s.send(ctx, a)
		}
		if len(queued) > 0 {
			continue // more may have been queued meanwhile
		}
		select {
		case <-ctx.Done():
		case <-s.wakeSender:
		}
	}
}

// send delivers one alert and stores the outcome, even if ctx ends meanwhile. An alert that could not be delivered because ctx ended stays
// queued.
func (s *Supervisor) send(ctx context.Context, a model.Alert) {
	run, err := s.o.Store.Run(ctx, a.Run)
	if err != nil {
		s.o.Log.Warn("sending an alert failed", "alert", a.ID, "run", a.Run, "error", err) // the run was deleted, and its alerts with it
		return
	}
	state := model.Sending{State: model.SendQueued}
	keep := func(ctx context.Context) {
		if err := s.o.Store.SetSending(ctx, a.ID, state); err != nil && ctx.Err() == nil {
			s.o.Log.Error("storing the delivery of an alert failed", "alert", a.ID, "error", err)
		}
		s.watchers.notify(a.Run)
	}
	err = s.o.Alerting.Webhook.deliver(ctx, messageOf(a, run), func(err error) {
		state.Tries++
		if err != nil {
			state.Problem = err.Error()
			keep(ctx)
		}
	})
	switch {
	case err == nil:
		state.State, state.Sent, state.Problem = model.SendDone, time.Now().UTC().Truncate(time.Millisecond), ""
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience) // otherwise the next server would send it again
		defer cancel()
		keep(long)
	case ctx.Err() == nil:
		state.State = model.SendFailed
		s.o.Log.Error("delivering an alert failed", "alert", a.ID, "run", a.Run, "tries", state.Tries, "error", err)
		keep(ctx)
	}
}

// keepPatience is the time limit for storing the outcome of a delivery.
const keepPatience = 5 * time.Second

// TestAlert sends one message to the webhook without retries and returns the error, if any.
func (s *Supervisor) TestAlert(ctx context.Context) error {
	w := s.o.Alerting.Webhook
	if w == nil {
		return fmt.Errorf("this server has no webhook; start it with --webhook URL or $SLOTSCOPE_WEBHOOK: %w", model.ErrConflict)
	}
	m := message{Version: 1, Kind: "test", Text: "Slotscope can reach this webhook.", Time: time.Now().UTC().Truncate(time.Millisecond)}
	if err := w.once(ctx, m); err != nil {
		return fmt.Errorf("%w: %w", err, model.ErrConflict)
	}
	return nil
}

package model

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// AlertKind is the kind of event that an alert reports.
type AlertKind string

const (
	AlertEnded     AlertKind = "ended"     // the run finished or was stopped
	AlertFailed    AlertKind = "failed"    // the run failed or its process died
	AlertDiverged  AlertKind = "diverged"  // the verdict is Diverging
	AlertCollapsed AlertKind = "collapsed" // the verdict is Collapsing
	AlertRule      AlertKind = "rule"      // a limit in the server's rules was passed
)

// AlertKinds lists all kinds.
var AlertKinds = []AlertKind{AlertEnded, AlertFailed, AlertDiverged, AlertCollapsed, AlertRule}

// Alert reports one event of a run. Each kind, and each rule, raises at most one alert per attempt.
type Alert struct {
	ID      int64     `json:"id"` // increases with every alert
	Kind    AlertKind `json:"kind"`
	Run     string    `json:"run"`
	Name    string    `json:"name"` // of the run
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`           // last step checked
	Rule    string    `json:"rule,omitempty"` // rule that triggered: the key of a verdict's rule, or the rule as written
	Text    string    `json:"text"`           // one sentence
	Time    time.Time `json:"time"`
	Sending Sending   `json:"webhook,omitzero"`
}

// Sending is the state of an alert's delivery to the webhook; zero if it is not sent to one.
type Sending struct {
	State   SendState `json:"state"`
	Tries   int       `json:"tries"`
	Sent    time.Time `json:"sent,omitzero"`
	Problem string    `json:"problem,omitempty"` // error of the last try: a sentence without secrets
}

// SendState is the state of a delivery.
type SendState string

const (
	SendQueued SendState = "queued"
	SendDone   SendState = "sent"
	SendFailed SendState = "failed" // given up
)

// AlertQuery selects alerts, newest first.
type AlertQuery struct {
	Run   string // empty for all
	After int64  // alerts with a greater ID
	Limit int    // 0 for 100
}

// AlertPlan describes which alerts a server raises besides ends and bad verdicts, and where it sends them. It holds no secrets.
type AlertPlan struct {
	Host   string      `json:"host"`   // host of the webhook; empty if none
	Signed bool        `json:"signed"` // webhook requests are signed
	Kinds  []AlertKind `json:"kinds"`  // kinds sent to the webhook
	Rules  []string    `json:"rules"`  // limits checked on the series of every run
}

// EndAlert returns the alert for the end of a run.
func EndAlert(r Run, now time.Time) Alert {
	a := Alert{Kind: AlertEnded, Run: r.ID, Name: r.Name, Attempt: r.Attempt, Step: r.Step, Time: now}
	if r.State == Failed || r.State == Interrupted {
		a.Kind = AlertFailed
	}
	a.Text = fmt.Sprintf("%s: %s at step %s. %s", r.Name, r.State, humanize.Comma(int64(r.Step)), r.Reason)
	return a
}

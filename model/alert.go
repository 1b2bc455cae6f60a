package model

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// AlertKind is what an alert tells of.
type AlertKind string

const (
	AlertEnded     AlertKind = "ended"     // the run finished, or was stopped
	AlertFailed    AlertKind = "failed"    // it failed, or its process died
	AlertDiverged  AlertKind = "diverged"  // the verdict is Diverging
	AlertCollapsed AlertKind = "collapsed" // the verdict is Collapsing
	AlertRule      AlertKind = "rule"      // a limit of the server's rules is passed
)

// AlertKinds lists them.
var AlertKinds = []AlertKind{AlertEnded, AlertFailed, AlertDiverged, AlertCollapsed, AlertRule}

// Alert tells once of something that happened to a run. Each kind, and each rule, tells at most once of each attempt.
type Alert struct {
	ID      int64     `json:"id"` // grows with every alert
	Kind    AlertKind `json:"kind"`
	Run     string    `json:"run"`
	Name    string    `json:"name"` // of the run
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`           // last step that was looked at
	Rule    string    `json:"rule,omitempty"` // what decided: key of a verdict's rule, or the rule as written
	Text    string    `json:"text"`           // one sentence
	Time    time.Time `json:"time"`
	Sending Sending   `json:"webhook,omitzero"`
}

// Sending is how the delivery of an alert to the webhook stands; zero where no webhook is to get it.
type Sending struct {
	State   SendState `json:"state"`
	Tries   int       `json:"tries"`
	Sent    time.Time `json:"sent,omitzero"`
	Problem string    `json:"problem,omitempty"` // of the last try: a sentence without secrets
}

// SendState is where a delivery stands.
type SendState string

const (
	SendQueued SendState = "queued"
	SendDone   SendState = "sent"
	SendFailed SendState = "failed" // given up
)

// AlertQuery chooses alerts, newest first.
type AlertQuery struct {
	Run   string // empty for all
	After int64  // alerts with a greater ID
	Limit int    // 0 for 100
}

// AlertPlan is what a server tells of its runs beside their ends and bad verdicts, and whom. It holds no secrets.
type AlertPlan struct {
	Host   string      `json:"host"`   // of the webhook; empty where there is none
	Signed bool        `json:"signed"` // what the webhook gets is signed
	Kinds  []AlertKind `json:"kinds"`  // that the webhook gets
	Rules  []string    `json:"rules"`  // limits that series of every run are held to
}

// EndAlert is the alert on how a run ended.
func EndAlert(r Run, now time.Time) Alert {
	a := Alert{Kind: AlertEnded, Run: r.ID, Name: r.Name, Attempt: r.Attempt, Step: r.Step, Time: now}
	if r.State == Failed || r.State == Interrupted {
		a.Kind = AlertFailed
	}
	a.Text = fmt.Sprintf("%s: %s at step %s. %s", r.Name, r.State, humanize.Comma(int64(r.Step)), r.Reason)
	return a
}

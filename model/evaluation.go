package model

import "time"

// Efforts of an evaluation.
const (
	Quick = "quick" // 2,000 images, and swaps only where the dataset's probe was trained before
	Full  = "full"  // what reports expect
)

// EffortNames are the efforts on offer.
func EffortNames() []string { return []string{Quick, Full} }

// Evaluation is where measuring a run stands; evaluation.json in the run's folder holds it. The zero Evaluation is that of a run that
// nobody asked to be measured.
//
//	queued → running → finished | failed       the process of `slotscope eval`, once it holds eval.lock
//	   │        └→ stopping → stopped          the visitor or a signal asks
//	   └→ stopped                              the visitor asks
//	interrupted                                the server, on finding that the process is gone
//
// Scores of an earlier evaluation stay until one has finished.
type Evaluation struct {
	State    State     `json:"state"`
	Effort   string    `json:"effort,omitempty"`   // Quick or Full
	Flags    []string  `json:"flags,omitempty"`    // of `slotscope eval` beside the effort
	Now      bool      `json:"now,omitempty"`      // does not wait for a device
	Executor string    `json:"executor,omitempty"` // Slurm where the job that trains the run measures it too
	PID      int       `json:"pid,omitempty"`      // of the process that measures, or measured last
	Asked    time.Time `json:"asked,omitzero"`     // when it was queued
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Said     string    `json:"said,omitempty"`   // how far it is
	Reason   string    `json:"reason,omitempty"` // why it ended without scores, as a sentence
}

// Under says whether the evaluation is queued or under way.
func (e Evaluation) Under() bool { return e.State == Queued || e.State.Live() }

// Failure is why the last evaluation ended without scores, where nobody asked it to; else empty.
func (e Evaluation) Failure() string {
	if e.State == Failed || e.State == Interrupted {
		return e.Reason
	}
	return ""
}

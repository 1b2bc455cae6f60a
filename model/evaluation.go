package model

import "time"

// Efforts of an evaluation.
const (
	Quick = "quick" // 2,000 images; swaps only if the dataset's probe is already trained
	Full  = "full"  // what reports expect
)

// EffortNames returns the available efforts.
func EffortNames() []string { return []string{Quick, Full} }

// Evaluation is the state of a run's evaluation, stored in evaluation.json in the run's folder. The zero Evaluation means that none was
// requested.
//
//	queued → running → finished | failed       set by the process of `slotscope eval`, once it holds eval.lock
//	   │        └→ stopping → stopped          requested by the user or a signal
//	   └→ stopped                              requested by the user
//	interrupted                                set by the server when the process is gone
//
// Scores of an earlier evaluation remain until a new one finishes.
type Evaluation struct {
	State    State     `json:"state"`
	Effort   string    `json:"effort,omitempty"`   // Quick or Full
	Flags    []string  `json:"flags,omitempty"`    // flags of `slotscope eval` besides the effort
	Now      bool      `json:"now,omitempty"`      // start without waiting for a device
	Replace  bool      `json:"replace,omitempty"`  // a quick evaluation may replace full scores
	Executor string    `json:"executor,omitempty"` // Slurm if the training job also evaluates the run
	PID      int       `json:"pid,omitempty"`      // of the current or last evaluation process
	Asked    time.Time `json:"asked,omitzero"`     // when it was queued
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Said     string    `json:"said,omitempty"`   // progress
	Reason   string    `json:"reason,omitempty"` // why it ended without scores, as a sentence
}

// Under reports whether the evaluation is queued or running.
func (e Evaluation) Under() bool { return e.State == Queued || e.State.Live() }

// Failure returns why the last evaluation failed or was interrupted; empty otherwise.
func (e Evaluation) Failure() string {
	if e.State == Failed || e.State == Interrupted {
		return e.Reason
	}
	return ""
}

package model

import "time"

// Evaluation is where measuring a run stands.
type Evaluation struct {
	Running bool
	Started time.Time // zero where none was started
	Ended   time.Time
	Said    string // the last line of its process
	Failed  string // why there are no new scores; empty otherwise
}

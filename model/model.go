// Package model defines Slotscope's shared data types: runs, configurations, states, points, scores and errors.
// It is plain data, used by every other package, and imports none of them.
package model

import (
	"crypto/rand"
	"encoding/base32"
	"regexp"
	"strings"
	"time"
)

// State is the lifecycle state of a run.
//
//	queued → running → finished             set by the run once its process holds the folder's lock
//	           │  └──→ failed               set by the run on an error; by the server if the process exited without a final state
//	           └→ stopping → stopped        requested by the user or the scheduler; the run saves a checkpoint, then sets stopped
//	interrupted                             set by the server or `slotscope train` for a run recorded as running whose process is gone
//
// stopped, failed, interrupted and finished runs may be resumed (finished ones with more steps).
type State string

const (
	Queued      State = "queued"
	Running     State = "running"
	Stopping    State = "stopping"
	Stopped     State = "stopped"
	Finished    State = "finished"
	Failed      State = "failed"
	Interrupted State = "interrupted"
)

// Live reports whether a process is, or should be, running.
func (s State) Live() bool { return s == Running || s == Stopping }

// Ended reports whether the run has ended; only a user's request resumes it.
func (s State) Ended() bool { return s == Stopped || s == Finished || s == Failed || s == Interrupted }

// Run is one training run of a model: a folder <data>/runs/<ID> and a row in the index.
type Run struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Notes    string    `json:"notes"`
	Config   Config    `json:"config"`
	Created  time.Time `json:"created"`
	Tags     Tags      `json:"tags"`
	Star     bool      `json:"star,omitempty"`
	Archived bool      `json:"archived,omitempty"` // hidden from lists by default
	Status
}

// Status is the progress of a run, which its process writes to state.json in its folder.
type Status struct {
	State           State     `json:"state"`
	Step            int       `json:"step"`                // last completed step; 0 before the first
	Checkpoint      int       `json:"checkpoint"`          // step of the newest complete checkpoint; 0 for none
	Resumed         int       `json:"resumed"`             // checkpoint step this process continued from; 0 for a fresh start
	Attempt         int       `json:"attempt"`             // 1 for the first process, plus 1 for every resume
	PID             int       `json:"pid"`                 // of the process that last held the lock
	Host            string    `json:"host,omitempty"`      // machine of the last process; empty before the first
	Engine          string    `json:"engine"`              // compute engine, such as "cpu" or "xla:cuda"
	EngineWhy       string    `json:"engine_why"`          // one sentence: what was tried and why this engine was chosen
	Precision       string    `json:"precision,omitempty"` // of products in training steps; empty in older runs
	Parameters      int       `json:"parameters"`          // number of learned parameters
	ImagesPerSecond float64   `json:"images_per_second"`   // over the last few seconds of training
	SecondsLeft     float64   `json:"seconds_left"`        // to the last step at that rate; 0 if unknown or ended
	Started         time.Time `json:"started"`             // start of the first process
	Updated         time.Time `json:"updated"`             // last write of this record
	Ended           time.Time `json:"ended"`               // zero while live
	Reason          string    `json:"reason"`              // why it ended, as a sentence; empty while live
	Revision        string    `json:"revision"`            // of the program
	Best            int       `json:"best,omitempty"`      // step of the best checkpoint by Config.BestBy; 0 for none
	BestValue       float64   `json:"best_value,omitempty"`
	Early           string    `json:"early,omitempty"` // condition that ended the run early; a resumed run ignores conditions
}

// Point holds all values measured at one step, by series name ("total", "recon", "perplexity/batch" …).
// Values may be NaN or infinite; JSON encodes those as the strings "NaN", "+Inf", "-Inf".
type Point struct {
	Step   int
	Time   time.Time
	Values map[string]float64
}

// NewID returns a run ID: the time first, so that folders sort by age, then a random suffix that prevents collisions.
func NewID(now time.Time) string {
	var noise [5]byte
	rand.Read(noise[:]) // never fails since Go 1.24
	tail := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(noise[:]))
	return now.UTC().Format("20060102-150405") + "-" + tail
}

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ValidID reports whether id can name a run's folder: 1 to 64 of a-z, 0-9, '-', '_', the first a letter or digit.
func ValidID(id string) bool { return idForm.MatchString(id) }

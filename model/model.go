// Package model is the vocabulary of Slotscope: what a run is, what it was asked to do, what it has said so far.
// It is plain data, shared by every other package; it imports none of them.
package model

import (
	"crypto/rand"
	"encoding/base32"
	"regexp"
	"strings"
	"time"
)

// State is where a run stands in its life.
//
//	queued → running → finished             the run moves itself once its process holds the folder's lock
//	           │  └──→ failed               the run, on an error; the server, where the process exited without a final state
//	           └→ stopping → stopped        the visitor or the scheduler asks; the run saves, then says stopped
//	interrupted                             the server or `slotscope train`, on finding a dead run that said running
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

// Live says whether a process works on the run, or should.
func (s State) Live() bool { return s == Running || s == Stopping }

// Ended says whether nothing more happens to the run until somebody asks.
func (s State) Ended() bool { return s == Stopped || s == Finished || s == Failed || s == Interrupted }

// Run is one training of one model: a folder under <data>/runs/<ID>, and a row in the index.
type Run struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Notes    string    `json:"notes"`
	Config   Config    `json:"config"`
	Created  time.Time `json:"created"`
	Tags     Tags      `json:"tags"`
	Star     bool      `json:"star,omitempty"`
	Archived bool      `json:"archived,omitempty"` // not listed unless asked for
	Status
}

// Status is what a run says of itself while it works; state.json in its folder holds it.
type Status struct {
	State           State     `json:"state"`
	Step            int       `json:"step"`              // last completed step; 0 before the first
	Checkpoint      int       `json:"checkpoint"`        // step of the newest complete checkpoint; 0 for none
	Resumed         int       `json:"resumed"`           // checkpoint step this process continued from; 0 for a fresh start
	Attempt         int       `json:"attempt"`           // 1 for the first process, one more for every resume
	PID             int       `json:"pid"`               // of the process that last held the lock
	Host            string    `json:"host,omitempty"`    // machine that it last ran on; empty before the first process
	Engine          string    `json:"engine"`            // what computes, for instance "cpu" or "xla:cuda"
	EngineWhy       string    `json:"engine_why"`        // one sentence: what was tried, why this one
	Parameters      int       `json:"parameters"`        // learned numbers of the model
	ImagesPerSecond float64   `json:"images_per_second"` // over the last few seconds of work
	SecondsLeft     float64   `json:"seconds_left"`      // to the last step at that rate; 0 when unknown or over
	Started         time.Time `json:"started"`           // first process
	Updated         time.Time `json:"updated"`           // last write of this record
	Ended           time.Time `json:"ended"`             // zero while live
	Reason          string    `json:"reason"`            // why it ended, as a sentence; empty while live
	Revision        string    `json:"revision"`          // of the program that ran
	Best            int       `json:"best,omitempty"`    // step of the best checkpoint, as the configuration chooses it; 0 for none
	BestValue       float64   `json:"best_value,omitempty"`
	Early           string    `json:"early,omitempty"` // condition that ended the run early; a resume goes on regardless of conditions
}

// Point is everything a run measured at one step, by series name ("total", "recon", "perplexity/batch" …).
// A value may be NaN or infinite in memory; JSON carries those as the strings "NaN", "+Inf", "-Inf".
type Point struct {
	Step   int
	Time   time.Time
	Values map[string]float64
}

// NewID returns an identifier for a run: time first, so that folders sort by age; random last, so that two never meet.
func NewID(now time.Time) string {
	var noise [5]byte
	rand.Read(noise[:]) // never fails since Go 1.24
	tail := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(noise[:]))
	return now.UTC().Format("20060102-150405") + "-" + tail
}

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ValidID says whether id can name a run's folder: 1 to 64 of a-z, 0-9, '-', '_', the first a letter or digit.
func ValidID(id string) bool { return idForm.MatchString(id) }

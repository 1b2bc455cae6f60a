package model

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Job says how a run's process is had, where the server does not simply start one; job.json in the run's folder holds it.
type Job struct {
	Executor  string    `json:"executor"`           // Local or Slurm
	Device    string    `json:"device,omitempty"`   // of this machine, given to the run alone: "GPU-5f3c…"
	ID        string    `json:"id,omitempty"`       // of the cluster's job: "12" or "12_3"; empty before it was submitted
	Stop      bool      `json:"stop,omitempty"`     // somebody asked the run to end, so it is not to be put back in the queue
	Held      bool      `json:"held,omitempty"`     // somebody is submitting it
	Submitted time.Time `json:"submitted,omitzero"` // when the cluster took the job
	Asks      Asks      `json:"asks,omitempty"`     // what the run asks the cluster for, in the place of what all do
}

// Equal says whether both say the same.
func (j Job) Equal(k Job) bool {
	same := j.Asks.Equal(k.Asks)
	j.Asks, k.Asks = nil, nil
	return same && reflect.DeepEqual(j, k)
}

// MostInArray is how many runs are submitted to a cluster as one array; SLURM's own limit is 1000 by default.
const MostInArray = 500

// Placement is where a run is to be computed. The zero Placement leaves it to the server.
type Placement struct {
	Executor string `json:"executor,omitempty"` // Local or Slurm
	Asks     Asks   `json:"asks,omitempty"`
}

// Equal says whether both leave runs to the same place.
func (p Placement) Equal(q Placement) bool { return p.Executor == q.Executor && p.Asks.Equal(q.Asks) }

// Asks are what a job asks SLURM for, by the option's name as package slurm has them. What is named takes the place of the server's own;
// without values it is left to the cluster.
type Asks map[string][]string

// AsksOf reads assignments such as partition=gpu. Those of one name add up, and one without a value adds none.
func AsksOf(assignments ...string) Asks {
	a := Asks{}
	for _, one := range assignments {
		name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		if name = strings.TrimSpace(name); name == "" && value == "" {
			continue
		}
		if a[name] == nil {
			a[name] = []string{}
		}
		if value = strings.TrimSpace(value); value != "" {
			a[name] = append(a[name], value)
		}
	}
	return a
}

// Equal says whether both ask for the same.
func (a Asks) Equal(b Asks) bool { return maps.EqualFunc(a, b, slices.Equal) }

// Key is the same text for the same asks.
func (a Asks) Key() string {
	b, _ := json.Marshal(map[string][]string(a)) // names sorted; text always can be written
	return string(b)
}

// UnmarshalJSON also reads what older run folders have: assignments, a line each.
func (a *Asks) UnmarshalJSON(b []byte) error {
	var lines string
	if json.Unmarshal(b, &lines) == nil {
		*a = AsksOf(strings.Split(lines, "\n")...)
		return nil
	}
	return json.Unmarshal(b, (*map[string][]string)(a))
}

// Placements are where runs can be computed.
type Placements struct {
	Default string // where runs go that do not say it
	Missing string // why SLURM cannot be had here, as a sentence; "" where it can
	Asks    Asks   // what jobs ask SLURM for that do not say it
	Lines   bool   // visitors may ask for any option of sbatch, and shell lines
}

// Executors.
const (
	Local = "local" // a process of the server's machine
	Slurm = "slurm" // a job of a SLURM cluster
)

// TaskState is where a cluster's job stands.
type TaskState int

const (
	TaskUnknown TaskState = iota // asking the cluster failed yet, or did not answer
	TaskWaits                    // in the cluster's queue
	TaskRuns                     // on a node, from its preparation to its clearing away
	TaskOver                     // it will not run again by itself
)

// Task is what a cluster says of a job.
type Task struct {
	State TaskState
	Word  string // the cluster's own: "PENDING", "NODE_FAIL"
	Why   string // the cluster's reason, as in "Resources"; may be empty
	Node  string // where it runs or ran; may be empty
}

package model

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Job describes how a run's process is started, if not simply by the server. It is stored in job.json in the run's folder.
type Job struct {
	Executor  string    `json:"executor"`           // Local or Slurm
	Device    string    `json:"device,omitempty"`   // device of this machine reserved for the run: "GPU-5f3c…"
	ID        string    `json:"id,omitempty"`       // cluster job ID: "12" or "12_3"; empty before submission
	Stop      bool      `json:"stop,omitempty"`     // a stop was requested, so the job must not be requeued
	Held      bool      `json:"held,omitempty"`     // submission is in progress
	Submitted time.Time `json:"submitted,omitzero"` // when the cluster accepted the job
	Asks      Asks      `json:"asks,omitempty"`     // the run's own cluster options, overriding the server's
}

// Equal reports whether two jobs are the same; the order of options with different names does not matter.
func (j Job) Equal(k Job) bool {
	same := j.Asks.Equal(k.Asks)
	j.Asks, k.Asks = nil, nil
	return same && reflect.DeepEqual(j, k)
}

// MostInArray is the most runs submitted to a cluster as one array; SLURM's own limit is 1000 by default.
const MostInArray = 500

// Placement selects where a run executes. The zero Placement uses the server's default.
type Placement struct {
	Executor string `json:"executor,omitempty"` // Local or Slurm
	Asks     Asks   `json:"asks,omitempty"`
}

// Equal reports whether two placements are the same.
func (p Placement) Equal(q Placement) bool { return p.Executor == q.Executor && p.Asks.Equal(q.Asks) }

// Asks are a job's SLURM options, by the names of package slurm. A named option overrides the server's; without values it is left to
// the cluster's default.
type Asks map[string][]string

// AsksOf parses assignments such as partition=gpu. Values of the same name accumulate; an assignment without a value adds none.
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

// Equal reports whether both hold the same options.
func (a Asks) Equal(b Asks) bool { return maps.EqualFunc(a, b, slices.Equal) }

// Key returns a text that is equal for equal options.
func (a Asks) Key() string {
	b, _ := json.Marshal(map[string][]string(a)) // Marshal sorts names and cannot fail on strings
	return string(b)
}

// UnmarshalJSON also reads the format of older run folders: one assignment per line.
func (a *Asks) UnmarshalJSON(b []byte) error {
	var lines string
	if json.Unmarshal(b, &lines) == nil {
		*a = AsksOf(strings.Split(lines, "\n")...)
		return nil
	}
	return json.Unmarshal(b, (*map[string][]string)(a))
}

// Placements describes where runs can execute.
type Placements struct {
	Default string // executor of runs that do not select one
	Missing string // why SLURM is unavailable, as a sentence; "" if it is available
	Asks    Asks   // default SLURM options
	Lines   bool   // users may set any sbatch option and shell lines
}

// Executors.
const (
	Local = "local" // a process of the server's machine
	Slurm = "slurm" // a job on a SLURM cluster
)

// TaskState is the state of a cluster job.
type TaskState int

const (
	TaskUnknown TaskState = iota // not known yet: the cluster has not answered
	TaskWaits                    // in the cluster's queue
	TaskRuns                     // on a node, including setup and cleanup
	TaskOver                     // ended; it will not run again by itself
)

// Task is a job's status as reported by the cluster.
type Task struct {
	State TaskState
	Word  string // the cluster's own state: "PENDING", "NODE_FAIL"
	Why   string // the cluster's reason, such as "Resources"; may be empty
	Node  string // node it runs or ran on; may be empty
}

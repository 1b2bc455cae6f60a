package model

import "time"

// Job says how a run's process is had, where the server does not simply start one; job.json in the run's folder holds it.
type Job struct {
	Executor  string    `json:"executor"`           // Local or Slurm
	Device    string    `json:"device,omitempty"`   // of this machine, given to the run alone: "GPU-5f3c…"
	ID        string    `json:"id,omitempty"`       // of the cluster's job: "12" or "12_3"; empty before it was submitted
	Stop      bool      `json:"stop,omitempty"`     // somebody asked the run to end, so it is not to be put back in the queue
	Held      bool      `json:"held,omitempty"`     // somebody is submitting it
	Submitted time.Time `json:"submitted,omitzero"` // when the cluster took the job
	Asks      string    `json:"asks,omitempty"`     // what the run asks the cluster for, in the place of what all do; see Placement
}

// MostInArray is how many runs are submitted to a cluster as one array; SLURM's own limit is 1000 by default.
const MostInArray = 500

// Placement is where a run is to be computed. The zero Placement leaves it to the server.
type Placement struct {
	Executor string `json:"executor,omitempty"` // Local or Slurm
	// Asks are what a job asks SLURM for, a line each, as in partition=gpu. What it names takes the place of the server's own, and
	// is left to the cluster where nothing follows the sign.
	Asks string `json:"asks,omitempty"`
}

// Placements are where runs can be computed.
type Placements struct {
	Default string // where runs go that do not say it
	Missing string // why SLURM cannot be had here, as a sentence; "" where it can
	Asks    string // what jobs ask SLURM for that do not say it
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

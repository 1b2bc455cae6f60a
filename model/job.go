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
}

// Executors.
const (
	Local = "local" // a process of the server's machine
	Slurm = "slurm" // a job of a SLURM cluster
)

// TaskState is where a cluster's job stands.
type TaskState int

const (
	TaskUnknown TaskState = iota // the cluster was not asked yet, or did not answer
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

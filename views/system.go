package views

import "time"

// SystemView is what the program runs on; sizes are in bytes.
type SystemView struct {
	Engine   string    `json:"engine"`
	Why      string    `json:"engine_why"`
	Threads  int       `json:"threads"`
	CPUs     int       `json:"cpus"`
	Platform string    `json:"platform"`
	Memory   uint64    `json:"memory"` // taken from the operating system by this process
	DataDir  string    `json:"data"`
	Free     uint64    `json:"disk_free"`
	Disk     uint64    `json:"disk_size"`
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"uptime_seconds"`
	Modules  []Module  `json:"modules"`
}

// Module is one library that the program is built from.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// scarce says whether so little of the disk is left that a run may not be able to save: less than a gibibyte.
func (v SystemView) scarce() bool { return v.Disk > 0 && v.Free < 1<<30 }

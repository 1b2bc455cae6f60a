// Package system renders the system page: hardware, engine, storage, alerts and versions.
package system

import (
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/views"
)

// Sentences about the cluster, and about the webhook's test message.
const (
	ClusterSaid = "SLURM: jobs are submitted with sbatch and followed through squeue and the run folders."
	Accepted    = "The webhook accepted the test message."
)

// SystemView describes the system the program runs on; sizes are in bytes.
type SystemView struct {
	Engine   string    `json:"engine"`
	Why      string    `json:"engine_why"`
	Threads  int       `json:"threads"`
	BF16     string    `json:"bf16"` // kernels of the CPU engine's bf16 matrix products, and why they were chosen
	Executor string    `json:"executor"`
	Cluster  string    `json:"cluster,omitempty"`
	GPU      GPUView   `json:"gpu"`
	CPUs     int       `json:"cpus"`
	Platform string    `json:"platform"`
	Memory   uint64    `json:"memory"` // obtained from the operating system by this process
	DataDir  string    `json:"data"`
	Free     uint64    `json:"disk_free"`
	Disk     uint64    `json:"disk_size"`
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"uptime_seconds"`
	Modules  []Module  `json:"modules"`

	AlertPlan  model.AlertPlan `json:"alerts"`
	Alerts     []model.Alert   `json:"-"` // the newest, newest first
	Tested     string          `json:"-"` // result of the webhook test message; empty if none was sent
	TestFailed bool            `json:"-"`
	Now        time.Time       `json:"-"`
}

// hook describes the webhook that receives alerts.
func (v SystemView) hook() string {
	if v.AlertPlan.Host == "" {
		return "none; start the server with --webhook URL or $SLOTSCOPE_WEBHOOK"
	}
	text := v.AlertPlan.Host
	if v.AlertPlan.Signed {
		text += ", signed"
	}
	return text
}

// kinds lists the kinds of alerts sent to the webhook.
func (v SystemView) kinds() string {
	var all []string
	for _, k := range v.AlertPlan.Kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// GPUView describes the NVIDIA GPUs, the XLA plugin that was found, and where plugins were searched for.
type GPUView struct {
	GPUs    []GPU         `json:"gpus"`
	Trouble string        `json:"trouble"` // why there is no GPU, or what nvidia-smi failed to report
	Driver  string        `json:"driver"`
	Plugin  string        `json:"plugin"` // path of the XLA plugin; "" if none
	Place   string        `json:"place"`  // description of the place where it was found
	Data    string        `json:"data"`   // folder of CUDA's libdevice; "" if none
	Folder  string        `json:"install_folder"`
	Tried   []PluginPlace `json:"tried"`
}

// GPU is the state of one GPU when it was queried; −1 means not reported. Memory is in bytes, utilization in %, temperature in °C, power
// in W.
type GPU struct {
	Index       int     `json:"index"`
	Name        string  `json:"name"`
	Memory      int64   `json:"memory"`
	Used        int64   `json:"memory_used"`
	Utilization float64 `json:"utilization"`
	Temperature float64 `json:"temperature"`
	Power       float64 `json:"power"`
}

// PluginPlace is a place where plugins were searched for.
type PluginPlace struct {
	What  string   `json:"what"`
	Found []string `json:"found"`
}

// how formats the GPU's reported memory, utilization, temperature and power.
func (g GPU) how() string {
	var parts []string
	if g.Memory >= 0 && g.Used >= 0 {
		parts = append(parts, views.Size(uint64(g.Used))+" of "+views.Size(uint64(g.Memory))+" in use")
	}
	for _, m := range []struct {
		value float64
		unit  string
	}{{g.Utilization, " % busy"}, {g.Temperature, " °C"}, {g.Power, " W"}} {
		if m.value >= 0 {
			parts = append(parts, strconv.FormatFloat(m.value, 'f', 0, 64)+m.unit)
		}
	}
	return strings.Join(parts, ", ")
}

// Module is a library that the program is built from.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// scarce reports whether less than 1 GiB of disk is free, so that runs may fail to save.
func (v SystemView) scarce() bool { return v.Disk > 0 && v.Free < 1<<30 }

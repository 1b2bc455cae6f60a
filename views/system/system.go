// Package system draws the page of what the program runs on.
package system

import (
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/views"
)

// SystemView is what the program runs on; sizes are in bytes.
type SystemView struct {
	Engine   string    `json:"engine"`
	Why      string    `json:"engine_why"`
	Threads  int       `json:"threads"`
	BF16     string    `json:"bf16"` // which kernels the CPU engine's products in bf16 use, and why
	Executor string    `json:"executor"`
	Cluster  string    `json:"cluster,omitempty"`
	GPU      GPUView   `json:"gpu"`
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

	AlertPlan  model.AlertPlan `json:"alerts"`
	Alerts     []model.Alert   `json:"-"` // the newest, newest first
	Tested     string          `json:"-"` // what came of a message sent to try the webhook; empty where none was
	TestFailed bool            `json:"-"`
	Now        time.Time       `json:"-"`
}

// hook is where alerts go.
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

// kinds are what the webhook gets.
func (v SystemView) kinds() string {
	var all []string
	for _, k := range v.AlertPlan.Kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// GPUView is what was found for an NVIDIA GPU and what was tried.
type GPUView struct {
	GPUs    []GPU         `json:"gpus"`
	Trouble string        `json:"trouble"` // why there is none, or what nvidia-smi could not say
	Driver  string        `json:"driver"`
	Plugin  string        `json:"plugin"` // path of XLA's plugin; "" for none
	Place   string        `json:"place"`  // where it was found, in words
	Data    string        `json:"data"`   // folder of CUDA's libdevice; "" for none
	Folder  string        `json:"install_folder"`
	Tried   []PluginPlace `json:"tried"`
}

// GPU is one GPU as it was when it was asked; −1 for what it does not tell. Memory is in bytes, temperature in °C, power in W.
type GPU struct {
	Index       int     `json:"index"`
	Name        string  `json:"name"`
	Memory      int64   `json:"memory"`
	Used        int64   `json:"memory_used"`
	Utilization float64 `json:"utilization"`
	Temperature float64 `json:"temperature"`
	Power       float64 `json:"power"`
}

// PluginPlace is where a plugin was looked for.
type PluginPlace struct {
	What  string   `json:"what"`
	Found []string `json:"found"`
}

// how says how a GPU was when it was asked, as far as it tells.
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

// Module is one library that the program is built from.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// scarce says whether so little of the disk is left that a run may not be able to save: less than a gibibyte.
func (v SystemView) scarce() bool { return v.Disk > 0 && v.Free < 1<<30 }

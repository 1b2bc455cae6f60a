package main

import (
	"log/slog"
	"path/filepath"
	"sync"

	"slotscope/jobs"
	"slotscope/jobs/command"
	"slotscope/jobs/slurm"
	"slotscope/model/compute"
	"slotscope/model/folder"
)

// scheduled completes what runs are supervised with: the devices of this machine, and the cluster whose commands are here.
func scheduled(o command.ServeOptions, root *folder.Data, log *slog.Logger, options jobs.Options) jobs.Options {
	options.Data, options.Log, options.Devices, options.Executor = root, log, devices(), o.Executor
	if slurm.Missing() == "" {
		cluster := slurm.New(root.Dir(), o.Slurm)
		cluster.Logs = filepath.Clean(cluster.Logs)
		options.Cluster = cluster
	}
	return options
}

// devices are what runs wait for: each GPU that this process may use, and all processors together. "auto" takes what it would
// find.
func devices() func(engine string) []jobs.Device {
	auto := sync.OnceValue(func() string { name, _, _ := compute.Look(); return name })
	return func(engine string) []jobs.Device {
		if engine == "auto" {
			engine = auto()
		}
		if engine == "xla:cuda" {
			return []jobs.Device{{Name: "gpu"}}
		}
		return []jobs.Device{{Name: "cpu"}}
	}
}

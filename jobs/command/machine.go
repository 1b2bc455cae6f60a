package command

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"slotscope/jobs"
	"slotscope/jobs/slurm"
	"slotscope/model/compute"
	"slotscope/model/folder"
)

// Supervision completes the options of the supervisor: the devices of this machine, and the cluster if its commands are installed.
func Supervision(o ServeOptions, root *folder.Data, log *slog.Logger, options jobs.Options) jobs.Options {
	options.Data, options.Log, options.Devices, options.Executor = root, log, devices(machine, o.Parallel), o.Executor
	options.Alerting = o.Alerting
	options.NoCluster, options.Asks, options.Lines = slurm.Missing(), o.Slurm.Asks(), o.SlurmLines
	if options.NoCluster == "" {
		cluster := slurm.New(root.Dir(), o.Slurm)
		cluster.Logs = filepath.Clean(cluster.Logs)
		options.Cluster = cluster
	}
	return options
}

// machine reports the engine and GPUs of this machine. GPUs appear and disappear with their driver, so a report is renewed after 30 s.
var machine = fresh(30*time.Second, func() compute.Report { return compute.Look(context.Background()) })

// fresh caches the result of ask. An answer older than age is renewed in the background, because ask may take long; only the first call
// waits.
func fresh[T any](age time.Duration, ask func() T) func() T {
	var first sync.Once
	var mu sync.Mutex // guards the rest
	var answer T
	var asked time.Time
	var asking bool
	renew := func() {
		now := ask()
		mu.Lock()
		defer mu.Unlock()
		answer, asked, asking = now, time.Now(), false
	}
	return func() T {
		first.Do(renew)
		mu.Lock()
		defer mu.Unlock()
		if !asking && time.Since(asked) > age {
			asking = true
			go renew()
		}
		return answer
	}
}

// processors returns the CPU devices: all processors as one device, or one equal share for each parallel run.
func processors(parallel int) []jobs.Device {
	if parallel <= 1 {
		return []jobs.Device{{Name: "cpu"}}
	}
	var parts []jobs.Device
	for i := range parallel {
		parts = append(parts, jobs.Device{Name: fmt.Sprintf("cpu %d of %d", i+1, parallel), Env: compute.Share(parallel)})
	}
	return parts
}

// devices returns a function that lists the devices for an engine: each GPU that this process may use for XLA on CUDA, the processors
// otherwise. "auto" stands for the engine that look finds.
func devices(look func() compute.Report, parallel int) func(engine string) []jobs.Device {
	return func(engine string) []jobs.Device {
		found := look()
		if engine == "auto" {
			engine = found.Engine
		}
		if engine != "xla:cuda" {
			return processors(parallel)
		}
		var all []jobs.Device
		for _, g := range found.GPUs {
			if g.UUID != "" {
				all = append(all, jobs.Device{Name: g.UUID, Env: []string{"CUDA_VISIBLE_DEVICES=" + g.UUID}})
			}
		}
		if len(all) == 0 {
			all = []jobs.Device{{Name: "gpu"}} // the run reports what is missing
		}
		return all
	}
}

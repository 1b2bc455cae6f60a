// Package system serves the system page.
package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/host"
	ui "slotscope/views/system"
)

// System serves the system page: hardware, engine, storage, alerts and versions.
type System struct {
	Engine  func(ctx context.Context) EngineInfo // returns the engine that pages use; nil if there is none
	DataDir string
	Version string // of the program
	Started time.Time
	Alerts  Alerts // nil if alerts are disabled
}

// Alerts lists and sends alerts about runs.
type Alerts interface {
	AlertPlan() model.AlertPlan
	Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error)
	// TestAlert sends a test message to the webhook; if it is not delivered, the error wraps model.ErrConflict.
	TestAlert(ctx context.Context) error
}

// EngineInfo describes the engine of new runs, the hardware that was found, and where runs execute.
type EngineInfo struct {
	compute.Report
	Executor string // model.Local or model.Slurm
	Slurm    string // a sentence about the cluster; empty for local runs
}

// Look returns a function that detects the engine of new runs on each call; executor is where runs execute.
func Look(executor string) func(context.Context) EngineInfo {
	return func(ctx context.Context) EngineInfo {
		info := EngineInfo{Report: compute.Look(ctx), Executor: executor}
		if executor == model.Slurm {
			info.Slurm = ui.ClusterSaid
		}
		return info
	}
}

// Routes registers /system and /api/system.
func (h System) Routes(r chi.Router) {
	r.Get("/system", handlers.Handle(h.page))
	r.Get("/api/system", handlers.Handle(h.api))
	if h.Alerts != nil {
		r.Get("/api/alerts", handlers.Handle(h.apiAlerts))
		r.Post("/api/alerts/test", handlers.Handle(h.apiTestAlert))
		r.Post("/system/alerts/test", handlers.Handle(h.testAlert))
	}
}

// apiAlerts writes the alert settings and the latest alerts.
func (h System) apiAlerts(w http.ResponseWriter, r *http.Request) error {
	q, bad := model.AlertQuery{}, model.Invalid{}
	for name, into := range map[string]func(int64){"after": func(n int64) { q.After = n }, "limit": func(n int64) { q.Limit = int(n) }} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			bad[name] = fmt.Sprintf("got %q; enter a whole number ≥ 0", text)
		}
		into(n)
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	all, err := h.Alerts.Alerts(r.Context(), q)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"plan": h.Alerts.AlertPlan(), "alerts": append([]model.Alert{}, all...)})
}

func (h System) apiTestAlert(w http.ResponseWriter, r *http.Request) error {
	if err := h.Alerts.TestAlert(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// testAlert sends a test message to the webhook and shows the result on the page.
func (h System) testAlert(w http.ResponseWriter, r *http.Request) error {
	view, err := h.view(r.Context())
	if err != nil {
		return err
	}
	switch err := h.Alerts.TestAlert(r.Context()); {
	case errors.Is(err, model.ErrConflict):
		view.Tested, view.TestFailed = handlers.ErrorText(err), true
		return handlers.DrawStatus(w, r, http.StatusConflict, ui.System(view))
	case err != nil:
		return err
	}
	view.Tested = ui.Accepted
	return handlers.Draw(w, r, ui.System(view))
}

func (h System) page(w http.ResponseWriter, r *http.Request) error {
	view, err := h.view(r.Context())
	if err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.System(view))
}

func (h System) api(w http.ResponseWriter, r *http.Request) error {
	view, err := h.view(r.Context())
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, view)
}

func (h System) view(ctx context.Context) (v ui.SystemView, err error) {
	v = ui.SystemView{
		CPUs: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Version: h.Version,
		DataDir: h.DataDir, Started: h.Started, Seconds: time.Since(h.Started).Seconds(), Modules: modules(),
	}
	if h.Engine != nil {
		e := h.Engine(ctx)
		v.Engine, v.Why, v.Threads, v.BF16 = e.Engine, e.Why, e.Threads, e.BF16
		v.Executor, v.Cluster = e.Executor, e.Slurm
		v.GPU = gpuView(e.Report)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	v.Memory = mem.Sys
	v.Free, v.Disk = diskSpace(h.DataDir)
	if h.Alerts != nil {
		v.Now, v.AlertPlan = time.Now(), h.Alerts.AlertPlan()
		v.Alerts, err = h.Alerts.Alerts(ctx, model.AlertQuery{Limit: shownAlerts})
	}
	return v, err
}

func gpuView(r compute.Report) ui.GPUView {
	v := ui.GPUView{Trouble: r.Trouble, Driver: r.Driver, Plugin: r.Plugin.Path, Place: r.Plugin.Place, Data: r.Plugin.Data, Folder: r.Folder,
		GPUs: []ui.GPU{}, Tried: []ui.PluginPlace{}}
	for _, g := range r.GPUs {
		v.GPUs = append(v.GPUs, ui.GPU{Index: g.Index, Name: g.Name, Memory: g.Memory, Used: g.Used, Utilization: g.Utilization, Temperature: g.Temperature, Power: g.Power})
	}
	for _, p := range r.Tried {
		v.Tried = append(v.Tried, ui.PluginPlace{What: p.What, Found: append([]string{}, p.Found...)})
	}
	return v
}

// diskSpace returns the free space for this user and the total size of dir's file system, in bytes; zeros if unknown.
func diskSpace(dir string) (free, all uint64) {
	left, size, _ := host.Space(dir)
	return uint64(left), uint64(size)
}

// shownAlerts is the number of alerts listed on the page.
const shownAlerts = 20

// shown are the libraries that affect results or stored data.
var shown = []string{"github.com/gomlx/gomlx", "github.com/gomlx/go-xla", "github.com/mattn/go-sqlite3", "github.com/go-chi/chi/v5", "github.com/a-h/templ", "gonum.org/v1/gonum"}

func modules() []ui.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []ui.Module
	for _, path := range shown {
		for _, dep := range info.Deps {
			if dep.Path == path {
				all = append(all, ui.Module{Path: path, Version: dep.Version})
			}
		}
	}
	return all
}

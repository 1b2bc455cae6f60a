//go:build linux

package jobs

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slotscope/model"
)

// gathered returns the values of a supervisor's gauges by name and labels.
func gathered(t *testing.T, s *Supervisor) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Metrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() == "run" || l.GetName() == "state" {
					key += " " + l.GetValue()
				}
			}
			all[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of them is nil
		}
	}
	return all
}

func TestMetricsOfRuns(t *testing.T) {
	b := newBench(t)
	id := b.create("well", 20)
	b.awaitState(id, model.Finished)
	all := gathered(t, b.Supervisor)
	for key, want := range map[string]float64{"slotscope_runs finished": 1, "slotscope_runs failed": 0, "slotscope_runs_ended_total finished": 1, "slotscope_runs_ended_total failed": 0,
		"slotscope_run_info " + id: 1, "slotscope_run_state " + id + " finished": 1,
		"slotscope_run_state " + id + " running": 0, "slotscope_run_step " + id: 20, "slotscope_run_steps " + id: 20, "slotscope_run_loss " + id: 1. / 20} {
		if got, there := all[key]; !there || got != want {
			t.Errorf("%s is %g, present: %v; want %g", key, got, there, want)
		}
	}
	if _, there := all["slotscope_run_infom "+id]; there {
		t.Error("a run without InfoM has a gauge for it")
	}
}

// TestMetricsAreBounded checks that of many runs the live ones have gauges, then the last ones that ended within an hour.
func TestMetricsAreBounded(t *testing.T) {
	now := time.Now()
	s := &Supervisor{runs: map[string]*entry{}}
	put := func(state model.State, ended time.Time, n int, name string) {
		for i := range n {
			id := fmt.Sprintf("%s-%03d", name, i)
			s.runs[id] = &entry{run: model.Run{ID: id, Status: model.Status{State: state, Ended: ended.Add(-time.Duration(i) * time.Second)}}}
		}
	}
	put(model.Running, time.Time{}, 30, "live")
	put(model.Finished, now, 90, "new")
	put(model.Failed, now.Add(-2*time.Hour), 500, "old")
	runs, count, _ := s.measured(now)
	seen := map[string]bool{}
	for _, r := range runs {
		seen[r.ID] = true
	}
	if len(runs) != measuredRuns || !seen["live-000"] || !seen["live-029"] || !seen["new-069"] || seen["new-070"] || seen["old-000"] || count[model.Failed] != 500 {
		t.Errorf("%d runs, %v", len(runs), count)
	}
}

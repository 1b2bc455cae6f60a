package jobs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"slotscope/model"
)

var stored = promauto.NewCounter(prometheus.CounterOpts{
	Name: "slotscope_points_stored_total", Help: "Points copied from run folders into the index."})

const (
	measuredRuns  = 100       // at most this many runs have their own gauges
	measuredAfter = time.Hour // how long an ended run keeps them
	measureTime   = 5 * time.Second
)

var (
	endedDesc = prometheus.NewDesc("slotscope_runs_ended_total", "Runs that ended while this server was running, by final state.", []string{"state"}, nil)
	runsDesc  = prometheus.NewDesc("slotscope_runs", "Runs in the data folder, by state.", []string{"state"}, nil)
	infoDesc  = prometheus.NewDesc("slotscope_run_info", "1 for each of at most 100 runs that are live or ended within the last hour, with model, preset and dataset.",
		[]string{"run", "name", "model", "preset", "dataset"}, nil)
	stateDesc = prometheus.NewDesc("slotscope_run_state", "1 for the current state of a run, 0 for the others.", []string{"run", "state"}, nil)
)

// states are the states of a run, in the order of its life.
var states = []model.State{model.Queued, model.Running, model.Stopping, model.Stopped, model.Finished, model.Failed, model.Interrupted}

// gauge is one number of a run: a value of its status, or the last value of a series.
type gauge struct {
	desc   *prometheus.Desc
	status func(model.Run) float64
	series string
}

func runGauge(name, help string, status func(model.Run) float64, series string) gauge {
	return gauge{prometheus.NewDesc("slotscope_run_"+name, help, []string{"run"}, nil), status, series}
}

var gauges = []gauge{
	runGauge("step", "Last completed step.", func(r model.Run) float64 { return float64(r.Step) }, ""),
	runGauge("steps", "Total number of steps.", func(r model.Run) float64 { return float64(r.Config.Steps) }, ""),
	runGauge("images_per_second", "Training images per second; 0 if unknown or ended.", func(r model.Run) float64 { return r.ImagesPerSecond }, ""),
	runGauge("seconds_left", "Time to the last step at the current speed; 0 if unknown.", func(r model.Run) float64 { return r.SecondsLeft }, ""),
	runGauge("loss", "Latest total loss.", nil, "total"),
	runGauge("perplexity", "Latest perplexity of the codebook over a window of batches.", nil, "perplexity/window"),
	runGauge("psnr_db", "Latest PSNR of an evaluation, in dB.", nil, "psnr/eval"),
	runGauge("infom", "Latest InfoM of an evaluation.", nil, "infom/eval"),
}

// Metrics returns the gauges of the runs for /metrics. Their number is bounded, regardless of the size of the data folder.
func (s *Supervisor) Metrics() prometheus.Collector { return collector{s} }

type collector struct{ s *Supervisor }

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{endedDesc, runsDesc, infoDesc, stateDesc} {
		to <- d
	}
	for _, g := range gauges {
		to <- g.desc
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), measureTime)
	defer cancel()
	runs, count, ended := c.s.measured(time.Now())
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range states {
		set(runsDesc, float64(count[state]), string(state))
		if state.Ended() {
			to <- prometheus.MustNewConstMetric(endedDesc, prometheus.CounterValue, float64(ended[state]), string(state))
		}
	}
	for _, r := range runs {
		set(infoDesc, 1, r.ID, r.Name, r.Config.Model, r.Config.Preset, r.Config.Dataset)
		for _, state := range states {
			is := 0.0
			if r.State == state {
				is = 1
			}
			set(stateDesc, is, r.ID, string(state))
		}
		values, err := c.s.o.Store.LastValues(ctx, r.ID)
		if err != nil {
			c.s.o.Log.Error("reading the last values of a run failed", "run", r.ID, "error", err)
		}
		for _, g := range gauges {
			if g.status != nil {
				set(g.desc, g.status(r), r.ID)
			} else if v, there := values[g.series]; there {
				set(g.desc, v, r.ID)
			}
		}
	}
}

// measured returns the runs with their own gauges, live ones first, then the most recently ended, and the number of all runs and of the ends
// seen by this server, by state.
func (s *Supervisor) measured(now time.Time) (runs []model.Run, count, ended map[model.State]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count = map[model.State]int{}
	for _, e := range s.runs {
		count[e.run.State]++
		if e.run.State.Live() || e.run.State.Ended() && now.Sub(e.run.Ended) < measuredAfter {
			runs = append(runs, e.run)
		}
	}
	slices.SortFunc(runs, func(a, b model.Run) int {
		return cmp.Or(cmp.Compare(endedLast(a), endedLast(b)), b.Ended.Compare(a.Ended), cmp.Compare(b.ID, a.ID))
	})
	return runs[:min(measuredRuns, len(runs))], count, maps.Clone(s.ended)
}

// endedLast is a sort key that puts live runs first.
func endedLast(r model.Run) int {
	if r.State.Live() {
		return 0
	}
	return 1
}

package sweep

import (
	"math/rand/v2"
	"testing"

	"slotscope/model"
)

var (
	server  = Worker{}
	resumer = Worker{Stopped: true}
	shell   = Worker{Stopped: true, Orphans: true}
	again   = Worker{Stopped: true, Orphans: true, Retry: true}
	cluster = Worker{Stopped: true, Orphans: true, Most: 3}
)

// TestNext has a row for every edge of the table.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		stage Stage
		state model.State
		busy  bool
		tries int
		want  map[string]Action // by worker; the others wait
	}{
		{Planned, "", false, 0, map[string]Action{"server": Begin, "resumer": Begin, "shell": Begin, "again": Begin, "cluster": Begin}},
		{Planned, "", false, 3, map[string]Action{"server": Begin, "resumer": Begin, "shell": Begin, "again": Begin}},
		{Halted, model.Interrupted, false, 1, map[string]Action{"server": Continue, "resumer": Continue, "shell": Continue, "again": Continue, "cluster": Continue}},
		{Halted, model.Interrupted, false, 3, map[string]Action{"server": Continue, "resumer": Continue, "shell": Continue, "again": Continue}},
		{Halted, model.Interrupted, true, 0, nil},
		{Halted, model.Stopped, false, 0, map[string]Action{"resumer": Continue, "shell": Continue, "again": Continue, "cluster": Continue}},
		{Halted, model.Stopped, true, 0, nil},
		{Live, model.Queued, false, 0, map[string]Action{"shell": Continue, "again": Continue, "cluster": Continue}},
		{Live, "", false, 0, map[string]Action{"shell": Continue, "again": Continue, "cluster": Continue}},
		{Live, model.Queued, true, 0, nil},
		{Live, model.Queued, false, 1, nil},
		{Live, model.Running, false, 0, nil},
		{Live, model.Stopping, false, 0, nil},
		{Failed, model.Failed, false, 0, map[string]Action{"again": Continue}},
		{Failed, model.Failed, true, 0, nil},
		{Failed, model.Failed, false, 1, nil},
		{Failed, model.Finished, false, 0, nil}, // its evaluation failed
		{Unmeasured, model.Finished, false, 5, map[string]Action{"server": Measure, "resumer": Measure, "shell": Measure, "again": Measure, "cluster": Measure}},
		{Unmeasured, model.Finished, true, 0, nil},
		{Done, model.Finished, false, 0, nil},
	} {
		for name, w := range map[string]Worker{"server": server, "resumer": resumer, "shell": shell, "again": again, "cluster": cluster} {
			want := c.want[name]
			if want == "" {
				want = Wait
			}
			s := Standing{Stage: c.stage, Found: Found{Run: model.Run{Status: model.Status{State: c.state}}}}
			if got := s.Next(w, c.busy, c.tries); got != want {
				t.Errorf("%s, run %q, busy %v, tries %d: %s does %q, want %q", c.stage, c.state, c.busy, c.tries, name, got, want)
			}
		}
	}
}

// TestNextInARace: items that wait for their seed or have lost are neither started nor resumed; running items may end and are evaluated.
func TestNextInARace(t *testing.T) {
	for _, w := range []Worker{server, resumer, shell, again, cluster} {
		for _, s := range []Standing{
			{Stage: Planned, Later: true},
			{Stage: Halted, Later: true, Found: Found{Run: model.Run{Status: model.Status{State: model.Interrupted}}}},
			{Stage: Out},
			{Stage: Out, Found: Found{Run: model.Run{Status: model.Status{State: model.Interrupted}}}},
		} {
			if got := s.Next(w, false, 0); got != Wait {
				t.Errorf("%+v: %s for %s, run %q, later %v", w, got, s.Stage, s.Run.State, s.Later)
			}
		}
		if got := (Standing{Stage: Unmeasured, Later: true}).Next(w, false, 0); got != Measure {
			t.Errorf("finished run whose seed the race has not reached: %s", got)
		}
	}
}

// walked is one item in a walk of random events.
type walked struct {
	Standing
	exists, busy bool
	starts       int
}

func (w *walked) become(stage Stage, state model.State) { w.Stage, w.Run.State = stage, state }

// do performs an action, and fails on actions that a worker must never take.
func (w *walked) do(t *testing.T, a Action) {
	switch {
	case a == Wait:
		return
	case w.busy:
		t.Fatalf("%s for a busy run", a)
	case a == Begin && w.exists:
		t.Fatal("a run is created twice")
	case a == Continue && !w.exists:
		t.Fatal("a run that does not exist is continued")
	case a == Measure && w.Run.State != model.Finished:
		t.Fatalf("a run in state %s is evaluated", w.Run.State)
	case w.Stage == Done:
		t.Fatalf("%s for an item that is done", a)
	}
	w.exists, w.busy = true, true
	if a == Measure {
		return
	}
	w.starts++
	w.become(Live, model.Running)
}

// happens applies an event to the process that works on the item; how is 0 for a successful end.
func (w *walked) happens(how int) {
	if !w.busy {
		if how == 4 && w.Stage == Live { // a worker queued it and ended
			w.Run.State = model.Queued
		}
		return
	}
	w.busy = false
	switch {
	case w.Stage == Unmeasured && how == 0:
		w.become(Done, model.Finished)
	case w.Stage == Unmeasured:
		w.become(Unmeasured, model.Finished) // killed, so there are no scores
	case how == 0:
		w.become(Unmeasured, model.Finished)
	case how == 1:
		w.become(Failed, model.Failed)
	case how == 2:
		w.become(Halted, model.Interrupted)
	case how == 3:
		w.become(Halted, model.Stopped)
	default:
		w.become(Live, model.Queued)
	}
}

// TestWalks: for any sequence of events, no run is worked on twice at once and none is created twice, and once failures stop, every item
// reaches the end that its worker can bring it to.
func TestWalks(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		worker := []Worker{server, shell, again, cluster}[seed%4]
		items := make([]walked, 4)
		for i := range items {
			items[i].Stage = Planned
		}
		tries := make([]int, len(items))
		step := func(how func() int) {
			for i := range items {
				w := &items[i]
				if r.IntN(3) > 0 {
					a := w.Next(worker, w.busy, tries[i])
					w.do(t, a)
					if a == Continue || a == Begin {
						tries[i]++
					}
				}
				if r.IntN(2) == 0 {
					w.happens(how())
				}
			}
		}
		for range r.IntN(40) {
			step(func() int { return r.IntN(5) })
		}
		for range 60 {
			step(func() int { return 0 })
		}
		for i, w := range items {
			limited := worker.Most > 0 && tries[i] >= worker.Most
			left := w.Stage == Done || w.Stage == Failed || limited ||
				w.Run.State == model.Stopped && !worker.Stopped || w.Run.State == model.Queued && (!worker.Orphans || tries[i] > 0)
			if !left {
				t.Fatalf("seed %d: %+v forgets item %d: %s, run %q, tried %d times", seed, worker, i, w.Stage, w.Run.State, tries[i])
			}
			if limited && w.starts > worker.Most {
				t.Fatalf("seed %d: a run was started %d times", seed, w.starts)
			}
		}
	}
}

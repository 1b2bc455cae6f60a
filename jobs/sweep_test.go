//go:build linux

package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/sweep"
)

// ruler evaluates runs by a rule of the test, in a separate process.
type ruler struct {
	mu    sync.Mutex
	dir   string
	infoM func(model.Config) float64 // negative makes the evaluation fail
	flags map[string][]string        // by run
}

func (r *ruler) evaluate(dir string, flags []string) (*exec.Cmd, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flags[f.ID()] = flags
	v := r.infoM(f.Config())
	if v < 0 {
		return exec.Command("sh", "-c", "echo the ruler is broken >&2; exit 1"), nil
	}
	text, err := json.Marshal(model.Scores{Version: model.ScoresVersion, Step: f.Config().Steps, PSNR: 20, Metrics: &model.Metrics{InfoM: model.Score(v)}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(r.dir, f.ID()+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	return exec.Command("cp", file, filepath.Join(dir, "scores.json")), nil
}

// sweeping is a bench with sweeps.
func sweeping(t *testing.T, infoM func(model.Config) float64, change ...func(*Options)) (*bench, *ruler, func() *Sweeps) {
	t.Helper()
	b := newBench(t, change...)
	r := &ruler{dir: t.TempDir(), infoM: infoM, flags: map[string][]string{}}
	open := func() *Sweeps {
		return b.sweeps(t, r.evaluate)
	}
	return b, r, open
}

// sweeps returns the sweeps of the bench's current supervisor.
func (b *bench) sweeps(t *testing.T, evaluate func(dir string, flags []string) (*exec.Cmd, error)) *Sweeps {
	b.evaluateBy(evaluate)
	s := NewSweeps(background, SweepOptions{Supervisor: b.Supervisor, Log: b.opt.Log, Poll: 20 * time.Millisecond})
	t.Cleanup(func() { s.Close() })
	return s
}

// choosing returns a plan that first chooses β: two runs to choose from, then two more, and one of HRR.
func choosing(steps int) sweep.Plan {
	return sweep.Plan{Name: "choosing", Preset: "tiny", Steps: steps, Set: map[string]string{"eval_images": "77"}, Parts: []sweep.Part{
		{Name: "main", Models: []string{"betavae"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0, 1},
			Select: &sweep.Select{Seeds: []int64{100}, Axes: []sweep.Axis{{Field: "beta_kl", Values: []string{"1", "10"}}}}},
		{Name: "more", Models: []string{"hrr"}, Datasets: []string{"shapes3d-synthetic"}, Seeds: []int64{0}},
	}}
}

// until waits until ok returns true for a sweep.
func until(t *testing.T, s *Sweeps, id, what string, ok func(sweep.Status) bool) sweep.Status {
	t.Helper()
	var st sweep.Status
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if st, err = s.Get(background, id); err != nil {
			t.Fatal(err)
		}
		if ok(st) {
			return st
		}
	}
	t.Fatalf("not within a minute: %s; %+v", what, st.Board.Items)
	return st
}

func over(s sweep.Status) bool { return s.Board.Over() && !s.Active }

func TestSweepRunsToItsEnd(t *testing.T) {
	_, r, open := sweeping(t, func(c model.Config) float64 { return c.BetaKL / 20 })
	s := open()
	st, err := s.Create(background, choosing(6))
	if err != nil || !st.Active {
		t.Fatalf("%v %+v", err, st)
	}
	st = until(t, s, st.ID, "the end", over)
	if c := st.Board.Choices[0]; c.Chosen != "10" || st.Board.Count(sweep.Done) != 5 || st.Board.Total() != 5 {
		t.Errorf("chosen %q, %d done of %d", c.Chosen, st.Board.Count(sweep.Done), st.Board.Total())
	}
	for _, item := range st.Board.Items {
		flags := strings.Join(r.flags[item.ID], " ")
		if want := "--images 77"; !strings.HasPrefix(flags, want) || strings.Contains(flags, "--pairs 0") != (len(item.Parts) == 0) {
			t.Errorf("%s was evaluated with %s", item.Name, flags)
		}
		if item.Selecting == false && item.Config.Model == "betavae" && item.Run.Config.BetaKL != 10 {
			t.Errorf("%s ran with β %v", item.Name, item.Run.Config.BetaKL)
		}
	}
	attempts := func() (n int) {
		for _, item := range until(t, s, st.ID, "an answer", func(sweep.Status) bool { return true }).Board.Items {
			n += item.Run.Attempt
		}
		return n
	}
	before := attempts()
	again, err := s.Create(background, choosing(6)) // finished runs are not repeated
	if err != nil || again.ID != st.ID {
		t.Fatal(err)
	}
	until(t, s, st.ID, "rest", over)
	if attempts() != before {
		t.Error("an ended run was repeated")
	}
	if err := s.Delete(background, st.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(background, st.ID); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

func TestSweepStopsAndGoesOnUnderAnotherServer(t *testing.T) {
	t.Parallel()
	b, _, open := sweeping(t, func(model.Config) float64 { return 0.5 })
	s := open()
	st, err := s.Create(background, choosing(400))
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, st.ID, "a run at work", func(st sweep.Status) bool {
		return len(st.Board.Items) > 0 && st.Board.Items[0].Run.State == model.Running && st.Board.Items[0].Run.Step > 5
	})
	if err := s.Delete(background, st.ID); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleting a running sweep: %v", err)
	}
	if err := s.Stop(background, st.ID); err != nil {
		t.Fatal(err)
	}
	st = until(t, s, st.ID, "its end", func(st sweep.Status) bool { return st.Board.Count(sweep.Live) == 0 })
	if st.Active || st.Board.Items[0].Stage != sweep.Halted || st.Board.Items[0].Run.Checkpoint == 0 {
		t.Errorf("stopped: %+v", st.Board.Items[0])
	}
	time.Sleep(100 * time.Millisecond)
	if st, _ = s.Get(background, st.ID); st.Board.Count(sweep.Planned) != len(st.Board.Items)-1 {
		t.Error("a stopped sweep started another run")
	}
	step := st.Board.Items[0].Run.Checkpoint
	if err := s.Resume(background, st.ID, false); err != nil {
		t.Fatal(err)
	}
	s.Close()
	b.Close()
	b.open() // the next server finds the sweep active
	s = b.sweeps(t, (&ruler{dir: t.TempDir(), infoM: func(model.Config) float64 { return 0.5 }, flags: map[string][]string{}}).evaluate)
	st = until(t, s, st.ID, "the end", over)
	if first := st.Board.Items[0].Run; first.Resumed != step || st.Board.Count(sweep.Done) != 5 {
		t.Errorf("the first run continued from %d, not %d; %d done", first.Resumed, step, st.Board.Count(sweep.Done))
	}
}

func TestSweepListsWhatFails(t *testing.T) {
	fails := true
	var mu sync.Mutex
	good := command(2 * time.Millisecond)
	_, r, open := sweeping(t, func(c model.Config) float64 {
		if c.Model == "hrr" {
			return -1
		}
		return c.BetaKL / 20
	}, func(o *Options) {
		o.Command = func(dir string) (*exec.Cmd, error) {
			mu.Lock()
			defer mu.Unlock()
			if fails && strings.Contains(dir, "betavae-shapes3d-synthetic-s1-") {
				return exec.Command("sh", "-c", "echo out of memory >&2; exit 3"), nil
			}
			return good(dir)
		}
	})
	s := open()
	st, err := s.Create(background, choosing(6))
	if err != nil {
		t.Fatal(err)
	}
	st = until(t, s, st.ID, "the end", over)
	reasons := map[string]string{}
	for _, item := range st.Board.Items {
		if item.Stage == sweep.Failed {
			reasons[fmt.Sprint(item.Config.Model, item.Config.Seed)] = item.Problem
		}
	}
	if len(reasons) != 2 || !strings.Contains(reasons["betavae1"], "out of memory") || !strings.Contains(reasons["hrr0"], "the ruler is broken") {
		t.Errorf("reasons: %v", reasons)
	}
	mu.Lock()
	fails = false
	mu.Unlock()
	r.mu.Lock()
	r.infoM = func(model.Config) float64 { return 0.4 }
	r.mu.Unlock()
	if err := s.Resume(background, st.ID, true); err != nil {
		t.Fatal(err)
	}
	if st = until(t, s, st.ID, "the second end", func(st sweep.Status) bool { return st.Board.Count(sweep.Done) == 5 }); st.Board.Count(sweep.Done) != 5 {
		t.Errorf("%d done after retrying", st.Board.Count(sweep.Done))
	}
}

func TestSweepRefuses(t *testing.T) {
	b, _, open := sweeping(t, func(model.Config) float64 { return 0 })
	s := open()
	var bad model.Invalid
	if _, err := s.Create(background, sweep.Plan{}); !errors.As(err, &bad) {
		t.Errorf("invalid plan: %v", err)
	}
	b.o.Check = func(context.Context, model.Config) error { return model.Invalid{"dataset": "there is no such dataset"} }
	if _, err := s.Create(background, choosing(6)); !errors.As(err, &bad) || bad["dataset"] == "" {
		t.Errorf("a missing dataset: %v", err)
	}
	for name, err := range map[string]error{"stop": s.Stop(background, "nothing"), "resume": s.Resume(background, "nothing", false), "delete": s.Delete(background, "nothing")} {
		if !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSweepFillsDevices checks that three devices run three runs at a time, one each, that an evaluation takes an idle device, and that
// the choice is made before the runs that depend on it.
func TestSweepFillsDevices(t *testing.T) {
	t.Parallel()
	three := func(o *Options) {
		o.Devices = func(string) []Device {
			var all []Device
			for _, name := range []string{"a", "b", "c"} {
				all = append(all, Device{Name: name, Env: []string{"FAKE_DEVICE=" + name}})
			}
			return all
		}
	}
	b, r, _ := sweeping(t, func(c model.Config) float64 { return c.BetaKL / 20 }, three)
	said := filepath.Join(t.TempDir(), "devices")
	s := b.sweeps(t, func(dir string, flags []string) (*exec.Cmd, error) {
		cmd, err := r.evaluate(dir, flags)
		if err != nil {
			return nil, err
		}
		return exec.Command("sh", append([]string{"-c", `echo $FAKE_DEVICE >>"$0"; exec "$@"`, said}, cmd.Args...)...), nil
	})
	plan := choosing(150)
	plan.Parts[1].Seeds = []int64{0, 1, 2}
	st, err := s.Create(background, plan)
	if err != nil {
		t.Fatal(err)
	}
	most, devices := 0, map[string]bool{} // of runs, and of evaluations, which take the last one
	st = until(t, s, st.ID, "the end", func(st sweep.Status) bool {
		working := 0
		for _, item := range st.Board.Items {
			if item.Stage == sweep.Live {
				working++
			}
		}
		most = max(most, working)
		return over(st)
	})
	for _, item := range st.Board.Items {
		f, err := s.o.Supervisor.open(background, item.ID)
		if err != nil {
			t.Fatal(err)
		}
		job, err := f.Job()
		if err != nil {
			t.Error(err)
		}
		devices[job.Device] = true
		f.Close()
	}
	evaluated, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range strings.Fields(string(evaluated)) {
		devices[device] = true
	}
	if most != 3 || len(devices) != 3 || st.Board.Count(sweep.Done) != 7 || st.Board.Choices[0].Chosen != "10" || len(r.flags) != 7 {
		t.Errorf("at most %d runs at a time on %v; %d done, chosen %q", most, devices, st.Board.Count(sweep.Done), st.Board.Choices[0].Chosen)
	}
}

// TestSweepEvaluatesOnAnIdleDevice checks that an evaluation takes the last device, because runs take the first.
func TestSweepEvaluatesOnAnIdleDevice(t *testing.T) {
	b, _, _ := sweeping(t, func(model.Config) float64 { return 0.5 }, func(o *Options) {
		o.Devices = func(string) []Device {
			return []Device{{Name: "a", Env: []string{"FAKE_DEVICE=a"}}, {Name: "b", Env: []string{"FAKE_DEVICE=b"}}}
		}
	})
	said := filepath.Join(t.TempDir(), "devices")
	s := b.sweeps(t, func(dir string, _ []string) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", `echo $FAKE_DEVICE >>"$1"; echo '{"version":1,"metrics":{"infom":0.5}}' >"$2/scores.json"`, "sh", said, dir), nil
	})
	plan := choosing(6)
	plan.Parts = plan.Parts[1:]
	st, err := s.Create(background, plan)
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, st.ID, "the end", over)
	if text, err := os.ReadFile(said); err != nil || strings.TrimSpace(string(text)) != "b" {
		t.Errorf("evaluated on %q: %v", text, err)
	}
}

// TestSweepOfAShellShows checks that the status of a sweep names the shell that runs it.
func TestSweepOfAShellShows(t *testing.T) {
	_, _, open := sweeping(t, func(model.Config) float64 { return 0.5 })
	s := open()
	saved, err := s.store.Save(choosing(1))
	if err != nil {
		t.Fatal(err)
	}
	worker := func() string {
		t.Helper()
		st, err := s.Get(background, saved.ID)
		if err != nil {
			t.Fatal(err)
		}
		return st.Worker
	}
	if w := worker(); w != "" {
		t.Errorf("worker is %q before there is one", w)
	}
	lock, err := folder.LockPath(s.store.WorkerLock(saved.ID), "sweep")
	if err != nil {
		t.Fatal(err)
	}
	if w := worker(); w != fmt.Sprintf("process %d", os.Getpid()) {
		t.Errorf("worker is %q", w)
	}
	lock.Unlock()
	if w := worker(); w != "" {
		t.Errorf("worker is %q after the shell has ended", w)
	}
}

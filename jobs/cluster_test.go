//go:build linux

package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/sweep"
)

// fakeCluster is a scheduler whose jobs are controlled by the test. A running job is the fake trainer.
type fakeCluster struct {
	mu     sync.Mutex
	next   int
	arrays [][]string   // folders of each submission
	asks   []model.Asks // options of each submission
	dirs   map[string]string
	tasks  map[string]model.Task
	done   []string // requests, e.g. "ask 1_0"
	refuse error
	mute   bool          // responds to no query
	slow   chan struct{} // if set, Ask and Cancel announce themselves here, and wait until they are answered
	answer chan error    // the answers
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{dirs: map[string]string{}, tasks: map[string]model.Task{}}
}

// Check allows one option.
func (c *fakeCluster) Check(asks model.Asks, lines bool) error {
	if asks["line"] != nil && lines {
		return nil
	}
	if len(asks) > 0 && asks["partition"] == nil {
		return model.Invalid{"time": "cannot be asked for"}
	}
	return nil
}

func (c *fakeCluster) Submit(_ context.Context, dirs []string, asks model.Asks) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return nil, c.refuse
	}
	c.next++
	c.arrays, c.asks = append(c.arrays, dirs), append(c.asks, asks)
	var ids []string
	for i, dir := range dirs {
		id := fmt.Sprintf("%d_%d", c.next, i)
		c.dirs[id], c.tasks[id] = dir, model.Task{State: model.TaskWaits, Word: "PENDING", Why: "Resources"}
		ids = append(ids, id)
	}
	return ids, nil
}

func (c *fakeCluster) Tasks(_ context.Context, ids []string) (map[string]model.Task, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mute {
		return nil, errors.New("the controller does not answer")
	}
	tasks := map[string]model.Task{}
	for _, id := range ids {
		t, known := c.tasks[id]
		if !known {
			t = model.Task{State: model.TaskOver, Word: "FORGOTTEN"}
		}
		tasks[id] = t
	}
	return tasks, nil
}

func (c *fakeCluster) Ask(_ context.Context, id string) error    { return c.note("ask " + id) }
func (c *fakeCluster) Cancel(_ context.Context, id string) error { return c.note("cancel " + id) }

func (c *fakeCluster) note(what string) error {
	c.mu.Lock()
	c.done = append(c.done, what)
	slow := c.slow
	c.mu.Unlock()
	if slow == nil {
		return nil
	}
	slow <- struct{}{}
	return <-c.answer
}

func (c *fakeCluster) asked(what string) bool { return slices.Contains(c.requests(), what) }

func (c *fakeCluster) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

// submitted returns the folders and options of each submission.
func (c *fakeCluster) submitted() ([][]string, []model.Asks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.arrays), slices.Clone(c.asks)
}

// dir returns the folder of a job.
func (c *fakeCluster) dir(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirs[id]
}

// now sets the state of a job.
func (c *fakeCluster) now(id string, t model.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks[id] = t
}

// begin runs a job on this machine, as a node would.
func (c *fakeCluster) begin(t *testing.T, id string) *exec.Cmd {
	t.Helper()
	c.now(id, model.Task{State: model.TaskRuns, Word: "RUNNING", Node: "n1"})
	cmd, err := command(2 * time.Millisecond)(c.dir(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func onCluster(c *fakeCluster) func(*Options) {
	return func(o *Options) { o.Cluster, o.Executor, o.ClusterPoll = c, model.Slurm, 5*time.Millisecond }
}

// job waits until a run has a job, and returns its ID.
func (b *bench) job(id string) (job string) {
	b.t.Helper()
	b.await(id, "job", func(model.Run) bool {
		f, err := b.data.Open(id)
		if err != nil {
			b.t.Fatal(err)
		}
		defer f.Close()
		j, err := f.Job()
		job = j.ID
		return err == nil && job != ""
	})
	return job
}

func (b *bench) reason(id, part string) {
	b.t.Helper()
	b.await(id, part, func(r model.Run) bool { return strings.Contains(r.Reason, part) })
}

func TestClusterTrainsARun(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	id := b.create("on the cluster", 30)
	job := b.job(id)
	b.reason(id, "SLURM job "+job+" is waiting: Resources.")
	if b.started(id) {
		t.Error("a process was started on this machine")
	}
	b.restart() // the job outlives the server
	b.reason(id, "Resources")
	c.begin(t, job)
	b.awaitState(id, model.Finished)
	b.complete(id, 30)
	if arrays, _ := c.submitted(); len(arrays) != 1 {
		t.Errorf("submitted %d times", len(arrays))
	}
}

func TestManyRunsAreOneArray(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	b.Close()
	var ids []string
	for i := range 3 {
		f, err := b.data.Create(config(10), fmt.Sprint("seed ", i), model.Status{State: model.Queued})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, f.ID())
		f.Close()
	}
	b.open() // the new server finds all three queued
	for _, id := range ids {
		b.job(id)
	}
	if arrays, _ := c.submitted(); len(arrays) != 1 || len(arrays[0]) != 3 {
		t.Errorf("submitted %v", arrays)
	}
}

// TestPlacedRun checks that runs go to their own executor with their own options, regardless of the server's default.
func TestPlacedRun(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c), func(o *Options) { o.Asks = model.AsksOf("partition=all") })
	if p := b.Placements(); !reflect.DeepEqual(p, model.Placements{Default: model.Slurm, Asks: model.AsksOf("partition=all")}) {
		t.Errorf("%+v", p)
	}
	place := func(at model.Placement) string {
		t.Helper()
		r, err := b.CreateAt(t.Context(), config(20), "placed", at)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	here := place(model.Placement{Executor: model.Local})
	b.awaitState(here, model.Finished)
	there := place(model.Placement{Executor: model.Slurm, Asks: model.AsksOf("partition=gpu")})
	job := b.job(there)
	if arrays, asks := c.submitted(); len(arrays) != 1 || !asks[0].Equal(model.AsksOf("partition=gpu")) {
		t.Fatalf("submitted %v with options %q", arrays, asks)
	}
	b.restart()
	b.stop(there)
	b.awaitState(there, model.Stopped)
	c.now(job, model.Task{State: model.TaskOver, Word: "CANCELLED"})
	b.await(there, "the job's end", func(model.Run) bool { return b.Resume(t.Context(), there, 0) == nil })
	b.await(there, "a second job", func(model.Run) bool { _, asks := c.submitted(); return len(asks) == 2 })
	if _, asks := c.submitted(); !asks[1].Equal(model.AsksOf("partition=gpu")) {
		t.Errorf("resumed with options %q", asks[1])
	}
	for _, bad := range []model.Placement{{Executor: "cloud"}, {Asks: model.AsksOf("gpus=1")}, {Executor: model.Local, Asks: model.AsksOf("gpus=1")}, {Executor: model.Slurm, Asks: model.AsksOf("time=long")}} {
		var invalid model.Invalid
		if _, err := b.CreateAt(t.Context(), config(20), "", bad); !errors.As(err, &invalid) || len(invalid) != 1 {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestLinesAreTheOperators checks that users can set lines for the scheduler or a shell only if the operator allows it.
func TestLinesAreTheOperators(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		b := newBench(t, onCluster(newFakeCluster()), func(o *Options) { o.Lines = allowed })
		err := b.CheckPlacement(model.Placement{Executor: model.Slurm, Asks: model.AsksOf("line=--wrap=id")})
		if (err == nil) != allowed || b.Placements().Lines != allowed {
			t.Errorf("allowed %v: %v, %+v", allowed, err, b.Placements())
		}
	}
}

func TestPlacedWithoutACluster(t *testing.T) {
	b := newBench(t, func(o *Options) { o.NoCluster = "There is no sbatch." })
	_, err := b.CreateAt(t.Context(), config(20), "", model.Placement{Executor: model.Slurm})
	var invalid model.Invalid
	if !errors.As(err, &invalid) || invalid["executor"] != "There is no sbatch." {
		t.Errorf("%v", err)
	}
	if runs, err := b.List(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestSweepIsOneArray checks that all runs of a sweep that can start are submitted as one array, regardless of the number of local devices.
func TestSweepIsOneArray(t *testing.T) {
	c := newFakeCluster()
	_, _, open := sweeping(t, func(model.Config) float64 { return 0.5 }, onCluster(c), func(o *Options) { o.Executor = model.Local })
	s := open()
	st, err := s.CreateAt(background, choosing(6), model.Placement{Executor: model.Slurm, Asks: model.AsksOf("partition=gpu")})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, st.ID, "an array", func(sweep.Status) bool { arrays, _ := c.submitted(); return len(arrays) > 0 })
	until(t, s, st.ID, "its jobs", func(st sweep.Status) bool { return st.Board.Count(sweep.Live) == 3 })
	if arrays, asks := c.submitted(); len(arrays) != 1 || len(arrays[0]) != 3 || !asks[0].Equal(model.AsksOf("partition=gpu")) { // two to choose from, and one that depends on no choice
		t.Errorf("submitted %v with options %q", arrays, asks)
	}
	for i := range 3 {
		c.begin(t, fmt.Sprintf("1_%d", i)) // all three run although there is one local device
	}
	until(t, s, st.ID, "a second array", func(sweep.Status) bool { arrays, _ := c.submitted(); return len(arrays) > 1 })
	if arrays, _ := c.submitted(); len(arrays) != 2 || len(arrays[1]) != 2 {
		t.Errorf("submitted %v", arrays)
	}
	for i := range 2 {
		c.begin(t, fmt.Sprintf("2_%d", i))
	}
	until(t, s, st.ID, "the end", over)
	if !st.Placement.Asks.Equal(model.AsksOf("partition=gpu")) {
		t.Errorf("%+v", st.Placement)
	}
}

func TestClusterRefuses(t *testing.T) {
	c := newFakeCluster()
	c.refuse = errors.New("SLURM's sbatch failed: invalid partition specified: gpuu")
	b := newBench(t, onCluster(c))
	id := b.create("nowhere to go", 10)
	r := b.awaitState(id, model.Failed)
	if r.Reason != "SLURM's sbatch failed: invalid partition specified: gpuu." {
		t.Errorf("%q", r.Reason)
	}
	c.mu.Lock()
	c.refuse = nil
	c.mu.Unlock()
	if err := b.Resume(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	b.job(id)
}

// TestHowJobsEnd checks the reason of a run whose job ends without the run recording it.
func TestHowJobsEnd(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"NODE_FAIL":     "ended on n1: the node was lost.",
		"TIMEOUT":       "its time limit was reached.",
		"OUT_OF_MEMORY": "it exceeded its memory limit.",
		"CANCELLED":     "it was cancelled.",
		"PREEMPTED":     "it was preempted by another job.",
		"REVOKED":       "SLURM reports REVOKED.",
	} {
		t.Run(word, func(t *testing.T) {
			c := newFakeCluster()
			b := newBench(t, onCluster(c))
			id := b.create(word, 100_000)
			job := b.job(id)
			cmd := c.begin(t, job)
			b.awaitStep(id, 12)
			cmd.Process.Kill()
			cmd.Wait()
			time.Sleep(50 * time.Millisecond)
			if r := b.get(id); r.State != model.Running {
				t.Fatalf("while the job is running, the run is %s: %s", r.State, r.Reason)
			}
			c.now(job, model.Task{State: model.TaskOver, Word: word, Node: "n1"})
			r := b.awaitState(id, model.Interrupted)
			if !strings.Contains(r.Reason, want) || !strings.Contains(r.Reason, "The checkpoint of step ") {
				t.Errorf("%q does not contain %q", r.Reason, want)
			}
		})
	}
}

func TestForgottenJob(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	id := b.create("forgotten", 10)
	job := b.job(id)
	c.mu.Lock()
	delete(c.tasks, job)
	c.mu.Unlock()
	r := b.awaitState(id, model.Interrupted)
	if !strings.Contains(r.Reason, "SLURM no longer lists it.") {
		t.Errorf("%q", r.Reason)
	}
}

func TestRequeuedJobGoesOn(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	id := b.create("preempted", 60)
	job := b.job(id)
	cmd := c.begin(t, job)
	b.awaitStep(id, 12)
	cmd.Process.Kill()
	cmd.Wait()
	c.now(job, model.Task{State: model.TaskWaits, Word: "PENDING", Why: "BeginTime"})
	b.await(id, "back in the queue", func(r model.Run) bool {
		return r.State == model.Queued && strings.Contains(r.Reason, "requeued job")
	})
	if err := b.Resume(t.Context(), id, 0); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a second job was possible: %v", err)
	}
	c.mu.Lock()
	c.mute = true // the controller does not respond: the folder has the state
	c.mu.Unlock()
	second, err := command(2 * time.Millisecond)(c.dir(job))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := second.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := b.awaitState(id, model.Finished); r.Attempt != 2 {
		t.Errorf("%d attempts", r.Attempt)
	}
	b.complete(id, 60)
}

func TestStopOnTheCluster(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	waiting, working := b.create("waiting", 100), b.create("working", 100_000)
	waits, works := b.job(waiting), b.job(working)

	b.stop(waiting)
	if r := b.awaitState(waiting, model.Stopped); !c.asked("cancel "+waits) || r.Reason != "Removed from the queue." {
		t.Errorf("%v, %q", c.requests(), r.Reason)
	}

	cmd := c.begin(t, works)
	b.awaitStep(working, 12)
	b.stop(working)
	if !c.asked("ask " + works) {
		t.Fatalf("%v", c.requests())
	}
	f, err := b.data.Open(working)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if j, err := f.Job(); err != nil || !j.Stop {
		t.Errorf("the stop request is not in the folder: %+v, %v", j, err)
	}
	if r := b.get(working); r.State != model.Stopping {
		t.Errorf("after a stop request the run is %s", r.State)
	}
	if err := b.Stop(t.Context(), working); !errors.Is(err, model.ErrConflict) {
		t.Errorf("an immediate second stop: %v", err)
	}
	time.Sleep(b.opt.ForceAfter)
	b.stop(working)
	if !c.asked("cancel " + works) {
		t.Errorf("not killed: %v", c.requests())
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Process.Kill()
	cmd.Wait()
	c.now(works, model.Task{State: model.TaskOver, Word: "CANCELLED"})
	r := b.awaitState(working, model.Interrupted)
	if !strings.Contains(r.Reason, "while stopping") {
		t.Errorf("%q", r.Reason)
	}
	if err := b.Resume(t.Context(), working, 0); err != nil {
		t.Fatal(err)
	}
	b.await(working, "another job", func(model.Run) bool { j, err := f.Job(); return err == nil && j.ID != "" && j.ID != works && !j.Stop })
}

// TestSlowCluster checks that other runs can be changed while the cluster stops one, and that a failure can be repeated.
func TestSlowCluster(t *testing.T) {
	c := newFakeCluster()
	b := newBench(t, onCluster(c))
	waiting, working, other := b.create("waiting", 100), b.create("working", 100_000), b.create("other", 100)
	waits, works := b.job(waiting), b.job(working)
	c.begin(t, works)
	b.awaitStep(working, 12)
	c.mu.Lock()
	c.slow, c.answer = make(chan struct{}), make(chan error)
	c.mu.Unlock()

	stop := func(id string, answer error) error {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- b.Stop(ctx, id) }()
		<-c.slow
		leave() // the visitor closes the page
		renamed := make(chan error, 1)
		go func() { renamed <- b.Rename(t.Context(), other, "renamed") }()
		select {
		case err := <-renamed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("another run cannot be renamed")
		}
		if err := b.Stop(t.Context(), id); !errors.Is(err, model.ErrConflict) {
			t.Errorf("a second stop meanwhile: %v", err)
		}
		c.answer <- answer
		return <-stopped
	}
	for id, command := range map[string]string{waiting: "cancel " + waits, working: "ask " + works} {
		if err := stop(id, errors.New("the controller is busy")); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "the controller is busy") {
			t.Errorf("a failure: %v", err)
		}
		if err := stop(id, nil); err != nil || !c.asked(command) {
			t.Errorf("%v, %v", err, c.requests())
		}
	}
	if r := b.awaitState(waiting, model.Stopped); r.Reason != "Removed from the queue." {
		t.Errorf("%q", r.Reason)
	}
	if r := b.get(working); r.State != model.Stopping {
		t.Errorf("the run is %s", r.State)
	}
}

// TestSlowDevices checks that runs can be changed while the devices of the machine are listed, for which a command may run.
func TestSlowDevices(t *testing.T) {
	listing, list := make(chan struct{}), make(chan struct{})
	var first sync.Once
	b := newBench(t, func(o *Options) {
		o.Devices = func(string) []Device {
			first.Do(func() { listing <- struct{}{}; <-list })
			return []Device{{Name: "cpu"}}
		}
	})
	<-listing
	created := make(chan string, 1)
	go func() { created <- b.create("meanwhile", 3) }()
	select {
	case id := <-created:
		close(list)
		b.awaitState(id, model.Finished)
	case <-time.After(10 * time.Second):
		close(list)
		t.Error("a run cannot be created")
	}
}

// TestFolderFromACluster opens a data folder from a cluster on a machine without one.
func TestFolderFromACluster(t *testing.T) {
	b := newBench(t)
	id := b.create("copied", 30)
	b.awaitState(id, model.Finished)
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetJob(model.Job{Executor: model.Slurm, ID: "77"}); err != nil {
		t.Fatal(err)
	}
	b.restart()
	if err := b.Resume(t.Context(), id, 60); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, model.Finished)
	b.complete(id, 60)
}

// TestEachGPUHasARun checks that two GPUs get one run each, also after a restart of the server.
func TestEachGPUHasARun(t *testing.T) {
	shown := func(dir string) string { return filepath.Join(dir, "samples", "device") }
	b := newBench(t, func(o *Options) {
		plain := o.Command
		o.Command = func(dir string) (*exec.Cmd, error) {
			cmd, err := plain(dir)
			cmd.Args = append([]string{"sh", "-c", `printenv CUDA_VISIBLE_DEVICES >"$0"; exec "$@"`, shown(dir), cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
			return cmd, err
		}
		o.Devices = func(engine string) []Device {
			if engine != "xla:cuda" {
				return []Device{{Name: "cpu"}}
			}
			return []Device{{"GPU-a", []string{"CUDA_VISIBLE_DEVICES=GPU-a"}}, {"GPU-b", []string{"CUDA_VISIBLE_DEVICES=GPU-b"}}}
		}
	})
	onGPU := func(name string, steps int) string {
		cfg := config(steps)
		cfg.Engine = "xla:cuda"
		r, err := b.Create(t.Context(), cfg, name)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	first, second := onGPU("first", 100_000), onGPU("second", 100_000)
	b.awaitStep(first, 3)
	b.awaitStep(second, 3)
	third := onGPU("third", 20)
	b.restart()
	time.Sleep(50 * time.Millisecond)
	if r := b.get(third); r.State != model.Queued {
		t.Fatalf("with both GPUs taken, the third is %s", r.State)
	}
	b.stop(second)
	b.awaitState(second, model.Stopped)
	b.awaitState(third, model.Finished)
	got := map[string]string{}
	for _, id := range []string{first, second, third} {
		text, err := os.ReadFile(shown(b.data.RunDir(id)))
		if err != nil {
			t.Fatal(err)
		}
		got[id] = strings.TrimSpace(string(text))
	}
	if got[first] == got[second] || got[third] != got[second] {
		t.Errorf("the devices of the runs are %v", got)
	}
	b.stop(first)
	b.awaitState(first, model.Stopped)
}

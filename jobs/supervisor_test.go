//go:build linux

package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
)

func TestQueueIsOneAtATimePerDevice(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	first, second, last := b.create("first", 100_000), b.create("second", 100_000), b.create("last", 5)
	gpu := config(100_000)
	gpu.Engine = "xla:cuda"
	third, err := b.Create(ctx, gpu, "on the GPU")
	if err != nil {
		t.Fatal(err)
	}
	b.awaitStep(first, 5)
	b.awaitStep(third.ID, 5)
	if r := b.get(second); r.State != model.Queued {
		t.Fatalf("while the first is running, the second is %s", r.State)
	}
	b.restart() // the queue outlives the server
	time.Sleep(50 * time.Millisecond)
	if r := b.get(second); r.State != model.Queued {
		t.Fatalf("after a restart the second is %s", r.State)
	}
	b.stop(first)
	b.awaitState(first, model.Stopped)
	b.awaitStep(second, 5)
	if r := b.get(last); r.State != model.Queued || b.started(last) {
		t.Errorf("while the second is running, the last is %s", r.State)
	}
	for _, id := range []string{second, third.ID} {
		b.stop(id)
		b.awaitState(id, model.Stopped)
	}
	b.awaitState(last, model.Finished)
	runs, err := b.List(ctx)
	if err != nil || len(runs) != 4 || runs[0].ID != third.ID && !runs[0].Created.Equal(runs[1].Created) {
		t.Errorf("listed %v, %v", runs, err)
	}
}

func TestStopRestartStopDoesNotSignalTwice(t *testing.T) {
	b := newBench(t)
	id := b.create("deaf", 100_000)
	b.awaitStep(id, 5)
	b.stop(id)
	b.restart()
	b.awaitState(id, model.Stopping)
	if err := b.Stop(t.Context(), id); !errors.Is(err, model.ErrConflict) { // a second signal would kill the real trainer before it saves
		t.Errorf("after a restart a second stop: %v", err)
	}
	b.kill(id)
	b.awaitState(id, model.Interrupted)
}

func TestEditsAndDeletion(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	id := b.create("  first ", 100_000)
	b.awaitStep(id, 12)
	var bad model.Invalid
	for _, name := range []string{"", "two\nlines", strings.Repeat("x", 201), "\xff"} {
		if err := b.Rename(ctx, id, name); !errors.As(err, &bad) || bad["name"] == "" {
			t.Errorf("renamed to %q: %v", name, err)
		}
	}
	if err := errors.Join(b.Rename(ctx, id, "renamed"), b.Annotate(ctx, id, "notes\nof two lines")); err != nil {
		t.Fatal(err)
	}
	if err := b.Annotate(ctx, id, strings.Repeat("x", 100_001)); !errors.As(err, &bad) {
		t.Errorf("notes that are too long: %v", err)
	}
	if err := b.Delete(ctx, id); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleted while running: %v", err)
	}
	if err := b.Resume(ctx, id, 0); !errors.Is(err, model.ErrConflict) {
		t.Errorf("resumed while running: %v", err)
	}
	b.stop(id)
	r := b.awaitState(id, model.Stopped)
	if r.Name != "renamed" || r.Notes != "notes\nof two lines" {
		t.Errorf("%+v", r)
	}
	b.restart()
	if r := b.get(id); r.Name != "renamed" || r.Notes != "notes\nof two lines" {
		t.Errorf("after a restart: %+v", r)
	}
	if err := b.Stop(ctx, id); !errors.Is(err, model.ErrConflict) {
		t.Errorf("stopped twice: %v", err)
	}
	steps, err := b.Checkpoints(ctx, id)
	if err != nil || !slices.Contains(steps, r.Checkpoint) {
		t.Errorf("checkpoints %v, %v", steps, err)
	}
	path, err := b.CheckpointPath(ctx, id, r.Checkpoint)
	if _, statErr := os.Stat(path); err != nil || statErr != nil {
		t.Errorf("%v, %v", err, statErr)
	}
	sample, samples, err := b.Sample(ctx, id, 0)
	if err != nil || !slices.Equal(samples, steps) || !strings.HasSuffix(sample, fmt.Sprintf("%09d.png", r.Checkpoint)) {
		t.Errorf("%s, %v, %v", sample, samples, err)
	}
	if err := b.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	b.nowhere(id)
	time.Sleep(60 * time.Millisecond) // some scans later
	b.nowhere(id)
	if _, err := os.Stat(b.data.RunDir(id)); !os.IsNotExist(err) {
		t.Errorf("the folder still exists: %v", err)
	}
}

// nowhere checks that every method returns an error for an unknown run.
func (b *bench) nowhere(id string) {
	b.t.Helper()
	ctx := b.t.Context()
	_, get := b.Get(ctx, id)
	_, points := b.Points(ctx, id, model.PointQuery{})
	_, log := b.Log(ctx, id, 3)
	_, _, sample := b.Sample(ctx, id, 0)
	_, checkpoints := b.Checkpoints(ctx, id)
	_, path := b.CheckpointPath(ctx, id, 10)
	for what, err := range map[string]error{
		"get": get, "points": points, "log": log, "sample": sample, "checkpoints": checkpoints, "path": path,
		"stop": b.Stop(ctx, id), "resume": b.Resume(ctx, id, 0), "delete": b.Delete(ctx, id), "rename": b.Rename(ctx, id, "x"), "annotate": b.Annotate(ctx, id, "x"),
	} {
		if !errors.Is(err, model.ErrNotFound) || !strings.HasPrefix(err.Error(), "there is no run ") && !strings.Contains(err.Error(), "an id has") {
			b.t.Errorf("%s of an unknown run %q: %v", what, id, err)
		}
	}
}

func TestUnknownRuns(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"none", "../../etc", "", "A b"} {
		b.nowhere(id)
	}
}

func TestCreateRefusesWhatCannotRun(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Check = func(_ context.Context, cfg model.Config) error {
			if cfg.Batch > 1000 {
				return model.Invalid{"batch": "more than there are images"}
			}
			return nil
		}
	})
	for field, change := range map[string]func(*model.Config){
		"k": func(c *model.Config) { c.K = 1 }, "batch": func(c *model.Config) { c.Batch = 2000 }, "engine": func(c *model.Config) { c.Engine = "abacus" },
	} {
		cfg := config(10)
		change(&cfg)
		var bad model.Invalid
		if _, err := b.Create(t.Context(), cfg, ""); !errors.As(err, &bad) || bad[field] == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if names, _ := b.data.Runs(); len(names) != 0 {
		t.Errorf("folders of rejected runs: %v", names)
	}
}

func TestProcessThatCannotBeStarted(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Command = func(string) (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil }
	})
	r := b.awaitState(b.create("", 10), model.Failed)
	if !strings.Contains(r.Reason, "could not be started") || !strings.Contains(r.Reason, "/no/such/program") || r.Name != "hrr tiny seed 0" {
		t.Errorf("%+v", r)
	}
}

func TestWatchersAreToldAndNeverWaitedFor(t *testing.T) {
	b := newBench(t)
	all, cancelAll := b.Watch("")
	defer cancelAll()
	idle, cancelIdle := b.Watch("another")
	defer cancelIdle()
	b.Watch("") // never read
	id := b.create("", 20)
	<-all
	b.awaitState(id, model.Finished)
	<-all
	select {
	case <-idle:
		t.Error("notified about another run")
	default:
	}
	cancelAll()
	cancelAll()
	if err := b.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all: // a pending notification
	default:
	}
	b.watchers.notify(id)
	select {
	case <-all:
		t.Error("notified after cancel")
	default:
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.create("busy", 400)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 30 {
				b.Get(t.Context(), id)
				b.List(t.Context())
				b.Points(t.Context(), id, model.PointQuery{Columns: 10})
				b.Annotate(t.Context(), id, fmt.Sprint("note ", i))
				b.Resume(t.Context(), id, 0)
				if i == 0 {
					b.Stop(t.Context(), id)
				}
			}
		})
	}
	wg.Wait()
	for { // in either case, the run finishes
		r := b.await(id, "end", func(r model.Run) bool { return r.State.Ended() })
		if r.State == model.Finished {
			break
		}
		if err := b.Resume(t.Context(), id, 0); err != nil && !errors.Is(err, model.ErrConflict) {
			t.Fatal(err)
		}
	}
	b.complete(id, 400)
}

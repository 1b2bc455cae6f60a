//go:build linux

package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slotscope/model"
)

func TestEveryEnding(t *testing.T) {
	const steps = 30
	for _, c := range []struct {
		name   string // of the run, which sets what goes wrong
		act    func(b *bench, id string)
		state  model.State
		reason string // part of the reason
		kept   int    // step of the remaining checkpoint
	}{
		{"well", nil, model.Finished, "All steps", steps},
		{"error@7", nil, model.Failed, "The loss is not a number at step 7.", 0},
		{"panic@17", nil, model.Failed, "exited with status 2 and no message. Last log line: \"panic: the tensor is upside down\". The checkpoint of step 10 is kept.", 10},
		{"exit@13", nil, model.Failed, "exited with status 3 and no message. Last log line: \"no such luck\"", 10},
		{"kill@25", nil, model.Failed, "killed (signal 9); the machine may have run out of memory. The checkpoint of step 20 is kept.", 20},
		{"kill@5", nil, model.Failed, "No checkpoint was saved.", 0},
		{"stop", func(b *bench, id string) { b.awaitStep(id, 5); b.stop(id) }, model.Stopped, "saved", -1},
		{"stop@queue", func(b *bench, id string) { b.stop(id) }, model.Stopped, "Removed from the queue.", 0},
		{"slow", func(b *bench, id string) { b.awaitChild(id); b.stop(id) }, model.Stopped, "Stopped before it started.", 0},
		{"deaf", func(b *bench, id string) { b.awaitStep(id, 5); b.force(id) }, model.Interrupted, "Killed after", -1},
		{"killed by a user", func(b *bench, id string) { b.awaitStep(id, 15); b.kill(id) }, model.Failed, "signal 9", -1},
		{"killed unseen", func(b *bench, id string) {
			b.awaitStep(id, 15)
			b.Close()
			b.kill(id)
			b.open()
		}, model.Interrupted, "exited unexpectedly", -1},
		{"killed after a restart", func(b *bench, id string) { b.awaitStep(id, 15); b.restart(); b.kill(id) }, model.Interrupted, "exited unexpectedly", -1},
		{"finished unseen", func(b *bench, id string) {
			b.awaitStep(id, 5)
			b.Close()
			time.Sleep(steps * 8 * time.Millisecond)
			b.open()
		}, model.Finished, "All steps", steps},
		{"restarted over", func(b *bench, id string) { b.awaitStep(id, 5); b.restart(); b.restart() }, model.Finished, "All steps", steps},
		{"stopped after a restart", func(b *bench, id string) { b.awaitStep(id, 5); b.restart(); b.stop(id) }, model.Stopped, "saved", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			total := steps
			b := newBench(t, func(o *Options) {
				if c.act != nil && !strings.Contains(c.name, "finished") && !strings.Contains(c.name, "over") {
					total = 100_000
				}
			})
			ahead := ""
			if c.name == "stop@queue" {
				ahead = b.create("in front", total)
				b.awaitState(ahead, model.Running)
			}
			id := b.create(c.name, total)
			if c.act != nil {
				c.act(b, id)
			}
			r := b.await(id, "end", func(r model.Run) bool { return r.State.Ended() })
			if r.State != c.state || !strings.Contains(r.Reason, c.reason) || r.Ended.IsZero() || r.SecondsLeft != 0 {
				t.Errorf("ended as %s: %q", r.State, r.Reason)
			}
			if c.kept >= 0 && r.Checkpoint != c.kept {
				t.Errorf("checkpoint %d is kept, not %d", r.Checkpoint, c.kept)
			}
			b.sameOnDisk(r)
			if n := len(readFile(t, b.data, id)); n > 0 {
				if page, _ := b.Points(t.Context(), id, model.PointQuery{}); page.Head != n {
					t.Errorf("listed as ended with %d of %d steps stored", page.Head, n)
				}
				b.complete(id, n)
				if r.Step != n {
					t.Errorf("listed with step %d; %d are stored", r.Step, n)
				}
			}
			if ahead != "" {
				b.stop(ahead)
				b.awaitState(ahead, model.Stopped)
			}
			b.resumes(r)
		})
	}
}

// sameOnDisk compares state.json with the listed run.
func (b *bench) sameOnDisk(r model.Run) {
	b.t.Helper()
	f, err := b.data.Open(r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	status, err := f.Status()
	if status.State != r.State || status.Reason != r.Reason || status.Step != r.Step || err != nil {
		b.t.Errorf("listed as %+v, on disk %+v, %v", r.Status, status, err)
	}
}

// resumes continues an ended run without a fault, and checks that every step is stored once.
func (b *bench) resumes(r model.Run) {
	b.t.Helper()
	ctx := b.t.Context()
	if err := b.Rename(ctx, r.ID, "again"); err != nil {
		b.t.Fatal(err)
	}
	steps := r.Checkpoint + 25
	var bad model.Invalid
	if r.Checkpoint > 1 {
		if err := b.Resume(ctx, r.ID, r.Checkpoint-1); !errors.As(err, &bad) || bad["steps"] == "" {
			b.t.Errorf("resumed with fewer steps than are done: %v", err)
		}
	}
	if err := b.Resume(ctx, r.ID, steps); err != nil {
		b.t.Fatal(err)
	}
	if err := b.Resume(ctx, r.ID, steps); !errors.Is(err, model.ErrConflict) {
		b.t.Errorf("resumed twice: %v", err)
	}
	again := b.awaitState(r.ID, model.Finished)
	if again.Step != steps || again.Resumed != r.Checkpoint || again.Attempt != r.Attempt+1 || again.Config.Steps != steps {
		b.t.Errorf("resumed from %+v to %+v", r.Status, again.Status)
	}
	b.complete(r.ID, steps)
}

func TestResumeWithNothingLeftToLearn(t *testing.T) {
	for _, c := range []struct {
		state   model.State
		steps   int
		refused bool
	}{{model.Finished, 0, true}, {model.Finished, 40, true}, {model.Finished, 41, false}, {model.Stopped, 0, false}, {model.Failed, 39, true}, {model.Failed, -1, true}, {model.Failed, 2e8, true}} {
		cfg, err := longer(config(40), model.Status{State: c.state, Step: 40, Checkpoint: 40}, c.steps)
		var bad model.Invalid
		if c.refused != errors.As(err, &bad) || c.refused != (bad["steps"] != "") || err == nil && cfg.Steps != max(40, c.steps) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDiskThatRefusesIsTold(t *testing.T) {
	full := fmt.Errorf("write /data/runs/x/state.json: %w", syscall.ENOSPC)
	var bad model.Invalid
	if err := told(full); !errors.As(err, &bad) || bad[""] != full.Error() {
		t.Errorf("%v", err)
	}
	if err := told(model.ErrConflict); err != model.ErrConflict {
		t.Errorf("%v", err)
	}
}

// If a full disk prevents the folder from recording the end of its run, the list shows it anyway, and the folder is updated once there is
// space.
func TestEndOnFullDisk(t *testing.T) {
	b := newBench(t)
	id := b.create("well", 1_000_000)
	b.awaitStep(id, 15)
	b.Close()
	b.kill(id)
	dir, copied := b.data.RunDir(id), filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		b.open()
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := os.CopyFS(dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	if err := b.data.Sweep(); err != nil { // partial files of the killed run would free space when the next server removes them
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 65<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	b.open()
	r := b.awaitState(id, model.Interrupted)
	if err := b.Resume(t.Context(), id, 0); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("resumed without space: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		said, err := f.Status()
		if err == nil && said.State == r.State && said.Reason == r.Reason {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the folder has %+v, %v; the list had %+v", said, err, r.Status)
		}
	}
	if err := b.Resume(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, model.Running)
	b.Close()
	b.kill(id) // before its disk is unmounted
}

// A run that ends while its state and the index are behind has at least the steps of its newest checkpoint.
func TestEndAtTheNewestCheckpoint(t *testing.T) {
	b := newBench(t)
	f, err := b.data.Create(config(300), "a", model.Status{State: model.Running, Step: 240})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{f.CheckpointPath(245), f.OptimizerPath(245)} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := end(f, 243, func(model.Status) (model.State, string) { return model.Interrupted, "no space left" })
	if err != nil || run.Checkpoint != 245 || run.Step != 245 {
		t.Errorf("%+v, %v", run.Status, err)
	}
}

func TestLastWords(t *testing.T) {
	for log, want := range map[string]string{
		"":               "",
		"one\n two \n\n": ` Last log line: "two".`,
		"panic: oh\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2\n": ` Last log line: "panic: oh".`,
		strings.Repeat("x", 400): ` Last log line: "` + strings.Repeat("x", 300) + `…".`,
	} {
		if got := lastWords(log); got != want {
			t.Errorf("%.20q: %q", log, got)
		}
	}

}

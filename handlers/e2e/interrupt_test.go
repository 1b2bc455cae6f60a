//go:build linux

package e2e_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slotscope/model"
	"slotscope/model/folder"
)

// trainer is `slotscope train` as run from a shell or by a cluster scheduler.
type trainer struct {
	cmd *exec.Cmd
	log *text
}

func train(t *testing.T, args ...string) trainer {
	t.Helper()
	p := trainer{command(t, append([]string{"train"}, args...)...), &text{}}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// folder opens the run folder that the program created and printed.
func (p trainer) folder(t *testing.T) *folder.Folder {
	t.Helper()
	dir := ""
	await(t, "the run folder is printed\n"+p.log.String(), func() bool {
		_, after, _ := strings.Cut(p.log.String(), "run folder: ")
		dir, _, _ = strings.Cut(after, "\n")
		return strings.Contains(after, "\n")
	})
	return openRun(t, dir)
}

// passes waits until a run has points up to a step.
func (p trainer) passes(t *testing.T, f *folder.Folder, step int) {
	t.Helper()
	await(t, fmt.Sprintf("step %d is reached", step), func() bool {
		points, _, err := f.Tail(0)
		return err == nil && len(points) > 0 && points[len(points)-1].Step >= step
	})
}

func status(t *testing.T, f *folder.Folder) model.Status {
	t.Helper()
	s, err := f.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInterrupt stops a training with each signal, resumes it, and lets it finish; the result must equal that of an uninterrupted run.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	p := train(t, append(tinyNet("steps=1000000", "checkpoint_every=1000000"), "--data", t.TempDir())...)
	f := p.folder(t)
	saved := 0
	for attempt, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p.passes(t, f, saved+10)
		p.cmd.Process.Signal(sig)
		if code := exitCode(t, p.cmd); code != 130 {
			t.Fatalf("%v: exit code %d, want 130\n%s", sig, code, p.log)
		}
		s := status(t, f)
		want := fmt.Sprintf("Stopped after step %d, saved at step %d: stopped by a signal.", s.Step, s.Step)
		if s.State != model.Stopped || s.Step < saved+10 || s.Checkpoint != s.Step || f.Latest() != s.Step || s.Reason != want {
			t.Errorf("%v: %+v; the newest checkpoint is of step %d", sig, s, f.Latest())
		}
		if s.Attempt != attempt+1 || s.Resumed != saved || s.Ended.IsZero() || f.Locked() {
			t.Errorf("%v: %+v, want attempt %d from step %d", sig, s, attempt+1, saved)
		}
		if lines := strings.Split(strings.TrimSpace(p.log.String()), "\n"); !strings.Contains(lines[len(lines)-1], fmt.Sprintf("stopped after step %d", s.Step)) {
			t.Errorf("%v: last line %q", sig, lines[len(lines)-1])
		}
		wholeFile(t, f, s.Step)
		saved = s.Step
		if attempt == 0 {
			p = train(t, "--run", f.Dir())
		}
	}
	last := saved + 7
	finish(t, f, last)
	if s := status(t, f); s.Resumed != saved || s.Attempt != 3 {
		t.Errorf("after the last resume: %+v", s)
	}
	whole := train(t, append(tinyNet(fmt.Sprintf("steps=%d", last)), "--data", t.TempDir())...)
	if code := exitCode(t, whole.cmd); code != 0 {
		t.Fatalf("exit code %d\n%s", code, whole.log)
	}
	apart(t, wholeFile(t, f, last), wholeFile(t, whole.folder(t), last))
}

// apart fails the test if an interrupted run measured other values than an uninterrupted one: resuming must restore model, optimizer and
// order of images.
func apart(t *testing.T, pieces, whole []float64) {
	t.Helper()
	for i, v := range whole {
		if math.Abs(pieces[i]-v) > 1e-6*math.Abs(v) { // float32 sums whose order may differ
			t.Fatalf("step %d: %v interrupted, %v uninterrupted", i+1, pieces[i], v)
		}
	}
}

// finish resumes a run up to a last step.
func finish(t *testing.T, f *folder.Folder, last int) trainer {
	t.Helper()
	cfg := f.Config()
	cfg.Steps = last
	if err := f.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	p := train(t, "--run", f.Dir())
	if code := exitCode(t, p.cmd); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.log)
	}
	if s := status(t, f); s.State != model.Finished || s.Step != last || s.Checkpoint != last {
		t.Errorf("finished: %+v", s)
	}
	wholeFile(t, f, last)
	return p
}

// TestDamagedCheckpoint checks that a run resumes from the previous checkpoint with a log line, and that it fails without deleting anything
// if all checkpoints are damaged.
func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	p := train(t, append(tinyNet("steps=20", "checkpoint_every=10"), "--data", t.TempDir())...)
	if code := exitCode(t, p.cmd); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.log)
	}
	f := p.folder(t)
	damage(t, f.CheckpointPath(20))
	p = finish(t, f, 30)
	if s := status(t, f); s.Resumed != 10 || s.Attempt != 2 {
		t.Errorf("after a resume from the older checkpoint: %+v", s)
	}
	if !strings.Contains(p.log.String(), `msg="checkpoint skipped" step=20`) {
		t.Errorf("the damaged checkpoint is not logged:\n%s", p.log)
	}
	for _, step := range f.Checkpoints() {
		damage(t, f.CheckpointPath(step))
	}
	newest := f.Latest()
	p = train(t, "--run", f.Dir())
	if code := exitCode(t, p.cmd); code != 1 {
		t.Errorf("all checkpoints damaged: exit code %d, want 1", code)
	}
	s := status(t, f)
	if name := filepath.Base(f.CheckpointPath(newest)); s.State != model.Failed || !strings.Contains(s.Reason, name) {
		t.Errorf("all checkpoints damaged: %s, %q; want a reason that names %s", s.State, s.Reason, name)
	}
	wholeFile(t, f, 30)
}

// damage truncates a file to half its length.
func damage(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk limits the size of files, like a full disk: the run fails with a reason, its points are kept, and it resumes once there is
// space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell to set a limit")
	}
	data := t.TempDir()
	words := append([]string{"-c", `ulimit -f 8 && exec "$0" "$@"`, program(t), "train", "--data", data}, tinyNet("steps=20", "sample_every=1000")...)
	cmd := command(t)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh"}, words...)
	p := trainer{cmd, &text{}}
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, p.log)
	}
	f := p.folder(t)
	s := status(t, f)
	if s.State != model.Failed || !strings.Contains(s.Reason, "file too large") || !strings.Contains(s.Reason, f.Dir()) {
		t.Errorf("without space: %s, %q", s.State, s.Reason)
	}
	if left := f.Checkpoints(); len(left) != 0 {
		t.Errorf("a partial checkpoint is listed: %v", left)
	}
	finish(t, f, 20)
}

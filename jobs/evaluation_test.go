package jobs

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slotscope/model"
)

// evaluations measure the runs of a bench with a command line.
func evaluations(b *bench, words ...string) *Evaluations {
	return NewEvaluations(EvaluationOptions{Supervisor: b.Supervisor, Log: b.opt.Log, Command: func(string, []string) (*exec.Cmd, error) {
		return exec.Command(words[0], words[1:]...), nil
	}})
}

// settled waits until the run's evaluation has ended.
func settled(t *testing.T, e *Evaluations, id string) model.Evaluation {
	t.Helper()
	for range 1000 {
		if s := e.State(id); !s.Running {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the evaluation does not end")
	return model.Evaluation{}
}

// TestEvaluations: one row for each way that an evaluation ends.
func TestEvaluations(t *testing.T) {
	b := newBench(t)
	id := b.create("", 5)
	b.awaitState(id, model.Finished)
	for _, c := range []struct{ name, script, said, failed string }{
		{"done", `printf 'metrics\nnoise 1 of 9\rnoise 9 of 9\r\n' >&2`, "noise 9 of 9", ""},
		{"failed", `echo "run a has no checkpoint" >&2; exit 1`, "run a has no checkpoint", "run a has no checkpoint"},
		{"silent", `exit 3`, "", "exit status 3"},
		{"a long line", `head -c 200000 /dev/zero | tr '\0' x >&2`, "", ""},
	} {
		e := evaluations(b, "sh", "-c", c.script)
		if s := e.State(id); s != (model.Evaluation{}) {
			t.Errorf("%s: %+v before it starts", c.name, s)
		}
		if err := e.Start(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		s := settled(t, e, id)
		if s.Said != c.said || s.Failed != c.failed || s.Started.IsZero() || s.Ended.Before(s.Started) {
			t.Errorf("%s: %+v", c.name, s)
		}
		e.Close()
	}
	e := evaluations(b, "/no/such/program")
	if err := e.Start(context.Background(), id); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
	if e.State(id).Running {
		t.Error("what could not be started runs")
	}
}

// TestEvaluationsClose: a second start is refused while the first works, and closing interrupts it.
func TestEvaluationsClose(t *testing.T) {
	b := newBench(t)
	id := b.create("", 5)
	b.awaitState(id, model.Finished)
	e := evaluations(b, "sleep", "60")
	if err := e.Start(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(context.Background(), id); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a second start: %v", err)
	}
	if err := e.Measure(context.Background(), id, nil); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a sweep beside the visitor: %v", err)
	}
	if err := e.Start(context.Background(), "nobody"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("no such run: %v", err)
	}
	begun := time.Now()
	e.Close()
	if took := time.Since(begun); took > 20*time.Second || e.State(id).Running {
		t.Errorf("closing took %v and left %+v", took, e.State(id))
	}
	if e.Start(context.Background(), id) == nil {
		t.Error("an evaluation starts after closing")
	}
}

// TestEvaluationIsKilled: a process that does not heed an interrupt is ended all the same.
func TestEvaluationIsKilled(t *testing.T) {
	b := newBench(t)
	id := b.create("", 5)
	b.awaitState(id, model.Finished)
	e := NewEvaluations(EvaluationOptions{Supervisor: b.Supervisor, Log: b.opt.Log, Grace: 50 * time.Millisecond, Command: func(string, []string) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", "trap '' INT; echo deaf >&2; while :; do sleep 0.01; done"), nil
	}})
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for e.State(id).Said != "deaf" {
		time.Sleep(time.Millisecond)
	}
	e.Close()
	if s := e.State(id); s.Running || s.Failed == "" {
		t.Errorf("after closing: %+v", s)
	}
}

// TestEvaluationElsewhere: what another process measures shows as under way, and is not begun a second time.
func TestEvaluationElsewhere(t *testing.T) {
	b := newBench(t)
	id := b.create("", 5)
	b.awaitState(id, model.Finished)
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, err := f.LockEvaluation()
	if err != nil {
		t.Fatal(err)
	}
	e := evaluations(b, "true")
	defer e.Close()
	if s := e.State(id); !s.Running || time.Since(s.Started) > time.Minute || !strings.Contains(s.Said, "process") {
		t.Errorf("while another measures: %+v", s)
	}
	if err := e.Measure(t.Context(), id, nil); !errors.Is(err, model.ErrConflict) {
		t.Errorf("beside another: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := e.Measure(t.Context(), id, nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestEvaluationComesSecond: a process that finds the run taken a moment after it was free is no failure of the run's.
func TestEvaluationComesSecond(t *testing.T) {
	b := newBench(t)
	id := b.create("", 5)
	b.awaitState(id, model.Finished)
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := NewEvaluations(EvaluationOptions{Supervisor: b.Supervisor, Log: b.opt.Log, Command: func(string, []string) (*exec.Cmd, error) {
		lock, err := f.LockEvaluation() // another was free to take it since it was looked at
		t.Cleanup(func() { lock.Unlock() })
		return exec.Command("false"), err
	}})
	defer e.Close()
	if err := e.Measure(t.Context(), id, nil); !errors.Is(err, model.ErrConflict) {
		t.Errorf("it came second: %v", err)
	}
}

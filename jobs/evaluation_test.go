//go:build linux

package jobs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// evaluateBy makes the current supervisor evaluate runs with another command.
func (b *bench) evaluateBy(command func(dir string, flags []string) (*exec.Cmd, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.o.Evaluate, b.opt.Evaluate = command, command
}

// saying evaluates with a shell command.
func saying(words ...string) func(string, []string) (*exec.Cmd, error) {
	return func(string, []string) (*exec.Cmd, error) { return exec.Command(words[0], words[1:]...), nil }
}

// finished creates a trained run.
func (b *bench) finished(name string) string {
	b.t.Helper()
	id := b.create(name, 5)
	b.awaitState(id, model.Finished)
	return id
}

// evaluation waits until the run's evaluation is in the wanted state.
func (b *bench) evaluation(id string, want model.State) model.Evaluation {
	b.t.Helper()
	return b.evaluationThat(id, want, func(model.Evaluation) bool { return true })
}

// evaluationThat also waits for a condition: the record of a process is read a moment after its lock is seen.
func (b *bench) evaluationThat(id string, want model.State, is func(model.Evaluation) bool) model.Evaluation {
	b.t.Helper()
	var e model.Evaluation
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if e = b.Evaluations().State(id); e.State == want && is(e) {
			return e
		}
	}
	b.t.Fatalf("the evaluation of %s is not %s as expected: %+v", id, want, e)
	return e
}

// release lets the fake evaluators of a run finish.
func (b *bench) release(id string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.data.RunDir(id), "go"), nil, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// TestEvaluationEnds has a row for each way in which an evaluation ends without recording it.
func TestEvaluationEnds(t *testing.T) {
	b := newBench(t)
	id := b.finished("")
	for _, c := range []struct {
		name   string
		words  []string
		state  model.State
		reason string
	}{
		{"done", []string{"true"}, model.Finished, ""},
		{"failed", []string{"sh", "-c", "echo the ruler is broken >&2; exit 1"}, model.Failed, "exited with status 1 and no message. Last log line: \"the ruler is broken\"."},
		{"killed", []string{"sh", "-c", "kill -9 $$"}, model.Failed, "signal 9"},
		{"no program", []string{"/no/such/program"}, model.Failed, "/no/such/program"},
	} {
		b.evaluateBy(saying(c.words...))
		if err := b.Evaluations().Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s := b.evaluation(id, c.state)
		if !strings.Contains(s.Reason, c.reason) || s.Asked.IsZero() || s.Ended.Before(s.Asked) || s.Effort != model.Full {
			t.Errorf("%s: %+v", c.name, s)
		}
		f, err := b.data.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := f.Evaluation(); err != nil || kept.State != c.state {
			t.Errorf("%s: the folder has %+v, %v", c.name, kept, err)
		}
		f.Close()
	}
	if err := b.Evaluations().Start(t.Context(), "nobody"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("no such run: %v", err)
	}
}

// TestQuickKeepsFullScores checks that a quick evaluation replaces full scores only if asked to, and then tells its process.
func TestQuickKeepsFullScores(t *testing.T) {
	b := newBench(t)
	id := b.finished("")
	var got []string
	b.evaluateBy(func(_ string, flags []string) (*exec.Cmd, error) {
		got = flags
		return exec.Command("true"), nil
	})
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, quick := b.Evaluations(), model.Evaluation{Effort: model.Quick}
	for _, c := range []struct {
		name   string
		scores model.Scores
		ask    model.Evaluation
		flags  string // "refused" if it is
	}{
		{"psnr alone", model.Scores{PSNR: 20}, quick, "--effort quick"},
		{"quick scores", model.Scores{NoFactors: "None.", Effort: model.Quick}, quick, "--effort quick"},
		{"full scores", model.Scores{NoFactors: "None.", Effort: model.Full, Images: 10}, quick, "refused"},
		{"scores of an earlier version", model.Scores{NoFactors: "None."}, quick, "refused"},
		{"full scores, asked", model.Scores{NoFactors: "None.", Effort: model.Full}, model.Evaluation{Effort: model.Quick, Replace: true}, "--effort quick --replace"},
		{"a full evaluation", model.Scores{NoFactors: "None.", Effort: model.Full}, model.Evaluation{Effort: model.Full}, ""},
	} {
		if err := f.SetScores(c.scores); err != nil {
			t.Fatal(err)
		}
		err := e.Queue(t.Context(), id, c.ask)
		if c.flags == "refused" {
			if !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "has full scores") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		b.evaluation(id, model.Finished)
		if strings.Join(got, " ") != c.flags {
			t.Errorf("%s: the process has the flags %q, not %q", c.name, got, c.flags)
		}
	}
}

// TestRemovedCheckpoints checks that a run whose checkpoints were removed says so instead of naming one, and what to do.
func TestRemovedCheckpoints(t *testing.T) {
	b := newBench(t)
	id := b.finished("")
	if r, err := b.Get(t.Context(), id); err != nil || r.Checkpoint == 0 {
		t.Fatalf("checkpoint %d, %v", r.Checkpoint, err)
	}
	files, err := filepath.Glob(filepath.Join(b.data.RunDir(id), "checkpoints", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if r, err := b.Get(t.Context(), id); err == nil && r.Checkpoint == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run still names a checkpoint")
		}
	}
	if err := b.Evaluations().Start(t.Context(), id); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "resume it") {
		t.Errorf("evaluating it: %v", err)
	}
}

// TestEvaluationsQueue checks that one evaluation runs at a time, before queued trainings, unless it was requested to start immediately.
func TestEvaluationsQueue(t *testing.T) {
	b := newBench(t)
	first, second, third := b.finished("a"), b.finished("b"), b.finished("c")
	e := b.Evaluations()
	for _, id := range []string{first, second, third} {
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for a, b := range map[string]string{first: second, second: third} { // also within one millisecond
		if !e.State(a).Asked.Before(e.State(b).Asked) {
			t.Errorf("%v is not before %v", e.State(a).Asked, e.State(b).Asked)
		}
	}
	if s := b.evaluation(first, model.Running); s.Started.IsZero() {
		t.Errorf("%+v", s)
	}
	if err := e.Start(t.Context(), first); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a second start: %v", err)
	}
	if err := e.Measure(t.Context(), second, nil); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a sweep's evaluation during the user's: %v", err)
	}
	if err := b.Delete(t.Context(), first); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleting a run that is being evaluated: %v", err)
	}
	training := b.create("", 5)
	time.Sleep(50 * time.Millisecond)
	r, err := b.Get(t.Context(), training)
	if e.State(second).State != model.Queued || err != nil || r.State != model.Queued {
		t.Errorf("during an evaluation: the second is %s, a training %s, %v", e.State(second).State, r.State, err)
	}
	if err := e.Queue(t.Context(), third, model.Evaluation{Now: true}); err != nil {
		t.Fatal(err)
	}
	b.evaluation(third, model.Running)
	b.release(third)
	b.evaluation(third, model.Finished)
	b.release(first)
	b.evaluation(second, model.Running)
	if r, err := b.Get(t.Context(), training); err != nil || r.State != model.Queued {
		t.Errorf("the training started before the evaluation: %s, %v", r.State, err)
	}
	b.release(second)
	b.awaitState(training, model.Finished)
	if e.State(second).State != model.Finished || e.State(first).State != model.Finished {
		t.Errorf("%+v, %+v", e.State(first), e.State(second))
	}
}

// TestEvaluationIsCancelled checks that a queued evaluation leaves the queue, a running one ends, and one that ignores the request is killed
// by a second one.
func TestEvaluationIsCancelled(t *testing.T) {
	b := newBench(t)
	first, second := b.finished("a"), b.finished("b")
	e := b.Evaluations()
	for _, id := range []string{first, second} {
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	b.evaluation(first, model.Running)
	for _, id := range []string{second, first} {
		if err := e.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if s := b.evaluation(id, model.Stopped); s.Reason == "" {
			t.Errorf("%+v", s)
		}
	}
	if err := e.Cancel(t.Context(), first); !errors.Is(err, model.ErrConflict) {
		t.Errorf("cancelled twice: %v", err)
	}
	b.evaluateBy(saying("sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"))
	if err := e.Start(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	b.evaluation(second, model.Running)
	time.Sleep(50 * time.Millisecond) // for the trap
	for range 2 {
		if err := e.Cancel(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	b.evaluation(second, model.Stopped)
}

// TestEvaluationSurvivesTheServer checks that the process continues, that the next server follows it and continues the queue, and that an
// evaluation killed meanwhile is reported.
func TestEvaluationSurvivesTheServer(t *testing.T) {
	b := newBench(t)
	first, second := b.finished("a"), b.finished("b")
	for _, id := range []string{first, second} {
		if err := b.Evaluations().Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	said := func(e model.Evaluation) bool { return e.Said != "" }
	b.evaluationThat(first, model.Running, said)
	b.restart()
	if s := b.evaluation(first, model.Running); s.Said == "" || b.Evaluations().State(second).State != model.Queued {
		t.Errorf("%+v, %+v", s, b.Evaluations().State(second))
	}
	b.release(first)
	b.evaluation(first, model.Finished)
	pid := b.evaluationThat(second, model.Running, said).PID
	b.Close()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	for f, err := b.data.Open(second); err == nil; { // until the process is gone
		if _, held := f.Evaluator(); !held {
			f.Close()
			break
		}
	}
	b.open()
	if s := b.evaluation(second, model.Interrupted); !strings.Contains(s.Reason, "exited unexpectedly") {
		t.Errorf("%+v", s)
	}
}

// TestFinishedRunIsEvaluated checks that a finished run is evaluated if configured, before the next one is trained.
func TestFinishedRunIsEvaluated(t *testing.T) {
	b := newBench(t)
	id, next := b.create("evaluate", 5), b.create("", 5)
	b.evaluationThat(id, model.Running, func(e model.Evaluation) bool { return e.Effort == model.Quick })
	if r, err := b.Get(t.Context(), next); err != nil || r.State != model.Queued {
		t.Errorf("the next run is %s, %v", r.State, err)
	}
	b.release(id)
	b.evaluation(id, model.Finished)
	b.awaitState(next, model.Finished)
	if s := b.Evaluations().State(next); s.State != "" {
		t.Errorf("a run without evaluation: %+v", s)
	}
}

// TestEvaluationElsewhere checks that an evaluation by another process is listed as running and not started again.
func TestEvaluationElsewhere(t *testing.T) {
	b := newBench(t)
	id := b.finished("")
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, err := f.LockEvaluation() // first, because a running evaluation without a lock counts as killed
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetEvaluation(model.Evaluation{State: model.Running, Said: "encoding"}); err != nil {
		t.Fatal(err)
	}
	b.evaluationThat(id, model.Running, func(e model.Evaluation) bool { return e.Said == "encoding" })
	if err := b.Evaluations().Measure(t.Context(), id, nil); !errors.Is(err, model.ErrConflict) {
		t.Errorf("during another: %v", err)
	}
	if err := errors.Join(f.SetEvaluation(model.Evaluation{State: model.Finished}), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	b.evaluation(id, model.Finished)
	b.evaluateBy(saying("true"))
	if err := b.Evaluations().Measure(t.Context(), id, nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestMeasureEnds checks that Measure returns how an evaluation ended, and returns early when its context ends.
func TestMeasureEnds(t *testing.T) {
	b := newBench(t)
	id := b.finished("")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Evaluations().Measure(ctx, id, []string{"--pairs", "2"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("context ended: %v", err)
	}
	if s := b.evaluation(id, model.Running); len(s.Flags) != 2 {
		t.Errorf("%+v", s)
	}
	b.release(id)
	b.evaluation(id, model.Finished)
	b.evaluateBy(saying("sh", "-c", "echo broken >&2; exit 1"))
	if err := b.Evaluations().Measure(t.Context(), id, nil); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a failure: %v", err)
	}
	var damaged folder.Damaged
	if err := os.WriteFile(filepath.Join(b.data.RunDir(id), "evaluation.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.evaluateBy(saying("true"))
	if f, err := b.data.Open(id); err != nil {
		t.Error(err)
	} else if _, err := f.Evaluation(); !errors.As(err, &damaged) {
		t.Errorf("a damaged record: %v", err)
	} else {
		f.Close()
	}
	if err := b.Evaluations().Measure(t.Context(), id, nil); err != nil {
		t.Errorf("evaluating with a damaged record: %v", err)
	}
}

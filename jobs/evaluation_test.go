package jobs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slotscope/model"
)

func shell(script string) func(string) (*exec.Cmd, error) {
	return func(string) (*exec.Cmd, error) { return exec.Command("sh", "-c", script), nil }
}

// settled waits until the run's evaluation has ended.
func settled(t *testing.T, e *Evaluations) model.Evaluation {
	t.Helper()
	for range 1000 {
		if s := e.State("a"); !s.Running {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the evaluation does not end")
	return model.Evaluation{}
}

// TestEvaluations: one row for each way that an evaluation ends.
func TestEvaluations(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, c := range []struct{ name, script, said, failed string }{
		{"done", `printf 'metrics\nnoise 1 of 9\rnoise 9 of 9\r\n' >&2`, "noise 9 of 9", ""},
		{"failed", `echo "run a has no checkpoint" >&2; exit 1`, "run a has no checkpoint", "run a has no checkpoint"},
		{"silent", `exit 3`, "", "exit status 3"},
		{"a long line", `head -c 200000 /dev/zero | tr '\0' x >&2`, "", ""},
	} {
		e := newEvaluations(quiet, shell(c.script))
		if s := e.State("a"); s != (model.Evaluation{}) {
			t.Errorf("%s: %+v before it starts", c.name, s)
		}
		if err := e.Start(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		s := settled(t, e)
		if s.Said != c.said || s.Failed != c.failed || s.Started.IsZero() || s.Ended.Before(s.Started) {
			t.Errorf("%s: %+v", c.name, s)
		}
		e.Close()
	}
	e := newEvaluations(quiet, func(string) (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil })
	if err := e.Start(context.Background(), "a"); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
	if e.State("a").Running {
		t.Error("what could not be started runs")
	}
}

// TestEvaluationsClose: a second start is refused while the first works, and closing interrupts it.
func TestEvaluationsClose(t *testing.T) {
	e := newEvaluations(slog.New(slog.NewTextHandler(io.Discard, nil)), func(string) (*exec.Cmd, error) { return exec.Command("sleep", "60"), nil })
	if err := e.Start(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(context.Background(), "a"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a second start: %v", err)
	}
	begun := time.Now()
	e.Close()
	if took := time.Since(begun); took > 20*time.Second || e.State("a").Running {
		t.Errorf("closing took %v and left %+v", took, e.State("a"))
	}
	if e.Start(context.Background(), "b") == nil {
		t.Error("an evaluation starts after closing")
	}
}

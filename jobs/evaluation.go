package jobs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"slotscope/model"
)

// Evaluations are processes of `slotscope eval`, started from the pages, one for a run at a time. A process writes scores.json
// into the run's folder; what it said last is kept here while the server lives.
type Evaluations struct {
	command func(id string) (*exec.Cmd, error)
	log     *slog.Logger
	cancel  context.CancelFunc
	ctx     context.Context
	tasks   sync.WaitGroup

	mu     sync.Mutex
	states map[string]*model.Evaluation
}

// NewEvaluations evaluates runs of the data folder dir with this very program.
func NewEvaluations(dir string, log *slog.Logger) *Evaluations {
	return newEvaluations(log, func(id string) (*exec.Cmd, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		return exec.Command(program, "eval", id, "--data", dir), nil
	})
}

func newEvaluations(log *slog.Logger, command func(id string) (*exec.Cmd, error)) *Evaluations {
	ctx, cancel := context.WithCancel(context.Background())
	return &Evaluations{command: command, log: log, ctx: ctx, cancel: cancel, states: map[string]*model.Evaluation{}}
}

// Close ends the processes under way; scores that were there before stay as they are.
func (e *Evaluations) Close() {
	e.cancel()
	e.tasks.Wait()
}

// State is the run's evaluation that was started last; the zero value where there was none.
func (e *Evaluations) State(id string) model.Evaluation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.states[id]; s != nil {
		return *s
	}
	return model.Evaluation{}
}

// Start evaluates a run in the background; model.ErrConflict where that is being done.
func (e *Evaluations) Start(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return errors.New("the server is closing")
	}
	if s := e.states[id]; s != nil && s.Running {
		return fmt.Errorf("run %s is being evaluated already: %w", id, model.ErrConflict)
	}
	cmd, err := e.command(id)
	if err != nil {
		return err
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("evaluate run %s: %w", id, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("evaluate run %s: %w", id, err)
	}
	e.states[id] = &model.Evaluation{Running: true, Started: time.Now()}
	e.tasks.Go(func() { e.follow(id, cmd, said) })
	return nil
}

// follow keeps the last line that a process says, and how it ended.
func (e *Evaluations) follow(id string, cmd *exec.Cmd, said io.Reader) {
	stop := context.AfterFunc(e.ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer stop()
	lines := bufio.NewScanner(said)
	lines.Split(scanSaid)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			e.change(id, func(s *model.Evaluation) { s.Said = line })
		}
	}
	_, _ = io.Copy(io.Discard, said) // a line beyond the scanner's limit does not hold the process up
	err := cmd.Wait()
	e.change(id, func(s *model.Evaluation) {
		s.Running, s.Ended = false, time.Now()
		if err != nil {
			s.Failed = s.Said
			if s.Failed == "" {
				s.Failed = err.Error()
			}
		}
	})
	if err != nil {
		e.log.Error("evaluating a run", "run", id, "error", err, "said", e.State(id).Said)
	}
}

func (e *Evaluations) change(id string, do func(s *model.Evaluation)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do(e.states[id])
}

// scanSaid splits at line feeds and at carriage returns, by which progress is written over itself.
func scanSaid(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := strings.IndexAny(string(data), "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

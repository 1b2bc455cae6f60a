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
	"slotscope/model/folder"
)

// Evaluations are processes of `slotscope eval`, for visitors and for sweeps, one for a run at a time. A process writes scores.json
// into the run's folder; what it said last is kept here while the server lives.
type Evaluations struct {
	o      EvaluationOptions
	cancel context.CancelFunc
	ctx    context.Context
	tasks  sync.WaitGroup

	mu     sync.Mutex
	states map[string]*model.Evaluation
}

// EvaluationOptions are what Evaluations work with; Supervisor must be given.
type EvaluationOptions struct {
	Supervisor *Supervisor
	// Command is the process that measures the run in dir; nil for this program's own `eval` with these flags.
	Command func(dir string, flags []string) (*exec.Cmd, error)
	Grace   time.Duration // in which a process that is interrupted ends by itself; 0 for ten seconds
	Log     *slog.Logger  // nil for slog.Default
}

// NewEvaluations begins with none under way.
func NewEvaluations(o EvaluationOptions) *Evaluations {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	e := &Evaluations{o: o, states: map[string]*model.Evaluation{}}
	if o.Grace == 0 {
		e.o.Grace = 10 * time.Second
	}
	if o.Command == nil {
		e.o.Command = e.eval
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// eval is the command line of this very program.
func (e *Evaluations) eval(dir string, flags []string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return exec.Command(program, append([]string{"eval", dir, "--data", e.o.Supervisor.o.Data.Dir()}, flags...)...), nil
}

// Close ends the processes under way; scores that were there before stay as they are.
func (e *Evaluations) Close() {
	e.cancel()
	e.tasks.Wait()
}

// State is the run's evaluation that was started last, or one under way that a shell, or a server before this one, has started; the
// zero value where there is neither.
func (e *Evaluations) State(id string) model.Evaluation {
	s := e.started(id)
	if s.Running {
		return s
	}
	if h, held := e.evaluator(id); held {
		return model.Evaluation{Running: true, Started: h.Since, Said: h.String() + " does it"}
	}
	return s
}

// evaluator is the process that measures a run, if one does, whoever began it.
func (e *Evaluations) evaluator(id string) (folder.Holder, bool) {
	f, err := e.o.Supervisor.open(e.ctx, id)
	if err != nil {
		return folder.Holder{}, false
	}
	defer f.Close()
	return f.Evaluator()
}

func (e *Evaluations) started(id string) model.Evaluation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.states[id]; s != nil {
		return *s
	}
	return model.Evaluation{}
}

// Start evaluates a run in the background; model.ErrConflict where that is being done.
func (e *Evaluations) Start(ctx context.Context, id string) error {
	p, err := e.begin(ctx, id, nil)
	if err == nil {
		e.tasks.Go(func() { _ = p.follow(e.ctx) })
	}
	return err
}

// Measure evaluates a run to its end, which ctx may bring about; model.ErrConflict where that is being done already.
func (e *Evaluations) Measure(ctx context.Context, id string, flags []string) error {
	p, err := e.begin(ctx, id, flags)
	if err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		if _, theirs := e.evaluator(id); theirs { // who was first by a moment
			return fmt.Errorf("run %s is being evaluated already: %w", id, model.ErrConflict)
		}
		return err
	}
	return nil
}

// evaluation is a process under way.
type evaluation struct {
	*Evaluations
	id   string
	cmd  *exec.Cmd
	said io.Reader
}

// begin starts a run's evaluation on a device that no run works on, where there is one.
func (e *Evaluations) begin(ctx context.Context, id string, flags []string) (*evaluation, error) {
	f, err := e.o.Supervisor.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, errors.New("the server is closing")
	}
	_, theirs := f.Evaluator()
	if s := e.states[id]; theirs || s != nil && s.Running {
		return nil, fmt.Errorf("run %s is being evaluated already: %w", id, model.ErrConflict)
	}
	cmd, err := e.o.Command(f.Dir(), flags)
	if err != nil {
		return nil, err
	}
	if idle := e.o.Supervisor.idle(evalEngine); len(idle) > 0 {
		cmd.Env = append(cmd.Environ(), idle[len(idle)-1].Env...) // runs take the first
	}
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("evaluate run %s: %w", id, err)
	}
	e.states[id] = &model.Evaluation{Running: true, Started: time.Now()}
	return &evaluation{e, id, cmd, said}, nil
}

// follow keeps the last line that the process says, and returns how it ended.
func (e *evaluation) follow(ctx context.Context) error {
	ended := make(chan struct{})
	defer close(ended)
	stop := context.AfterFunc(ctx, func() { e.end(ended) })
	defer stop()
	lines := bufio.NewScanner(e.said)
	lines.Split(scanSaid)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			e.change(e.id, func(s *model.Evaluation) { s.Said = line })
		}
	}
	_, _ = io.Copy(io.Discard, e.said) // a line beyond the scanner's limit does not hold the process up
	err := e.cmd.Wait()
	e.change(e.id, func(s *model.Evaluation) {
		s.Running, s.Ended = false, time.Now()
		if err == nil {
			return
		}
		if s.Said != "" {
			err = errors.New(s.Said)
		}
		s.Failed = err.Error()
	})
	if err != nil && ctx.Err() == nil {
		e.o.Log.Error("evaluating a run", "run", e.id, "error", err)
	}
	return err
}

// end asks the process to end, and ends it where it takes longer than grace.
func (e *evaluation) end(ended <-chan struct{}) {
	_ = e.cmd.Process.Signal(os.Interrupt)
	select {
	case <-ended:
	case <-time.After(e.o.Grace):
		_ = e.cmd.Process.Kill()
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

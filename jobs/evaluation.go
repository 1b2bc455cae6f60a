package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/host"
)

// Evaluations evaluates runs for users and sweeps, and finished runs whose configuration requests it. An evaluation works like a training:
// it waits for a device, is a separate process that outlives the server, and records its state in the run's folder. Evaluations have
// priority over trainings that wait for the same device.
type Evaluations struct{ s *Supervisor }

// Evaluations returns the evaluations of the supervisor's runs.
func (s *Supervisor) Evaluations() Evaluations { return Evaluations{s} }

// evaluating is the supervisor's state of a run's evaluation.
type evaluating struct {
	state  model.Evaluation // from evaluation.json, corrected by the state of the process
	locked bool             // a process is evaluating the run
	here   bool             // on this machine
	child  *child           // the process started here, until it has ended
	began  time.Time        // when that was started
	device string           // the assigned device
	exit   *exit            // how it ended, until the state includes it
	asked  time.Time        // when it was asked to end
}

// busy reports whether the evaluation occupies a device of this machine.
func (v *evaluating) busy() bool {
	return v.child != nil || v.locked && v.here && v.state.Executor != model.Slurm
}

// moving reports whether the evaluation can change from one visit to the next.
func (v *evaluating) moving() bool { return v.child != nil || v.locked || v.state.Under() }

// evaluationSight is the result of reading the state of an evaluation once.
type evaluationSight struct {
	state  model.Evaluation
	holder folder.Holder
	locked bool
	err    error
}

// seeEvaluation reads in the same order as see: the child, the lock, the record. The caller holds mu.
func (s *Supervisor) seeEvaluation(f *folder.Folder, v *evaluating) (seen evaluationSight) {
	if v.child != nil {
		if v.exit = v.child.reap(); v.exit != nil {
			v.child = nil
		}
	}
	seen.holder, seen.locked = f.Evaluator()
	seen.state, seen.err = f.Evaluation()
	return seen
}

// settleEvaluation determines the state of an evaluation after a visit. The caller holds mu.
func (s *Supervisor) settleEvaluation(f *folder.Folder, e *entry, seen evaluationSight) {
	if seen.err != nil {
		s.say(e, f.ID(), seen.err)
		seen.state = model.Evaluation{}
	}
	v, now := &e.eval, seen.state
	v.locked, v.here = seen.locked, seen.holder.Here()
	switch {
	case seen.locked:
		if !now.State.Live() {
			now.State, now.Started, now.Reason, now.Ended = model.Running, seen.holder.Since, "", time.Time{} // it has just started
		}
		if !v.asked.IsZero() {
			now.State = model.Stopping
		}
	case v.child != nil: // until it is reaped, even if it has recorded its end: the next evaluation cannot start before
		if !now.State.Live() {
			now.State, now.Started, now.Reason, now.Ended = model.Running, v.began, "", time.Time{}
		}
	case now.State.Live(), now.State == model.Queued && (v.exit != nil || s.abandoned(e)):
		now = s.concludeEvaluation(f, e)
	}
	if !seen.locked && v.child == nil {
		v.exit, v.asked = nil, time.Time{}
	}
	s.setEvaluation(f.ID(), v, now)
}

func (s *Supervisor) setEvaluation(id string, v *evaluating, now model.Evaluation) {
	if !reflect.DeepEqual(v.state, now) {
		v.state = now
		s.watchers.notify(id)
	}
}

// abandoned reports whether the evaluation depended on a cluster job that has ended.
func (s *Supervisor) abandoned(e *entry) bool {
	return s.o.Cluster != nil && e.submitted() && e.task.State == model.TaskOver && e.run.State.Ended()
}

// concludeEvaluation records how an evaluation ended that did not record its end. The caller holds mu.
func (s *Supervisor) concludeEvaluation(f *folder.Folder, e *entry) model.Evaluation {
	lock, lockErr := f.LockEvaluation()
	if errors.Is(lockErr, model.ErrConflict) {
		return e.eval.state // another process has just locked it
	}
	if lockErr == nil {
		defer lock.Unlock()
	}
	now, err := f.Evaluation()
	if err != nil || now.State.Ended() {
		return now // recorded by another process
	}
	v := &e.eval
	if now.Started.IsZero() {
		now.Started = v.began
	}
	now.Ended, now.Said = time.Now().UTC().Truncate(time.Millisecond), ""
	now.State, now.Reason = evaluationVerdict(f, e, now)
	if lockErr == nil {
		lockErr = f.SetEvaluation(now)
	}
	if lockErr != nil {
		s.say(e, f.ID(), lockErr)
	}
	return now
}

// evaluationVerdict returns the state and reason of an evaluation whose process is gone.
func evaluationVerdict(f *folder.Folder, e *entry, now model.Evaluation) (model.State, string) {
	v := &e.eval
	switch {
	case v.exit != nil && !v.exit.unknown && v.exit.status.ExitStatus() == 0:
		return model.Finished, ""
	case !v.asked.IsZero():
		return model.Stopped, "The evaluation was cancelled."
	case v.exit != nil && !v.exit.unknown:
		log, _ := f.Log(200)
		return model.Failed, v.exit.sentence(log)
	case now.Executor == model.Slurm:
		return model.Interrupted, fmt.Sprintf("SLURM job %s ended before the run was evaluated; evaluate it again.", e.job.ID)
	}
	return model.Interrupted, fmt.Sprintf("Process %d exited unexpectedly; evaluate the run again.", now.PID)
}

// startEvaluations starts queued evaluations, longest waiting first, each on a free device, or on a busy one if it is not supposed to
// wait. The caller holds mu.
func (s *Supervisor) startEvaluations(busy map[string]bool) {
	var waiting []*entry
	devices := s.o.Devices(evalEngine)
	for _, e := range s.runs {
		switch v := &e.eval; {
		case v.busy():
			busy[s.evaluationDevice(v, devices)] = true
		case v.state.State == model.Queued && !v.locked && v.state.Executor != model.Slurm && (!e.busy() || v.state.Now):
			waiting = append(waiting, e)
		}
	}
	slices.SortFunc(waiting, func(a, b *entry) int {
		if c := a.eval.state.Asked.Compare(b.eval.state.Asked); c != 0 {
			return c
		}
		return strings.Compare(a.run.ID, b.run.ID)
	})
	for _, e := range waiting {
		free := slices.DeleteFunc(slices.Clone(devices), func(d Device) bool { return busy[d.Name] })
		if len(free) == 0 && e.eval.state.Now {
			free = devices
		}
		if len(free) > 0 {
			on := free[len(free)-1] // runs use the first
			s.startEvaluation(e, on)
			busy[on.Name] = true
		}
	}
}

func (s *Supervisor) evaluationDevice(v *evaluating, devices []Device) string {
	if v.device == "" && len(devices) > 0 {
		return devices[0].Name
	}
	return v.device
}

// startEvaluation starts the process of a queued evaluation; if that is not possible, the evaluation fails. The caller holds mu.
func (s *Supervisor) startEvaluation(e *entry, on Device) {
	f, err := s.o.Data.Open(e.run.ID)
	if err != nil {
		return // the next visit reports why
	}
	defer f.Close()
	v := &e.eval
	v.exit, v.asked, v.began, v.device = nil, time.Time{}, time.Now().UTC().Truncate(time.Millisecond), on.Name
	v.child, err = s.spawnEvaluation(f, on, v.state)
	e.moves++
	if err == nil {
		now := v.state
		now.State, now.Started = model.Running, v.began
		s.setEvaluation(e.run.ID, v, now)
		s.o.Log.Info("evaluation started", "run", e.run.ID, "pid", v.child.process.Pid)
		return
	}
	now := v.state
	now.State, now.Ended, now.Reason = model.Failed, v.began, fmt.Sprintf("Its process could not be started: %v.", err)
	if err := f.QueueEvaluation(now); err != nil {
		s.say(e, e.run.ID, err)
	}
	s.setEvaluation(e.run.ID, v, now)
}

// spawnEvaluation starts `slotscope eval`; its output is appended to log.txt.
func (s *Supervisor) spawnEvaluation(f *folder.Folder, on Device, asked model.Evaluation) (*child, error) {
	flags := asked.Flags
	if asked.Replace {
		flags = append([]string{"--replace"}, flags...)
	}
	if asked.Effort != "" && asked.Effort != model.Full { // Full is the command's default
		flags = append([]string{"--effort", asked.Effort}, flags...)
	}
	cmd, err := s.o.Evaluate(f.Dir(), flags)
	if err != nil {
		return nil, err
	}
	return launch(f, cmd, on.Env)
}

// evaluate returns this program's command that evaluates a run.
func (s *Supervisor) evaluate(dir string, flags []string) (*exec.Cmd, error) {
	program, err := host.Self()
	if err != nil {
		return nil, err
	}
	return exec.Command(program, append([]string{"eval", dir, "--data", s.o.Data.Dir()}, flags...)...), nil
}

// State returns the state of the run's evaluation; zero if none was requested.
func (v Evaluations) State(id string) model.Evaluation {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	if e := v.s.runs[id]; e != nil {
		return e.eval.state
	}
	return model.Evaluation{}
}

// Start queues a full evaluation of a run; the error wraps model.ErrConflict if one is queued or running.
func (v Evaluations) Start(ctx context.Context, id string) error {
	return v.Queue(ctx, id, model.Evaluation{Effort: model.Full})
}

// Queue queues an evaluation of the run's newest checkpoint with effort, flags, and whether to start without waiting for a device. For a
// queued evaluation it can only remove the wait; otherwise the error wraps model.ErrConflict if one is queued or running. It also does if
// the run has no checkpoint, and for a quick evaluation of a run with full scores without ask.Replace.
func (v Evaluations) Queue(_ context.Context, id string, ask model.Evaluation) error {
	return v.s.act(id, func(f *folder.Folder, e *entry) error {
		if e.eval.state.State == model.Queued && ask.Now && e.eval.child == nil {
			ask = e.eval.state
			ask.Now = true
		} else if _, held := f.Evaluator(); held || e.eval.moving() {
			return fmt.Errorf("run %s is already being evaluated: %w", id, model.ErrConflict)
		}
		if err := evaluable(f, e.run, ask); err != nil {
			return err
		}
		ask.State = model.Queued
		if ask.Asked.IsZero() {
			ask.Asked = v.s.turn()
		}
		if err := f.QueueEvaluation(ask); err != nil {
			return err
		}
		v.s.setEvaluation(id, &e.eval, ask)
		return nil
	})
}

// turn returns the current time, or a later one, so that evaluations requested in the same millisecond start in the order of their
// requests. The caller holds mu.
func (s *Supervisor) turn() time.Time {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if !now.After(s.lastTurn) {
		now = s.lastTurn.Add(time.Millisecond)
	}
	s.lastTurn = now
	return now
}

// evaluable returns an error that wraps model.ErrConflict if a run cannot be evaluated as asked.
func evaluable(f *folder.Folder, run model.Run, ask model.Evaluation) error {
	if len(f.Checkpoints()) == 0 {
		why := "has no checkpoint to evaluate yet; wait until it saves one"
		switch {
		case run.Config.Model == model.External:
			why = "has no checkpoint: it was logged by another program; adopt its model to evaluate it"
		case run.State.Ended():
			why = "has no checkpoint to evaluate: it ended before it saved one, or its files were removed; resume it to train it again"
		}
		return fmt.Errorf("run %s %s: %w", f.ID(), why, model.ErrConflict)
	}
	if ask.Effort != model.Quick || ask.Replace {
		return nil
	}
	if scores, err := f.Scores(); err == nil && scores.Full() { // unreadable scores may be replaced
		return fmt.Errorf("run %s has full scores (%s images at step %s), which a quick evaluation would replace; evaluate it in full, or confirm the replacement on its page (API: \"replace\": true): %w",
			f.ID(), humanize.Comma(int64(scores.Images)), humanize.Comma(int64(scores.Step)), model.ErrConflict)
	}
	return nil
}

// Cancel removes an evaluation from the queue, or signals its process to end; a second call kills it. Earlier scores are kept.
func (v Evaluations) Cancel(ctx context.Context, id string) error {
	return v.s.negotiate(ctx, id, func(f *folder.Folder, e *entry) (*request, error) {
		if x := &e.eval; x.state.Executor == model.Slurm && x.moving() && e.submitted() {
			return v.s.cancelOnCluster(f, e)
		}
		return nil, v.s.cancelHere(f, e)
	})
}

// cancelHere cancels an evaluation that is not part of a job of the cluster. The caller holds mu.
func (s *Supervisor) cancelHere(f *folder.Folder, e *entry) error {
	x := &e.eval
	_, locked := f.Evaluator()
	switch {
	case locked:
		err := f.SignalEvaluation(x.harder())
		if err == nil {
			x.asked = time.Now()
		}
		return err
	case x.child != nil:
		sig := x.harder()
		x.asked = time.Now()
		if err := x.child.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal the evaluation of run %s: %w", f.ID(), err)
		}
		return nil
	case x.state.State != model.Queued:
		return fmt.Errorf("run %s is not being evaluated: %w", f.ID(), model.ErrConflict)
	}
	now := x.state
	now.State, now.Ended, now.Reason = model.Stopped, time.Now().UTC().Truncate(time.Millisecond), "Removed from the queue."
	if err := f.QueueEvaluation(now); err != nil {
		return err
	}
	s.setEvaluation(f.ID(), x, now)
	return nil
}

// harder returns the signal to end the process: SIGTERM first, then SIGKILL.
func (v *evaluating) harder() os.Signal {
	if v.asked.IsZero() {
		return syscall.SIGTERM
	}
	return os.Kill
}

// cancelOnCluster plans to end the job that evaluates the run; training must have ended. The caller holds mu.
func (s *Supervisor) cancelOnCluster(f *folder.Folder, e *entry) (*request, error) {
	if s.o.Cluster == nil {
		return nil, fmt.Errorf("run %s is being evaluated by SLURM job %s; this server was started without SLURM, so stop it with scancel %s: %w", f.ID(), e.job.ID, e.job.ID, model.ErrConflict)
	}
	if !e.run.State.Ended() {
		return nil, fmt.Errorf("run %s is still training: %w", f.ID(), model.ErrConflict)
	}
	if err := callOff(f, e); err != nil {
		return nil, err
	}
	e.eval.asked = time.Now()
	return &request{e.job.ID, s.o.Cluster.Ask, func(_ context.Context, f *folder.Folder, e *entry, failure error) error {
		if failure == nil {
			return nil
		}
		e.eval.asked = time.Time{}
		return notStopped(f, e, failure)
	}}, nil
}

// measureEvery is how often Measure checks whether the evaluation has ended.
const measureEvery = 50 * time.Millisecond

// Measure evaluates a run and waits for the end, including the wait for a device. The error wraps model.ErrConflict if the run is already
// being evaluated. When ctx ends, Measure returns and the evaluation continues.
func (v Evaluations) Measure(ctx context.Context, id string, flags []string) error {
	if err := v.Queue(ctx, id, model.Evaluation{Effort: model.Full, Flags: flags}); err != nil {
		return err
	}
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the evaluation of run %s: %w", id, ctx.Err())
		case <-tick.C:
		}
		switch now := v.State(id); {
		case now.Under():
		case now.State == model.Finished:
			return nil
		case now.State == "":
			return fmt.Errorf("run %s was deleted before it was evaluated: %w", id, model.ErrNotFound)
		default:
			return errors.New(now.Reason)
		}
	}
}

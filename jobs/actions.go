package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"slotscope/model"
	"slotscope/model/folder"
)

const longestNotes = 100_000 // bytes

// Create creates the folder of a run and queues it. An invalid configuration returns model.Invalid.
func (s *Supervisor) Create(ctx context.Context, cfg model.Config, name string) (model.Run, error) {
	return s.CreateAt(ctx, cfg, name, model.Placement{})
}

// CreateAt is Create with a placement of the run.
func (s *Supervisor) CreateAt(ctx context.Context, cfg model.Config, name string, at model.Placement) (model.Run, error) {
	name, err := model.CleanName(name)
	if err != nil {
		return model.Run{}, err
	}
	return s.createAs(ctx, model.NewID(time.Now()), cfg, name, at)
}

// createAs is CreateAt with a given ID.
func (s *Supervisor) createAs(ctx context.Context, id string, cfg model.Config, name string, at model.Placement) (model.Run, error) {
	if err := cfg.Validate().OrNil(); err != nil {
		return model.Run{}, err
	}
	if err := s.CheckPlacement(at); err != nil {
		return model.Run{}, err
	}
	if err := s.o.Check(ctx, cfg); err != nil {
		return model.Run{}, err
	}
	f, err := s.made(id, cfg, name, at)
	if err != nil {
		return model.Run{}, told(err)
	}
	defer f.Close()
	return s.enter(ctx, f)
}

// made creates a run folder and writes its placement before the loop can see it.
func (s *Supervisor) made(id string, cfg model.Config, name string, at model.Placement) (*folder.Folder, error) {
	s.mu.Lock() // otherwise the loop could start the run on this machine
	defer s.mu.Unlock()
	f, err := s.o.Data.CreateAs(id, cfg, name, model.Status{State: model.Queued})
	if err != nil || at.Executor == "" {
		return f, err
	}
	job := model.Job{Executor: at.Executor}
	if at.Executor == model.Slurm {
		job.Asks = at.Asks
	}
	if err := f.SetJob(job); err != nil {
		f.Close()
		return nil, errors.Join(err, s.o.Data.Remove(id))
	}
	return f, nil
}

// enter lists a new folder immediately instead of at the next scan.
func (s *Supervisor) enter(ctx context.Context, f *folder.Folder) (model.Run, error) {
	run, err := f.Run()
	if err != nil {
		return run, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run.ID]
	if e == nil { // the loop may have been faster
		e = &entry{}
		s.runs[run.ID] = e
	}
	e.moves++
	if !e.known {
		if e.job, err = f.Job(); err != nil {
			return run, err
		}
		if err := s.save(ctx, e, run); err != nil {
			return run, err
		}
	}
	s.look()
	return run, nil
}

// Rename changes the name of a run in any state.
func (s *Supervisor) Rename(ctx context.Context, id, name string) error {
	name, err := model.CleanName(name)
	if err != nil {
		return err
	}
	if name == "" {
		return model.Invalid{"name": "enter a name"}
	}
	return s.describe(ctx, id, func(m *folder.Meta) error { m.Name = name; return nil })
}

// Annotate replaces the notes on a run in any state.
func (s *Supervisor) Annotate(ctx context.Context, id, notes string) error {
	if len(notes) > longestNotes || !utf8.ValidString(notes) {
		return model.Invalid{"notes": fmt.Sprintf("notes must be text of at most %d bytes", longestNotes)}
	}
	return s.describe(ctx, id, func(m *folder.Meta) error { m.Notes = notes; return nil })
}

func (s *Supervisor) describe(ctx context.Context, id string, change func(*folder.Meta) error) error {
	return s.act(id, func(f *folder.Folder, e *entry) error {
		m, err := f.Meta()
		if err != nil {
			s.say(e, id, err) // a damaged record is replaced by the new one
		}
		if err := change(&m); err != nil {
			return err
		}
		if err := f.SetMeta(m); err != nil {
			return err
		}
		r := e.run
		r.Name, r.Notes, r.Tags, r.Star, r.Archived = m.Name, m.Notes, m.Tags, m.Star, m.Archived
		return s.save(ctx, e, r)
	})
}

// act applies a user's change to a run while holding mu, and wakes the loop afterwards.
func (s *Supervisor) act(id string, do func(f *folder.Folder, e *entry) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[id]
	if e == nil {
		return fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound)
	}
	f, err := s.opened(id)
	if err != nil {
		return err
	}
	defer f.Close()
	e.moves++
	defer s.look()
	return told(do(f, e))
}

// told converts disk errors and damaged files to model.Invalid, so that the user, who can fix them, sees the message.
func told(err error) error {
	var damaged folder.Damaged
	if errors.As(err, &damaged) {
		return model.Invalid{"": err.Error()}
	}
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EFBIG} {
		if errors.Is(err, cause) {
			return model.Invalid{"": err.Error()}
		}
	}
	return err
}

// Stop signals a run's process to save a checkpoint and end, or removes a queued run from the queue. A second call kills the process
// after ForceAfter, and before that returns an error with the time to wait.
func (s *Supervisor) Stop(ctx context.Context, id string) error {
	return s.negotiate(ctx, id, func(f *folder.Folder, e *entry) (*request, error) {
		locked := f.Locked()
		if e.submitted() {
			return s.stopTask(f, e, locked)
		}
		return nil, s.stopHere(ctx, f, e, locked)
	})
}

// stopHere stops a run that has no job on the cluster. The caller holds mu.
func (s *Supervisor) stopHere(ctx context.Context, f *folder.Folder, e *entry, locked bool) error {
	switch {
	case e.run.Config.Model == model.External && e.run.State.Live() && !locked:
		return s.endExternal(ctx, f, e)
	case e.submitting:
		return fmt.Errorf("run %s is just being submitted; try again in a moment: %w", f.ID(), model.ErrConflict)
	case !locked && e.child == nil && e.run.State == model.Queued:
		return s.unqueue(ctx, f, e)
	case !locked && e.child == nil, e.run.State.Ended(): // its process may still be running
		return fmt.Errorf("run %s is not running; it is %s: %w", f.ID(), e.run.State, model.ErrConflict)
	case e.asked.IsZero():
		return s.ask(ctx, f, e, locked)
	}
	if err := s.patient(f, e); err != nil {
		return err
	}
	if _, err := send(f, e, locked, os.Kill); err != nil {
		return err
	}
	e.forced = true
	return nil
}

// patient returns an error with the time to wait if a run that was asked to stop cannot be killed yet.
func (s *Supervisor) patient(f *folder.Folder, e *entry) error {
	if wait := time.Until(e.asked.Add(s.o.ForceAfter)); wait > 0 {
		return fmt.Errorf("run %s is saving after a stop request; you can kill it in %d seconds: %w", f.ID(), int(wait.Seconds())+1, model.ErrConflict)
	}
	return nil
}

// endExternal ends a run that is logged by another program.
func (s *Supervisor) endExternal(ctx context.Context, f *folder.Folder, e *entry) error {
	run, err := end(f, 0, func(model.Status) (model.State, string) {
		return model.Finished, "Ended by the program that logs it."
	})
	if err != nil {
		return err
	}
	if run.ID == "" {
		return fmt.Errorf("run %s is being written; try again in a moment: %w", f.ID(), model.ErrConflict)
	}
	return s.save(ctx, e, run)
}

func (s *Supervisor) unqueue(ctx context.Context, f *folder.Folder, e *entry) error {
	run, err := end(f, 0, func(model.Status) (model.State, string) {
		return model.Stopped, "Removed from the queue."
	})
	if err != nil {
		return err
	}
	if run.ID == "" {
		return fmt.Errorf("run %s is just being started; try again in a moment: %w", f.ID(), model.ErrConflict)
	}
	return s.save(ctx, e, run)
}

func (s *Supervisor) ask(ctx context.Context, f *folder.Folder, e *entry, locked bool) error {
	whom, err := send(f, e, locked, syscall.SIGTERM)
	if err != nil {
		return err
	}
	e.asked, e.whom = time.Now(), whom
	r := e.run
	r.State = model.Stopping
	return s.save(ctx, e, r)
}

// send signals the process that holds the lock, or the child that has not taken it yet.
func send(f *folder.Folder, e *entry, locked bool, sig os.Signal) (pid int, err error) {
	if locked {
		h, _ := f.Holder()
		return h.PID, f.Signal(sig)
	}
	pid = e.child.process.Pid
	if err := e.child.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return pid, fmt.Errorf("signal process %d of run %s: %w", pid, f.ID(), err)
	}
	return pid, nil
}

// ForceAt returns when a second Stop can kill a stopping run; zero if no stop was requested.
func (s *Supervisor) ForceAt(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.runs[id]; e != nil && !e.asked.IsZero() {
		return e.asked.Add(s.o.ForceAfter)
	}
	return time.Time{}
}

// Resume queues an ended run again, up to steps in total; 0 keeps the steps of its configuration. The run continues from its newest
// checkpoint.
func (s *Supervisor) Resume(ctx context.Context, id string, steps int) error {
	return s.act(id, func(f *folder.Folder, e *entry) error {
		gone := e.leave()
		lock, err := f.Lock()
		if err != nil {
			return err
		}
		defer lock.Unlock()
		status, err := f.Status()
		if err != nil {
			return err
		}
		ended := status.State.Ended() || status.State == "" || e.run.State.Ended() // a full disk may have prevented the folder from recording the end
		if !gone || !ended || e.follows() && !e.run.State.Ended() {
			return fmt.Errorf("run %s is %s; only an ended run can be resumed: %w", id, e.run.State, model.ErrConflict)
		}
		cfg, err := longer(f.Config(), status, steps)
		if err != nil {
			return err
		}
		return s.requeue(ctx, f, e, cfg, status)
	})
}

// longer returns the configuration with that many steps, or an error if no work is left. An interrupted run may have done every step
// and still lack its scores.
func longer(cfg model.Config, status model.Status, steps int) (model.Config, error) {
	if cfg.Model == model.External {
		return cfg, fmt.Errorf("the run was trained by another program, so it cannot be resumed here: %w", model.ErrConflict)
	}
	if steps != 0 {
		cfg.Steps = steps
	}
	if why := cfg.Validate()["steps"]; why != "" {
		return cfg, model.Invalid{"steps": why}
	}
	least := status.Checkpoint // later steps are repeated
	if status.State == model.Finished {
		least = status.Step + 1
	}
	if cfg.Steps < least {
		return cfg, model.Invalid{"steps": fmt.Sprintf("%d steps are too few to resume (%d are done and saved); choose at least %d", cfg.Steps, status.Checkpoint, least)}
	}
	return cfg, nil
}

func (s *Supervisor) requeue(ctx context.Context, f *folder.Folder, e *entry, cfg model.Config, status model.Status) error {
	if cfg != f.Config() {
		if err := f.SetConfig(cfg); err != nil {
			return err
		}
	}
	status.State, status.Reason, status.Ended = model.Queued, "", time.Time{}
	status.ImagesPerSecond, status.SecondsLeft = 0, 0
	if err := f.SetStatus(status); err != nil {
		return err
	}
	if err := s.release(f, e); err != nil {
		return err
	}
	run, err := f.Run()
	if run.ID == "" {
		return err
	}
	e.forgive()
	e.exit = nil
	return s.save(ctx, e, run)
}

// release clears the device or job of a run but keeps its executor. The caller holds mu.
func (s *Supervisor) release(f *folder.Folder, e *entry) error {
	job := model.Job{Executor: e.job.Executor, Asks: e.job.Asks}
	if s.o.Cluster == nil {
		job = model.Job{} // a run from a cluster continues on this machine
	}
	if job.Equal(e.job) {
		return nil
	}
	e.job, e.task = job, model.Task{}
	return f.SetJob(job)
}

// Delete permanently removes an ended run: first its folder, then its rows.
func (s *Supervisor) Delete(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[id]
	if e == nil {
		return fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound)
	}
	if !e.leave() || !e.run.State.Ended() {
		return fmt.Errorf("run %s is %s; stop it before deleting it: %w", id, e.run.State, model.ErrConflict)
	}
	if e.eval.busy() || e.eval.locked {
		return fmt.Errorf("run %s is being evaluated; cancel that before deleting it: %w", id, model.ErrConflict)
	}
	if err := s.o.Data.Remove(id); err != nil && !errors.Is(err, model.ErrNotFound) {
		return told(err)
	}
	if err := s.o.Store.DeleteRun(ctx, id); err != nil {
		return told(err) // the next scan finds that the folder is gone
	}
	delete(s.runs, id)
	s.damageMu.Lock()
	delete(s.damage, id)
	s.damageMu.Unlock()
	s.watchers.notify(id)
	return nil
}

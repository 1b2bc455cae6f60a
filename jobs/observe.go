package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// grace is how long a folder may be without a state while the process that created it starts.
const grace = 5 * time.Second

// sight is the result of reading a run folder once.
type sight struct {
	run    model.Run
	holder folder.Holder
	locked bool
	stamp  string
	known  bool // the run is stored, so its points can be stored too
	moves  int  // of the entry when reading began
	job    model.Job
	eval   evaluationSight
}

// glance visits a folder if it has changed.
func (s *Supervisor) glance(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.runs[id]
	quiet := e != nil && e.stamp != "" && !e.locked && e.child == nil && !e.behind && !e.eval.moving()
	s.mu.Unlock()
	if quiet && s.unchanged(id, e) {
		return
	}
	s.visit(ctx, id)
}

func (s *Supervisor) unchanged(id string, e *entry) bool {
	f, err := s.o.Data.Open(id)
	if err != nil {
		return false
	}
	defer f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.Stamp() == e.stamp && !f.Locked()
}

// visit updates a run from its folder: first its points, then its state, so that a page that shows the end of a run has all its points.
// Only the loop and New call it.
func (s *Supervisor) visit(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.runs[id]
	s.mu.Unlock()
	f, err := s.o.Data.Open(id)
	if err != nil {
		s.broken(ctx, id, e, err)
		return
	}
	defer f.Close()
	if e == nil {
		e = &entry{behind: true}
	}
	seen, err := s.see(f, e)
	if err != nil {
		if e.run.ID == "" {
			m, _ := f.Meta() // what can be read
			e.run = model.Run{ID: m.ID, Name: m.Name, Notes: m.Notes, Created: m.Created, Tags: m.Tags, Star: m.Star, Archived: m.Archived, Config: f.Config()}
		}
		s.broken(ctx, id, e, err)
		return
	}
	if seen.known {
		if err := s.tail(ctx, f, e, seen); err != nil {
			s.report(e, id, err)
		}
		s.keepScores(ctx, f, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(ctx, f, e, seen); err != nil {
		s.say(e, id, err)
	}
}

// see reads a folder in this order: whether the child has ended, whether the lock is held, the records. The records of a run that is not
// locked are therefore final.
func (s *Supervisor) see(f *folder.Folder, e *entry) (sight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := sight{known: e.known, moves: e.moves, stamp: f.Stamp()}
	if e.child != nil {
		if e.exit = e.child.reap(); e.exit != nil {
			e.child = nil
		}
	}
	seen.holder, seen.locked = f.Holder()
	run, err := f.Run()
	if err != nil && run.ID != "" { // only its name is damaged
		s.say(e, f.ID(), err)
		err = nil
	}
	if run.State.Ended() {
		run.Checkpoint = newest(f, run.Checkpoint)
	}
	seen.run = run
	job, jobErr := f.Job()
	if jobErr != nil {
		s.say(e, f.ID(), jobErr)
	}
	seen.job, seen.eval = job, s.seeEvaluation(f, &e.eval)
	return seen, err
}

// newest returns the newest step up to said of which the checkpoint still exists; 0 if there is none.
func newest(f *folder.Folder, said int) int {
	for _, step := range slices.Backward(f.Checkpoints()) {
		if step <= said {
			return step
		}
	}
	return 0
}

// settle determines the state of a run after a visit and stores it. The caller holds mu.
func (s *Supervisor) settle(ctx context.Context, f *folder.Folder, e *entry, seen sight) error {
	id := f.ID()
	if present := s.runs[id]; present != nil && present != e || present == nil && e.known {
		return nil // deleted meanwhile
	}
	if e.moves != seen.moves {
		return nil // it was changed meanwhile: the next visit reads it again
	}
	e.locked, e.here = seen.locked, seen.holder.Here()
	if e.job.ID != seen.job.ID {
		e.task = model.Task{}
	}
	e.job = seen.job
	s.settleEvaluation(f, e, seen.eval)
	run, err := s.judge(f, e, seen)
	if run.ID == "" {
		return err
	}
	told := err == nil
	if !told { // the folder could not be written, e.g. because the disk is full; the index is, and the next visit retries
		s.say(e, id, err)
		if e.run.State == run.State && e.run.Reason == run.Reason {
			run.Ended = e.run.Ended
		}
	}
	if e.behind && e.known && e.run.State.Live() && run.State.Ended() {
		return nil // its last points are not stored yet
	}
	if run.State.Ended() && told {
		if !seen.locked && e.child == nil {
			e.forgive()
		}
		e.exit = nil
	}
	s.runs[id] = e
	if e.stamp = seen.stamp; !told {
		e.stamp = ""
	}
	if err := s.save(ctx, e, run); err != nil {
		e.stamp = "" // visit again
		return err
	}
	return nil
}

// judge determines the actual state of a run from a visit. If the process of a run recorded as live is dead, judge also writes the end to
// the folder. It returns a run without ID if the run cannot be listed yet.
func (s *Supervisor) judge(f *folder.Folder, e *entry, seen sight) (model.Run, error) {
	if seen.locked && e.whom != seen.holder.PID && seen.holder.PID != 0 && !e.job.Stop {
		e.forgive() // the request was for another process
	}
	run := seen.run
	ev := s.evidence(f, e, seen)
	do, state := ev.judge()
	switch do {
	case pass:
		return model.Run{}, nil
	case conclude:
		return end(f, e.head(), func(now model.Status) (model.State, string) {
			ev.said, ev.failed = now.State, e.failed(now)
			n := ev.end()
			return n.state(), sentence(n, ev.job, f, e, now)
		})
	}
	if ev.locked && !run.State.Live() && state == model.Running {
		run.PID = seen.holder.PID // it has just started
	}
	if ev.job && !ev.locked && state == model.Queued {
		run.Reason, run.Ended, run.ImagesPerSecond, run.SecondsLeft = waits(e), time.Time{}, 0, 0
	}
	run.State = state
	return run, nil
}

func (s *Supervisor) evidence(f *folder.Folder, e *entry, seen sight) evidence {
	run := seen.run
	return evidence{
		said: run.State, external: run.Config.Model == model.External, locked: seen.locked, child: e.child != nil, exited: e.exit != nil,
		failed: e.failed(run.Status), asked: !e.asked.IsZero(), forced: e.forced, young: f.Age() < grace,
		job: e.submitted() && s.o.Cluster != nil, task: e.task.State, calledOff: e.job.Stop,
	}
}

// failed reports whether the child that ended was the process of the run, and not one that found the run already locked.
func (e *entry) failed(said model.Status) bool {
	return e.exit != nil && !e.exit.unknown && (said.State == model.Queued || said.PID == e.exit.pid)
}

// sentence returns a sentence on how a run ended that did not record its end.
func sentence(n ending, job bool, f *folder.Folder, e *entry, said model.Status) string {
	switch n {
	case byForce:
		return "Killed after it did not respond to a stop request." + kept(f)
	case unbegun:
		if job {
			return fmt.Sprintf("SLURM job %s was cancelled before it started.", e.job.ID) + kept(f)
		}
		return "Stopped before it started." + kept(f)
	case midStop:
		if job {
			return fmt.Sprintf("SLURM job %s ended%s (%s) while stopping, before it confirmed the save.", e.job.ID, onNode(e.task), e.task.Word) + kept(f)
		}
		return "Its process exited while stopping, before it confirmed the save." + kept(f)
	case byItself:
		log, _ := f.Log(200)
		return e.exit.sentence(log) + kept(f)
	case jobOver:
		return taskSentence(f, e) + kept(f)
	case neverSpoke:
		return "It has no state.json: its process exited before the first step, or the folder is an incomplete copy."
	}
	heard := ""
	if !said.Updated.IsZero() {
		heard = fmt.Sprintf("; last update %s UTC", said.Updated.UTC().Format("2006-01-02 15:04:05"))
	}
	return fmt.Sprintf("Process %d exited unexpectedly%s.", said.PID, heard) + kept(f)
}

// kept returns a sentence on the checkpoint that a resume would continue from.
func kept(f *folder.Folder) string {
	if step := f.Latest(); step > 0 {
		return fmt.Sprintf(" The checkpoint of step %d is kept.", step)
	}
	return " No checkpoint was saved."
}

// head returns the last stored step known to the loop. Only the loop uses it.
func (e *entry) head() int { return e.at().Head }

// at returns the position up to which points are stored.
func (e *entry) at() (c model.Cursor) {
	if e.cursor != nil {
		c = *e.cursor
	}
	return c
}

// end records the end of a run that no process has in its folder, while holding its lock. If the folder cannot be written, end still
// returns the run as ended; if a process has just locked the run, it returns a run without ID. head is the last stored step, which a killed
// process may not have recorded. On a full disk it can be lower than the step of the newest checkpoint.
func end(f *folder.Folder, head int, how func(model.Status) (model.State, string)) (model.Run, error) {
	lock, err := f.Lock()
	if errors.Is(err, model.ErrConflict) {
		return model.Run{}, nil
	}
	if err == nil {
		defer lock.Unlock()
	}
	run, readErr := f.Run()
	if run.ID == "" {
		return run, readErr
	}
	if run.State.Ended() {
		return run, nil // recorded by another process
	}
	run.State, run.Reason = how(run.Status)
	run.SecondsLeft, run.Ended = 0, time.Now().UTC().Truncate(time.Millisecond)
	run.Checkpoint = max(run.Checkpoint, f.Latest())
	run.Step = max(run.Step, head, run.Checkpoint)
	if err == nil {
		err = f.SetStatus(run.Status)
	}
	return run, err
}

// broken handles a folder that cannot be read. If it is gone, the run is removed; if its name is valid, the run is listed with the problem;
// otherwise the problem is kept for Problems.
func (s *Supervisor) broken(ctx context.Context, id string, e *entry, problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[id] != e && e != nil && e.known {
		return // deleted meanwhile
	}
	if model.ValidID(id) && errors.Is(problem, model.ErrNotFound) {
		s.forget(ctx, id)
		return
	}
	if !model.ValidID(id) {
		if s.strays[id] != problem.Error() {
			s.strays[id] = problem.Error()
			s.o.Log.Error("not a run folder", "error", problem)
		}
		return
	}
	if e == nil {
		e = &entry{run: model.Run{ID: id, Name: id, Created: time.Now().UTC().Truncate(time.Millisecond)}, behind: true}
	}
	s.runs[id] = e
	s.say(e, id, problem)
	r := e.run
	if !r.State.Ended() {
		r.State, r.Ended = model.Interrupted, time.Now().UTC().Truncate(time.Millisecond)
	}
	r.ID, r.Reason = id, problem.Error()
	e.stamp, e.behind = "", false
	if err := s.save(ctx, e, r); err != nil {
		s.say(e, id, err)
	}
}

// forget removes a run whose folder is gone. The caller holds mu.
func (s *Supervisor) forget(ctx context.Context, id string) {
	if err := s.o.Store.DeleteRun(ctx, id); err != nil {
		s.o.Log.Error("deleting a run from the index failed", "run", id, "error", err)
		return
	}
	delete(s.runs, id)
	s.watchers.notify(id)
}

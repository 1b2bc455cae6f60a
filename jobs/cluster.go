package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// Cluster computes runs on machines that a scheduler gives out; jobs/slurm has SLURM's. Run folders lie on a file system that
// all of them share.
type Cluster interface {
	// Submit queues the runs in dirs, which all ask for the same, and returns the id of each one's job.
	Submit(ctx context.Context, dirs []string, asks model.Asks) (ids []string, err error)
	// Check says as model.Invalid, by name, what of a visitor's asks cannot be asked for. Lines that the scheduler or a shell would read
	// are refused unless lines.
	Check(asks model.Asks, lines bool) error
	// Tasks says how jobs stand; one that it does not know is over.
	Tasks(ctx context.Context, ids []string) (map[string]model.Task, error)
	// Ask tells the run of a job to save and end.
	Ask(ctx context.Context, id string) error
	// Cancel takes a job out of the queue or ends it, whatever it does.
	Cancel(ctx context.Context, id string) error
}

// clustered says whether the run is a cluster's.
func (s *Supervisor) clustered(e *entry) bool {
	if e.job.Executor != "" {
		return e.job.Executor == model.Slurm
	}
	return s.o.Executor == model.Slurm && e.run.State == model.Queued
}

// submitted says whether the cluster has been given a job for the run.
func (e *entry) submitted() bool { return e.job.Executor == model.Slurm && e.job.ID != "" }

// follows says whether the cluster may still do something about the run.
func (e *entry) follows() bool { return e.submitted() && e.task.State != model.TaskOver }

// clusterLoop submits what waits and asks how jobs stand, apart from the other loop, for a cluster may take its time.
func (s *Supervisor) clusterLoop(ctx context.Context) {
	if s.o.Cluster == nil {
		return
	}
	tick := time.NewTicker(s.o.ClusterPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.submit(ctx)
		s.askCluster(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.wakeCluster:
		}
	}
}

// submit gives the cluster every queued run that is its and that it does not know yet.
func (s *Supervisor) submit(ctx context.Context) {
	for _, alike := range s.toSubmit() {
		s.submitAll(ctx, alike.ids, alike.asks)
	}
}

// submitAll submits runs that ask for the same.
func (s *Supervisor) submitAll(ctx context.Context, all []string, asks model.Asks) {
	for chunk := range slices.Chunk(all, model.MostInArray) {
		dirs := make([]string, len(chunk))
		for i, id := range chunk {
			dirs[i] = s.o.Data.RunDir(id)
		}
		ids, err := s.o.Cluster.Submit(context.WithoutCancel(ctx), dirs, asks) // half submitted would be submitted twice
		for i, id := range chunk {
			job := ""
			if err == nil {
				job = ids[i]
			}
			s.took(ctx, id, job, err)
		}
	}
}

// alike are runs that ask the cluster for the same.
type alike struct {
	asks model.Asks
	ids  []string
}

// toSubmit lists the runs to submit by what they ask for, oldest first, and marks them.
func (s *Supervisor) toSubmit() map[string]*alike {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.entering > 0 {
		return nil
	}
	byAsks := map[string]*alike{}
	for id, e := range s.runs {
		if e.run.State == model.Queued && s.clustered(e) && !e.submitted() && !e.job.Held && !e.locked && e.child == nil {
			e.submitting = true
			key := e.job.Asks.Key()
			if byAsks[key] == nil {
				byAsks[key] = &alike{asks: e.job.Asks}
			}
			byAsks[key].ids = append(byAsks[key].ids, id)
		}
	}
	for _, a := range byAsks {
		slices.Sort(a.ids) // by age
	}
	return byAsks
}

// together does something that enters several runs; the cluster is given none of them before it is done, and then all at once.
func (s *Supervisor) together(do func() error) error {
	s.addEntering(1)
	defer s.lookCluster()
	defer s.addEntering(-1)
	return do()
}

func (s *Supervisor) addEntering(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entering += n
}

// took notes the job that the cluster has made of a run, or fails the run that it refused.
func (s *Supervisor) took(ctx context.Context, id, job string, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[id]
	if e == nil {
		return // deleted meanwhile: the job finds no folder and ends
	}
	e.submitting = false
	e.moves++
	f, err := s.o.Data.Open(id)
	if err != nil {
		s.say(e, id, err)
		return
	}
	defer f.Close()
	if refused != nil {
		s.refused(ctx, f, e, refused)
		return
	}
	e.job = model.Job{Executor: model.Slurm, ID: job, Submitted: time.Now().UTC().Truncate(time.Millisecond), Asks: e.job.Asks}
	e.task = model.Task{}
	if err := f.SetJob(e.job); err != nil {
		s.say(e, id, err)
	}
	s.o.Log.Info("run submitted", "run", id, "job", job)
	r := e.run
	r.Reason = waits(e)
	if err := s.save(ctx, e, r); err != nil {
		s.say(e, id, err)
	}
}

// refused ends a run that the cluster would not take. The caller holds mu.
func (s *Supervisor) refused(ctx context.Context, f *folder.Folder, e *entry, why error) {
	r, err := end(f, 0, func(model.Status) (model.State, string) {
		return model.Failed, strings.TrimSuffix(why.Error(), ".") + "."
	})
	if err != nil {
		s.say(e, f.ID(), err)
	}
	if r.ID == "" {
		return
	}
	if err := s.save(ctx, e, r); err != nil {
		s.say(e, f.ID(), err)
	}
}

// askCluster learns how the jobs of all runs stand that it may still do something about.
func (s *Supervisor) askCluster(ctx context.Context) {
	runs := s.followed()
	if len(runs) == 0 {
		return
	}
	ids := make([]string, 0, len(runs))
	for _, job := range runs {
		ids = append(ids, job)
	}
	tasks, err := s.o.Cluster.Tasks(ctx, ids)
	if err != nil {
		if ctx.Err() == nil && s.clusterSaid != err.Error() {
			s.clusterSaid = err.Error()
			s.o.Log.Error("asking the cluster failed", "error", err)
		}
		return
	}
	s.clusterSaid = ""
	s.learn(runs, tasks)
}

// followed is the job of every run that the cluster may still do something about.
func (s *Supervisor) followed() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := map[string]string{}
	for id, e := range s.runs {
		if e.follows() {
			runs[id] = e.job.ID
		}
	}
	return runs
}

func (s *Supervisor) learn(runs map[string]string, tasks map[string]model.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, job := range runs {
		e := s.runs[id]
		if e == nil || e.job.ID != job || e.task == tasks[job] {
			continue
		}
		e.task = tasks[job]
		e.moves++ // a look that began before knew less
		e.stamp = ""
	}
	s.look()
}

// waits says what a run in the cluster's queue waits for.
func waits(e *entry) string {
	switch {
	case e.task.State == model.TaskRuns && e.task.Node != "":
		return fmt.Sprintf("SLURM job %s starts on %s.", e.job.ID, e.task.Node)
	case e.task.State == model.TaskRuns:
		return fmt.Sprintf("SLURM job %s starts.", e.job.ID)
	case e.task.Why == "BeginTime":
		return fmt.Sprintf("SLURM requeued job %s; it restarts shortly.", e.job.ID)
	case e.task.Why != "":
		return fmt.Sprintf("SLURM job %s waits: %s.", e.job.ID, e.task.Why)
	}
	return fmt.Sprintf("SLURM job %s waits.", e.job.ID)
}

func onNode(t model.Task) string {
	if t.Node == "" {
		return ""
	}
	return " on " + t.Node
}

// taskSentence says why a job is over.
func taskSentence(f *folder.Folder, e *entry) string {
	what := map[string]string{
		"NODE_FAIL":     "the node was lost",
		"TIMEOUT":       "its time limit was reached",
		"OUT_OF_MEMORY": "it exceeded its memory limit",
		"CANCELLED":     "it was cancelled",
		"PREEMPTED":     "it was preempted by another job",
		"FORGOTTEN":     "SLURM no longer lists it",
		"BOOT_FAIL":     "the node did not start",
		"COMPLETED":     "the process exited without a final state",
	}[e.task.Word]
	if what == "" {
		what = "SLURM says " + e.task.Word
		if e.task.Why != "" {
			what += ", " + e.task.Why
		}
	}
	log := ""
	if e.task.Word == "FAILED" {
		log, _ = f.Log(200)
	}
	return fmt.Sprintf("SLURM job %s ended%s: %s.", e.job.ID, onNode(e.task), what) + lastWords(log)
}

// stopTask asks a cluster's run to save and end, or takes it out of the queue. The caller holds mu.
func (s *Supervisor) stopTask(ctx context.Context, f *folder.Folder, e *entry, locked bool) error {
	switch {
	case s.o.Cluster == nil:
		return fmt.Errorf("run %s is SLURM job %s; this server was started without SLURM, so stop it with scancel %s: %w", f.ID(), e.job.ID, e.job.ID, model.ErrConflict)
	case e.run.State.Ended():
		return fmt.Errorf("run %s is not running; it is %s: %w", f.ID(), e.run.State, model.ErrConflict)
	case !e.asked.IsZero():
		if wait := time.Until(e.asked.Add(s.o.ForceAfter)); wait > 0 {
			return fmt.Errorf("run %s is saving after a stop request; you can kill it in %d seconds: %w", f.ID(), int(wait.Seconds())+1, model.ErrConflict)
		}
		e.forced = true
		return s.o.Cluster.Cancel(ctx, e.job.ID)
	}
	e.job.Stop = true // before the signal, so that the job does not put itself back into the queue
	if err := f.SetJob(e.job); err != nil {
		return err
	}
	e.asked, e.whom = time.Now(), 0
	if locked || e.task.State == model.TaskRuns || e.run.State.Live() {
		return s.askTask(ctx, e)
	}
	if err := s.o.Cluster.Cancel(ctx, e.job.ID); err != nil {
		return s.notStopped(f, e, err)
	}
	return s.unqueue(ctx, f, e)
}

func (s *Supervisor) askTask(ctx context.Context, e *entry) error {
	if err := s.o.Cluster.Ask(ctx, e.job.ID); err != nil {
		f, openErr := s.o.Data.Open(e.run.ID)
		if openErr != nil {
			return errors.Join(err, openErr)
		}
		defer f.Close()
		return s.notStopped(f, e, err)
	}
	r := e.run
	r.State, r.Reason = model.Stopping, ""
	return s.save(ctx, e, r)
}

// notStopped takes back that the run was asked to end, as the cluster could not be told.
func (s *Supervisor) notStopped(f *folder.Folder, e *entry, err error) error {
	e.forgive()
	e.job.Stop = false
	return errors.Join(fmt.Errorf("%w: %w", err, model.ErrConflict), f.SetJob(e.job))
}

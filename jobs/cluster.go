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

// Cluster runs training jobs on machines allocated by a scheduler; jobs/slurm implements it for SLURM. Run folders must be on a file
// system that all machines share.
type Cluster interface {
	// Submit queues the runs in dirs with the same options, and returns the ID of each run's job.
	Submit(ctx context.Context, dirs []string, asks model.Asks) (ids []string, err error)
	// Check returns a model.Invalid naming each option that is not allowed. Lines for the scheduler or a shell are allowed only if
	// lines is set.
	Check(asks model.Asks, lines bool) error
	// Tasks returns the state of each job; unknown jobs count as ended.
	Tasks(ctx context.Context, ids []string) (map[string]model.Task, error)
	// Ask signals the run of a job to save and end.
	Ask(ctx context.Context, id string) error
	// Cancel removes a job from the queue or ends it without waiting.
	Cancel(ctx context.Context, id string) error
}

// clustered reports whether the run belongs to the cluster.
func (s *Supervisor) clustered(e *entry) bool {
	if e.job.Executor != "" {
		return e.job.Executor == model.Slurm
	}
	return s.o.Executor == model.Slurm && e.run.State == model.Queued
}

// submitted reports whether the run has a job on the cluster.
func (e *entry) submitted() bool { return e.job.Executor == model.Slurm && e.job.ID != "" }

// follows reports whether the run's job has not ended yet.
func (e *entry) follows() bool { return e.submitted() && e.task.State != model.TaskOver }

// clusterLoop submits queued runs and polls the state of jobs. It is a separate loop because a cluster may respond slowly.
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

// submit submits every queued run of the cluster that has no job yet.
func (s *Supervisor) submit(ctx context.Context) {
	for _, alike := range s.toSubmit() {
		s.submitAll(ctx, alike.ids, alike.asks)
	}
}

// submitAll submits runs with the same options.
func (s *Supervisor) submitAll(ctx context.Context, all []string, asks model.Asks) {
	for chunk := range slices.Chunk(all, model.MostInArray) {
		dirs := make([]string, len(chunk))
		for i, id := range chunk {
			dirs[i] = s.o.Data.RunDir(id)
		}
		ids, err := s.o.Cluster.Submit(context.WithoutCancel(ctx), dirs, asks) // not cancelled: an unrecorded submission would be repeated
		for i, id := range chunk {
			job := ""
			if err == nil {
				job = ids[i]
			}
			s.took(ctx, id, job, err)
		}
	}
}

// alike are runs with the same options.
type alike struct {
	asks model.Asks
	ids  []string
}

// toSubmit lists the runs to submit by their options, oldest first, and marks them as being submitted.
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

// together calls do, which adds several runs, and submits them to the cluster together after it returns.
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

// took records the job of a submitted run, or marks the run as failed if the cluster rejected it.
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

// refused ends a run that the cluster rejected. The caller holds mu.
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

// askCluster polls the jobs of all runs that have not ended.
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
			s.o.Log.Error("querying the cluster failed", "error", err)
		}
		return
	}
	s.clusterSaid = ""
	s.learn(runs, tasks)
}

// followed returns the job IDs that have not ended, by run.
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
		e.moves++ // invalidates a visit that started with the old state
		e.stamp = ""
	}
	s.look()
}

// waits returns a sentence on what a run in the cluster's queue waits for.
func waits(e *entry) string {
	switch {
	case e.task.State == model.TaskRuns && e.task.Node != "":
		return fmt.Sprintf("SLURM job %s is starting on %s.", e.job.ID, e.task.Node)
	case e.task.State == model.TaskRuns:
		return fmt.Sprintf("SLURM job %s is starting.", e.job.ID)
	case e.task.Why == "BeginTime":
		return fmt.Sprintf("SLURM requeued job %s; it will restart shortly.", e.job.ID)
	case e.task.Why != "":
		return fmt.Sprintf("SLURM job %s is waiting: %s.", e.job.ID, e.task.Why)
	}
	return fmt.Sprintf("SLURM job %s is waiting.", e.job.ID)
}

func onNode(t model.Task) string {
	if t.Node == "" {
		return ""
	}
	return " on " + t.Node
}

// taskSentence returns a sentence on why a job ended.
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
		what = "SLURM reports " + e.task.Word
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

// request is a command to the cluster about a run's job.
type request struct {
	job    string                                                                     // its ID
	send   func(ctx context.Context, job string) error                                // Ask or Cancel of the cluster
	record func(ctx context.Context, f *folder.Folder, e *entry, failure error) error // records the outcome; the caller holds mu
}

// negotiate is act for changes that may need a command of the cluster. plan returns it, or nil. It runs without mu, because the cluster may
// respond slowly, and cannot be cancelled, because its outcome must be recorded.
func (s *Supervisor) negotiate(ctx context.Context, id string, plan func(f *folder.Folder, e *entry) (*request, error)) error {
	var r *request
	err := s.act(id, func(f *folder.Folder, e *entry) (err error) {
		r, err = plan(f, e)
		return err
	})
	if err != nil || r == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	failure := r.send(ctx, r.job)
	return s.act(id, func(f *folder.Folder, e *entry) error {
		if e.job.ID != r.job { // the run was resumed meanwhile
			return failure
		}
		return r.record(ctx, f, e, failure)
	})
}

// stopTask plans to signal a run on the cluster to save and end, or to remove it from the queue. The caller holds mu.
func (s *Supervisor) stopTask(f *folder.Folder, e *entry, locked bool) (*request, error) {
	switch {
	case s.o.Cluster == nil:
		return nil, fmt.Errorf("run %s is SLURM job %s; this server was started without SLURM, so stop it with scancel %s: %w", f.ID(), e.job.ID, e.job.ID, model.ErrConflict)
	case e.run.State.Ended():
		return nil, fmt.Errorf("run %s is not running; it is %s: %w", f.ID(), e.run.State, model.ErrConflict)
	case !e.asked.IsZero():
		if err := s.patient(f, e); err != nil {
			return nil, err
		}
		e.forced = true
		return &request{e.job.ID, s.o.Cluster.Cancel, func(_ context.Context, _ *folder.Folder, _ *entry, failure error) error { return failure }}, nil
	}
	if err := callOff(f, e); err != nil {
		return nil, err
	}
	e.asked, e.whom = time.Now(), 0
	if locked || e.task.State == model.TaskRuns || e.run.State.Live() {
		return &request{e.job.ID, s.o.Cluster.Ask, s.askedTask}, nil
	}
	return &request{e.job.ID, s.o.Cluster.Cancel, s.cancelledTask}, nil
}

// callOff records that the job must not requeue itself, before it is signalled.
func callOff(f *folder.Folder, e *entry) error {
	e.job.Stop = true
	return f.SetJob(e.job)
}

// askedTask records that a running job was signalled.
func (s *Supervisor) askedTask(ctx context.Context, f *folder.Folder, e *entry, failure error) error {
	if failure != nil {
		return notStopped(f, e, failure)
	}
	if e.run.State.Ended() { // while it was signalled
		return nil
	}
	r := e.run
	r.State, r.Reason = model.Stopping, ""
	return s.save(ctx, e, r)
}

// cancelledTask records that a waiting job was removed from the queue.
func (s *Supervisor) cancelledTask(ctx context.Context, f *folder.Folder, e *entry, failure error) error {
	if failure != nil {
		return notStopped(f, e, failure)
	}
	return s.unqueue(ctx, f, e)
}

// notStopped reverts a stop request that could not be sent to the cluster.
func notStopped(f *folder.Folder, e *entry, failure error) error {
	e.forgive()
	e.job.Stop = false
	return errors.Join(fmt.Errorf("%w: %w", failure, model.ErrConflict), f.SetJob(e.job))
}

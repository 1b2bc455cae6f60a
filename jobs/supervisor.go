// Package jobs supervises runs. Each run is a folder and a separate process, which outlives this one. The package queues, starts,
// stops and resumes runs, determines how they ended, and copies their data into an index for the pages.
//
// The folders are the source of truth: the state of a run never depends on the memory of this process, which can be killed and
// restarted at any time.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/host"
)

// Store is the index of runs, points and alerts; db.DB implements it.
type Store interface {
	RunStore
	PointStore
	AlertStore
}

// RunStore stores the states, last values and scores of runs.
type RunStore interface {
	SaveRun(ctx context.Context, r model.Run) error
	Run(ctx context.Context, id string) (model.Run, error)
	Runs(ctx context.Context) ([]model.Run, error)
	DeleteRun(ctx context.Context, id string) error

	// Overviews lists every run with its last values and scores; Scored returns the stamp of those scores, by run.
	Overviews(ctx context.Context) ([]model.Overview, error)
	LastValues(ctx context.Context, id string) (model.Values, error)
	SaveScores(ctx context.Context, id, stamp string, scores model.Values) error
	Scored(ctx context.Context) (map[string]string, error)
}

// PointStore stores the series of runs and the position up to which each run's file was read.
type PointStore interface {
	Cursor(ctx context.Context, id string) (model.Cursor, error)
	AddPoints(ctx context.Context, id string, points []model.Point, c model.Cursor) error
	Match(ctx context.Context, id string, after int, points []model.Point) (int, error)
	Rewind(ctx context.Context, id string, keep int, c model.Cursor) error
	Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error)
	Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error
}

// Options configure a Supervisor; Data and Store are required.
type Options struct {
	Data  *folder.Data
	Store Store

	// Command returns the process that trains the run in dir; nil for this program's `train --run`.
	Command func(dir string) (*exec.Cmd, error)
	// Evaluate returns the process that evaluates the run in dir; nil for this program's `eval` with these flags.
	Evaluate func(dir string, flags []string) (*exec.Cmd, error)
	// Check returns an error if a valid configuration cannot run on this machine: the dataset is missing or smaller than the
	// batch. Nil accepts everything.
	Check func(ctx context.Context, cfg model.Config) error
	// Devices returns the devices of an engine on this machine; each computes one run at a time. Only its first call may take long.
	// Nil is one for GPUs, one for CPUs.
	Devices func(engine string) []Device
	// Executor is the default executor of runs: model.Local (also if empty) or model.Slurm.
	Executor string
	// Cluster runs the jobs of model.Slurm. If it is nil, NoCluster gives the reason in a sentence.
	Cluster   Cluster
	NoCluster string
	// Asks are the default options of cluster jobs, which forms are filled with.
	Asks model.Asks
	// Lines lets users set any option of the cluster's scheduler and shell lines.
	Lines bool
	// Alerting sets which alerts are sent, and where.
	Alerting Alerting

	Log         *slog.Logger  // nil for slog.Default
	Poll        time.Duration // between checks of live runs; 0 for 250 ms
	Scan        time.Duration // between scans of all folders; 0 for 2 s
	ClusterPoll time.Duration // between queries to the cluster; 0 for 5 s
	AlertPoll   time.Duration // between checks for alerts; 0 for 5 s
	ForceAfter  time.Duration // time after a stop request before the run can be killed; 0 for a minute
}

// Supervisor supervises the runs of a data folder. It is safe for concurrent use.
type Supervisor struct {
	o        Options
	watchers watchers

	mu       sync.Mutex // held while the state of a run is determined or changed, never while points are copied
	runs     map[string]*entry
	ended    map[model.State]int // how many runs ended in each state while this server was running
	strays   map[string]string   // problems of folders that cannot be listed, by name
	closed   bool
	lastTurn time.Time // see turn
	entering int       // callers that are adding several runs to submit to the cluster together
	wake     chan struct{}
	cancel   context.CancelFunc
	finished chan struct{} // closed when the loops have returned

	damageMu sync.Mutex
	damage   map[string]folder.Damage // damaged points counted so far, by run

	wakeCluster chan struct{}
	wakeSender  chan struct{}
	clusterSaid string // the last logged error of the cluster; used only by clusterLoop
}

// entry is the supervisor's state of a run.
type entry struct {
	run    model.Run  // as last stored
	known  bool       // run is stored
	stamp  string     // of the folder when it was last read
	locked bool       // a process holds the run's lock
	here   bool       // that process runs on this machine
	child  *child     // the process started here, until it has ended
	exit   *exit      // how it ended, until the run's state includes it
	asked  time.Time  // when the current process was asked to stop
	whom   int        // PID of that process
	forced bool       // it was then killed
	moves  int        // number of changes made outside the loop
	job    model.Job  // as in job.json
	task   model.Task // the job's last state on the cluster

	eval evaluating // state of the evaluation

	submitting bool   // the run is being submitted to the cluster
	said       string // the last logged problem

	cursor *model.Cursor // position up to which points are stored; nil if unknown. Used only by the loop.
	behind bool          // there may be points that are not stored yet
	scored string        // stamp of the stored scores. Used only by the loop.
	judged judged        // progress at the last check for alerts
}

// busy reports whether the run occupies its device.
func (e *entry) busy() bool {
	return e.child != nil || e.locked && e.here && e.job.Executor != model.Slurm
}

// New reads every run folder, so that the first call of List is up to date, and then watches them until Close.
func New(ctx context.Context, o Options) (*Supervisor, error) {
	s := &Supervisor{o: o, runs: map[string]*entry{}, ended: map[model.State]int{}, strays: map[string]string{}, damage: map[string]folder.Damage{}, wake: make(chan struct{}, 1), wakeCluster: make(chan struct{}, 1), wakeSender: make(chan struct{}, 1), finished: make(chan struct{})}
	s.defaults()
	if err := s.o.Data.Sweep(); err != nil {
		s.o.Log.Warn("removing leftovers of deleted runs failed", "error", err)
	}
	known, err := s.o.Store.Runs(ctx)
	if err != nil {
		return nil, err
	}
	scored, err := s.o.Store.Scored(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		s.runs[r.ID] = remembered(r)
		s.runs[r.ID].scored = scored[r.ID]
	}
	if err := s.scan(ctx); err != nil {
		return nil, err
	}
	s.catchUp(ctx)
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.loops(ctx)
	return s, nil
}

// forgive resets a stop request.
func (e *entry) forgive() { e.asked, e.whom, e.forced = time.Time{}, 0, false }

func remembered(r model.Run) *entry {
	e := &entry{run: r, known: true, behind: true}
	if r.State.Ended() {
		e.judged = judgedAs(r) // by a previous server
	}
	if r.State == model.Stopping {
		e.asked, e.whom = time.Now(), r.PID // by a previous server
	}
	return e
}

func (s *Supervisor) defaults() {
	if s.o.Command == nil {
		s.o.Command = s.train
	}
	if s.o.Evaluate == nil {
		s.o.Evaluate = s.evaluate
	}
	if s.o.Check == nil {
		s.o.Check = func(context.Context, model.Config) error { return nil }
	}
	if s.o.Devices == nil {
		s.o.Devices = func(engine string) []Device {
			if engine == "xla:cuda" {
				return []Device{{Name: "gpu"}}
			}
			return []Device{{Name: "cpu"}}
		}
	}
	if s.o.Log == nil {
		s.o.Log = slog.Default()
	}
	for d, otherwise := range map[*time.Duration]time.Duration{&s.o.Poll: 250 * time.Millisecond, &s.o.Scan: 2 * time.Second, &s.o.ClusterPoll: 5 * time.Second, &s.o.AlertPoll: 5 * time.Second, &s.o.ForceAfter: time.Minute} {
		if *d == 0 {
			*d = otherwise
		}
	}
}

// train returns this program's command that trains a run.
func (s *Supervisor) train(dir string) (*exec.Cmd, error) {
	program, err := host.Self()
	if err != nil {
		return nil, err
	}
	return exec.Command(program, "train", "--run", dir, "--data", s.o.Data.Dir(), "--evaluate-later"), nil
}

// Close stops supervising; runs continue. The folder and the store belong to the caller and stay open.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.finished
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.runs {
		for _, c := range []*child{e.child, e.eval.child} {
			if c != nil {
				c.process.Release()
			}
		}
	}
	return nil
}

// loops runs all loops until ctx ends.
func (s *Supervisor) loops(ctx context.Context) {
	defer close(s.finished)
	var others sync.WaitGroup
	for _, loop := range []func(context.Context){s.clusterLoop, s.alertLoop, s.sendLoop} {
		others.Go(func() { loop(ctx) })
	}
	s.loop(ctx)
	others.Wait()
}

// loop checks live runs at every tick, and scans all folders at a longer interval.
func (s *Supervisor) loop(ctx context.Context) {
	tick := time.NewTicker(s.o.Poll)
	defer tick.Stop()
	for scanned := time.Now(); ctx.Err() == nil; {
		if time.Since(scanned) >= s.o.Scan {
			if err := s.scan(ctx); err != nil && ctx.Err() == nil {
				s.o.Log.Error("listing runs failed", "error", err)
			}
			scanned = time.Now()
		}
		for _, id := range s.active() {
			s.visit(ctx, id)
		}
		s.startQueued(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.wake:
		}
	}
}

// catchUp stores the points of dead runs that were written while no server was running, as long as that makes progress. A run is
// listed as ended only after its points are stored.
func (s *Supervisor) catchUp(ctx context.Context) {
	for on := true; on && ctx.Err() == nil; {
		on = false
		for _, id := range s.doubtful() {
			before := s.runs[id].at()
			s.visit(ctx, id)
			on = on || s.runs[id] != nil && s.runs[id].at() != before
		}
	}
}

// doubtful lists the runs that are listed as live although no process has them.
func (s *Supervisor) doubtful() (ids []string) {
	for id, e := range s.runs {
		if e.run.State.Live() && !e.locked && e.behind {
			ids = append(ids, id)
		}
	}
	return ids
}

// look makes the loop check now instead of at the next tick.
func (s *Supervisor) look() { poke(s.wake) }

// lookCluster is look for clusterLoop.
func (s *Supervisor) lookCluster() { poke(s.wakeCluster) }

// poke wakes a loop. It does nothing if a wake-up is already pending.
func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// active lists the runs that can change from one tick to the next.
func (s *Supervisor) active() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.runs {
		if e.locked || e.child != nil || e.behind || e.run.State.Live() || e.follows() || e.eval.moving() {
			ids = append(ids, id)
		}
	}
	return ids
}

// scan visits every folder that has changed since the last visit, and removes runs whose folders are gone.
func (s *Supervisor) scan(ctx context.Context) error {
	names, err := s.o.Data.Runs()
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, name := range names {
		present[name] = true
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.glance(ctx, name)
	}
	for _, id := range s.gone(present) {
		s.visit(ctx, id)
	}
	return nil
}

// gone lists the runs without a folder, and drops the strays without one.
func (s *Supervisor) gone(present map[string]bool) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.runs {
		if !present[id] {
			ids = append(ids, id)
		}
	}
	for name := range s.strays {
		if !present[name] {
			delete(s.strays, name)
		}
	}
	return ids
}

// Problems returns a sentence for each folder under runs/ that cannot be listed as a run.
func (s *Supervisor) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, sentence := range s.strays {
		all = append(all, sentence)
	}
	return all
}

// save stores the state of a run and notifies its watchers. The caller holds mu.
func (s *Supervisor) save(ctx context.Context, e *entry, r model.Run) error {
	if e.known && e.run == r {
		return nil
	}
	ends := r.State.Ended() && e.known && !e.run.State.Ended()
	if ends { // before the end is stored: a crash in between repeats the alert, and duplicates are dropped
		if err := s.tell(ctx, model.EndAlert(r, time.Now())); err != nil {
			return err
		}
	}
	if err := s.o.Store.SaveRun(ctx, r); err != nil {
		return err
	}
	if ends {
		s.ended[r.State]++ // under mu, which /metrics takes: an end that the index shows is counted
	}
	if !e.known && r.State.Ended() {
		e.judged = judgedAs(r) // it ended before this server saw it
	}
	e.run, e.known = r, true
	s.watchers.notify(r.ID)
	return nil
}

// report is say for callers that do not hold mu.
func (s *Supervisor) report(e *entry, id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(e, id, err)
}

// say logs a problem of a run, unless it is the last one logged. The caller holds mu.
func (s *Supervisor) say(e *entry, id string, err error) {
	if errors.Is(err, context.Canceled) || e.said == err.Error() {
		return
	}
	e.said = err.Error()
	s.o.Log.Error("problem with a run", "run", id, "error", err)
}

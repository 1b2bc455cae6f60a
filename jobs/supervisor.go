// Package jobs supervises runs: each is a folder and a process of its own, which outlives this one. It queues and starts
// them, stops and resumes them, finds out how they ended, and copies what they write into an index for pages to read.
//
// The folders are the truth. Nothing that the package remembers is needed to tell how a run stands; it may be killed at
// any moment and begin again.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// Store is the index of runs and points, as db.DB keeps it.
type Store interface {
	RunStore
	PointStore
	AlertStore
}

// RunStore keeps how runs stand, and what they were last measured to be.
type RunStore interface {
	SaveRun(ctx context.Context, r model.Run) error
	Run(ctx context.Context, id string) (model.Run, error)
	Runs(ctx context.Context) ([]model.Run, error)
	DeleteRun(ctx context.Context, id string) error

	// Overviews lists every run with its last values and scores; Scored says which scores those are, by run.
	Overviews(ctx context.Context) ([]model.Overview, error)
	LastValues(ctx context.Context, id string) (model.Values, error)
	SaveScores(ctx context.Context, id, stamp string, scores model.Values) error
	Scored(ctx context.Context) (map[string]string, error)
}

// PointStore keeps the series of runs, and how far into each run's file they were read.
type PointStore interface {
	Cursor(ctx context.Context, id string) (model.Cursor, error)
	AddPoints(ctx context.Context, id string, points []model.Point, c model.Cursor) error
	Match(ctx context.Context, id string, after int, points []model.Point) (int, error)
	Rewind(ctx context.Context, id string, keep int, c model.Cursor) error
	Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error)
	Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error
}

// Options are what a Supervisor works with; Data and Store must be given.
type Options struct {
	Data  *folder.Data
	Store Store

	// Command is the process that trains the run in dir; nil for this program's own `train --run`.
	Command func(dir string) (*exec.Cmd, error)
	// Evaluate is the process that measures the run in dir; nil for this program's own `eval` with these flags.
	Evaluate func(dir string, flags []string) (*exec.Cmd, error)
	// Check says what is wrong with a valid configuration on this machine: a dataset that is missing or smaller than the
	// batch. Nil accepts everything.
	Check func(ctx context.Context, cfg model.Config) error
	// Devices are what an engine can compute on here; one run at a time works on each. Nil is one for GPUs, one for CPUs.
	Devices func(engine string) []Device
	// Executor is where runs go that do not say it themselves: model.Local, which empty means too, or model.Slurm.
	Executor string
	// Cluster takes the runs of model.Slurm; nil where there is none, and NoCluster then says why in a sentence.
	Cluster   Cluster
	NoCluster string
	// Asks is what the cluster is asked for by jobs that do not say it themselves, for a form to begin with.
	Asks model.Asks
	// Lines lets visitors ask for any option of the cluster's scheduler, and for shell lines.
	Lines bool
	// Alerting is what is told of runs, and whom.
	Alerting Alerting

	Log         *slog.Logger  // nil for slog.Default
	Poll        time.Duration // between looks at live runs; 0 for 250 ms
	Scan        time.Duration // between looks at every folder; 0 for 2 s
	ClusterPoll time.Duration // between questions to the cluster; 0 for 5 s
	AlertPoll   time.Duration // between looks for alerts; 0 for 5 s
	ForceAfter  time.Duration // how long a stop waits before it may be forced; 0 for a minute
}

// Supervisor keeps runs in view. Its methods may be called from several goroutines.
type Supervisor struct {
	o        Options
	watchers watchers

	mu       sync.Mutex // held while a run's state is decided or changed, never while points are copied
	runs     map[string]*entry
	strays   map[string]string // sentences on folders that cannot be listed, by name
	closed   bool
	entering int // those who enter several runs that the cluster is to be given together
	wake     chan struct{}
	cancel   context.CancelFunc
	finished chan struct{} // closed when the loops have returned

	damageMu sync.Mutex
	damage   map[string]folder.Damage // of points, as far as they were counted, by run

	wakeCluster chan struct{}
	wakeSender  chan struct{}
	clusterSaid string // the last complaint of the cluster that was logged; its loop's alone
}

// entry is what the supervisor remembers of a run.
type entry struct {
	run    model.Run  // as stored last
	known  bool       // run is stored
	stamp  string     // of the folder when it was last read
	locked bool       // a process works on it
	here   bool       // that process runs on this machine
	child  *child     // the process started here, until it has ended
	exit   *exit      // how it ended, until the run's state tells
	asked  time.Time  // when the present process was asked to stop
	whom   int        // that process
	forced bool       // it was then killed
	moves  int        // changes made by visitors
	job    model.Job  // how the process is had, as job.json says
	task   model.Task // what the cluster said of the job last

	eval evaluating // how measuring the run stands

	submitting bool   // the cluster is being given the run
	said       string // the last problem that was logged

	cursor *model.Cursor // how far points are stored; nil for not known yet. The loop's alone.
	behind bool          // there may be points that are not stored
	scored string        // which scores are stored. The loop's alone.
	judged judged        // how far it was when it was last judged for alerts
}

// busy says whether the run occupies its device.
func (e *entry) busy() bool {
	return e.child != nil || e.locked && e.here && e.job.Executor != model.Slurm
}

// New looks at every run folder, so that List tells the truth from its first call, then keeps looking until Close.
func New(ctx context.Context, o Options) (*Supervisor, error) {
	s := &Supervisor{o: o, runs: map[string]*entry{}, strays: map[string]string{}, damage: map[string]folder.Damage{}, wake: make(chan struct{}, 1), wakeCluster: make(chan struct{}, 1), wakeSender: make(chan struct{}, 1), finished: make(chan struct{})}
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

// forgive forgets that a process was asked to stop.
func (e *entry) forgive() { e.asked, e.whom, e.forced = time.Time{}, 0, false }

func remembered(r model.Run) *entry {
	e := &entry{run: r, known: true, behind: true}
	if r.State.Ended() {
		e.judged = judgedAs(r) // by a server before this one
	}
	if r.State == model.Stopping {
		e.asked, e.whom = time.Now(), r.PID // by a server before this one
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

// train is the command line of this very program.
func (s *Supervisor) train(dir string) (*exec.Cmd, error) {
	program, err := thisProgram()
	if err != nil {
		return nil, err
	}
	return exec.Command(program, "train", "--run", dir, "--data", s.o.Data.Dir(), "--evaluate-later"), nil
}

// thisProgram is the file of the running program.
func thisProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if _, err := os.Stat(program); err != nil {
		program = "/proc/self/exe" // the file was replaced or removed since it was started
	}
	return program, nil
}

// Close stops looking; runs go on. The folder and the store stay open, for they are the caller's.
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

// loops runs until ctx ends.
func (s *Supervisor) loops(ctx context.Context) {
	defer close(s.finished)
	var others sync.WaitGroup
	for _, loop := range []func(context.Context){s.clusterLoop, s.alertLoop, s.sendLoop} {
		others.Go(func() { loop(ctx) })
	}
	s.loop(ctx)
	others.Wait()
}

// loop looks at live runs at every tick, and at all of them now and then.
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

// catchUp stores what dead runs measured while nobody watched, as long as that gets on: until then they cannot be said to
// have ended.
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

// doubtful lists the runs that are not said to have ended, though no process works on them.
func (s *Supervisor) doubtful() (ids []string) {
	for id, e := range s.runs {
		if e.run.State.Live() && !e.locked && e.behind {
			ids = append(ids, id)
		}
	}
	return ids
}

// look asks the loop to look now rather than at the next tick.
func (s *Supervisor) look() { poke(s.wake) }

// lookCluster is look for the loop that speaks to the cluster.
func (s *Supervisor) lookCluster() { poke(s.wakeCluster) }

// poke wakes a loop, which finds all that is new if it was poked before.
func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// active lists the runs that may change from one tick to the next.
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

// scan visits every folder that has changed since the last visit, and forgets runs whose folders are gone.
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

// gone lists the runs, and drops the strays, that are not among the present.
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

// Problems are sentences on folders under runs/ that cannot be listed as runs.
func (s *Supervisor) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, sentence := range s.strays {
		all = append(all, sentence)
	}
	return all
}

// save stores what is known of a run and tells those who watch it. The caller holds mu.
func (s *Supervisor) save(ctx context.Context, e *entry, r model.Run) error {
	if e.known && e.run == r {
		return nil
	}
	ends := r.State.Ended() && e.known && !e.run.State.Ended()
	if ends { // before the end is stored: a crash between the two tells again, and that is told once
		if err := s.tell(ctx, model.EndAlert(r, time.Now())); err != nil {
			return err
		}
	}
	if err := s.o.Store.SaveRun(ctx, r); err != nil {
		return err
	}
	if ends {
		ended.WithLabelValues(string(r.State)).Inc()
	}
	if !e.known && r.State.Ended() {
		e.judged = judgedAs(r) // it ended before this server knew of it
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

// say logs a problem of a run once, until another takes its place. The caller holds mu.
func (s *Supervisor) say(e *entry, id string, err error) {
	if errors.Is(err, context.Canceled) || e.said == err.Error() {
		return
	}
	e.said = err.Error()
	s.o.Log.Error("a run is in trouble", "run", id, "error", err)
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/sweep"
)

// SweepOptions are what Sweeps work with; Supervisor must be given.
type SweepOptions struct {
	Supervisor *Supervisor
	Width      int           // runs of one sweep that are queued, work or are evaluated at a time; 0 for as many as there are devices
	Log        *slog.Logger  // nil for slog.Default
	Poll       time.Duration // between looks where nothing is announced; 0 for 3 s
}

// Sweeps work through stored plans: they queue one run after another, evaluate what has finished, and choose hyperparameters
// as their runs come in. What they do follows from the plans and the run folders alone, so a server that starts again goes on.
type Sweeps struct {
	o     SweepOptions
	store sweep.Store

	mu         sync.Mutex
	problems   map[string]string      // of sweeps, by id
	failed     map[string]string      // evaluations that failed since this server started, by run
	evaluating map[string]string      // names of runs, by sweep
	scores     map[string]cachedScore // of evaluated runs

	wake   chan struct{}
	cancel context.CancelFunc
	work   sync.WaitGroup
}

type cachedScore struct {
	ended  time.Time
	scores model.Scores
}

// NewSweeps goes on with active sweeps until Close.
func NewSweeps(ctx context.Context, o SweepOptions) *Sweeps {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Poll == 0 {
		o.Poll = 3 * time.Second
	}
	s := &Sweeps{o: o, store: sweep.OpenStore(o.Supervisor.o.Data.Dir()), problems: map[string]string{}, failed: map[string]string{},
		evaluating: map[string]string{}, scores: map[string]cachedScore{}, wake: make(chan struct{}, 1)}
	ctx, s.cancel = context.WithCancel(ctx)
	s.work.Add(1)
	go s.loop(ctx)
	return s
}

// Close stops looking; runs and evaluations go on.
func (s *Sweeps) Close() error {
	s.cancel()
	s.work.Wait()
	return nil
}

func (s *Sweeps) loop(ctx context.Context) {
	defer s.work.Done()
	changes, stop := s.o.Supervisor.Watch("")
	defer stop()
	tick := time.NewTicker(s.o.Poll)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.round(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.wake:
		case <-changes:
			select { // a run that works announces itself many times a second
			case <-ctx.Done():
			case <-time.After(s.o.Poll / 10):
			}
		}
	}
}

// look asks the loop for a round now.
func (s *Sweeps) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// round does for each active sweep the next thing that can be done.
func (s *Sweeps) round(ctx context.Context) {
	all, err := s.store.List()
	if err != nil && ctx.Err() == nil {
		s.o.Log.Error("some sweeps could not be read", "error", err)
	}
	for _, saved := range all {
		if !saved.Active || ctx.Err() != nil {
			continue
		}
		err := s.advance(ctx, saved)
		if ctx.Err() != nil {
			return
		}
		s.say(saved.ID, err)
	}
}

// say keeps why a sweep cannot go on, and logs it once.
func (s *Sweeps) say(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && s.problems[id] != text {
		s.o.Log.Error("a sweep is in trouble", "sweep", id, "error", err)
	}
	s.problems[id] = text
}

// advance does the next thing where a device is free for it: evaluate what has finished, for choices hang on it; resume what was
// interrupted; queue what is planned. A run that a visitor stopped waits for the visitor.
func (s *Sweeps) advance(ctx context.Context, saved sweep.Saved) error {
	b, err := s.board(ctx, saved.Plan)
	if err != nil {
		return err
	}
	if b.Over() {
		return s.rest(saved)
	}
	s.mu.Lock()
	evaluating := s.evaluating[saved.ID] != ""
	s.mu.Unlock()
	for _, item := range b.Items {
		if item.Next(server, evaluating, 0) == sweep.Measure && s.room(b, evalEngine, evaluating) {
			s.evaluate(ctx, saved.ID, item)
			s.look() // there may be room for more
			return nil
		}
	}
	begun, err := s.begin(ctx, saved, b, evaluating)
	if err != nil {
		return err
	}
	if begun {
		s.look()
		return nil
	}
	if !evaluating && b.Count(sweep.Live, sweep.Unmeasured) == 0 { // only stopped runs are left
		return s.rest(saved)
	}
	return nil
}

// server is how Sweeps works: a run that a visitor stopped waits for the visitor, and failed runs are retried when asked.
var server = sweep.Worker{}

// evalEngine is what evaluations compute on: they are not told.
const evalEngine = "auto"

// begin begins or resumes the next run where a device is free for it; where runs go to a cluster, which does the queueing, every run
// that can begin, so that they are one array.
func (s *Sweeps) begin(ctx context.Context, saved sweep.Saved, b sweep.Board, evaluating bool) (begun bool, err error) {
	supervisor := s.o.Supervisor
	if s.o.Width > 0 || !supervisor.goes(saved.Placement) {
		for _, item := range b.Items {
			if begin := s.beginning(item, saved.Placement); begin != nil && s.room(b, item.Config.Engine, evaluating) {
				return true, begin(ctx)
			}
		}
		return false, nil
	}
	err = supervisor.together(func() error {
		for _, item := range b.Items {
			if begin := s.beginning(item, saved.Placement); begin != nil {
				begun = true
				if err := errors.Join(ctx.Err(), begin(ctx)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return begun, err
}

// beginning is how an item's training begins or goes on by itself; nil where it does not.
func (s *Sweeps) beginning(item sweep.Standing, at model.Placement) func(context.Context) error {
	switch item.Next(server, false, 0) {
	case sweep.Continue:
		return func(ctx context.Context) error { return s.o.Supervisor.Resume(ctx, item.ID, 0) }
	case sweep.Begin:
		return func(ctx context.Context) error {
			_, err := s.o.Supervisor.createAs(ctx, item.ID, item.Config, item.Name, at)
			return err
		}
	}
	return nil
}

// room says whether the sweep may occupy one more of an engine's devices. What it has begun fills them: runs whose engine can
// take the same, and its evaluation.
func (s *Sweeps) room(b sweep.Board, engine string, evaluating bool) bool {
	devices := s.o.Supervisor.o.Devices(engine)
	width, busy := s.o.Width, 0
	if width == 0 {
		width = max(len(devices), 1)
	}
	occupies := func(engine string) {
		if s.o.Width > 0 || share(devices, s.o.Supervisor.o.Devices(engine)) {
			busy++
		}
	}
	if evaluating {
		occupies(evalEngine)
	}
	for _, other := range b.Items {
		if other.Stage == sweep.Live && (s.o.Width > 0 || !s.o.Supervisor.onCluster(other.ID)) {
			occupies(other.Config.Engine)
		}
	}
	return busy < width
}

// share says whether some device is in both lists.
func share(a, b []Device) bool {
	return slices.ContainsFunc(a, func(d Device) bool {
		return slices.ContainsFunc(b, func(e Device) bool { return e.Name == d.Name })
	})
}

// rest marks a sweep as not worked on.
func (s *Sweeps) rest(saved sweep.Saved) error {
	saved.Mark.Active = false
	return s.store.SetMark(saved.ID, saved.Mark)
}

// evaluate starts the evaluation of a finished run. Where that is under way for a visitor or another sweep, the loop sees its scores.
func (s *Sweeps) evaluate(ctx context.Context, id string, item sweep.Standing) {
	s.mu.Lock()
	s.evaluating[id] = item.Name
	s.mu.Unlock()
	s.work.Go(func() {
		err := s.measure(ctx, item)
		s.mu.Lock()
		delete(s.evaluating, id)
		theirs := errors.Is(err, model.ErrConflict)
		if err != nil && ctx.Err() == nil && !theirs {
			s.failed[item.ID] = "trained, but its evaluation failed: " + err.Error()
		}
		s.mu.Unlock()
		if !theirs { // else the next round is soon enough
			s.look()
		}
	})
}

// measure evaluates a run to its end.
func (s *Sweeps) measure(ctx context.Context, item sweep.Standing) error {
	if err := s.o.Supervisor.Evaluations().Measure(ctx, item.ID, item.EvalFlags()); err != nil {
		return err
	}
	scores, err := s.o.Supervisor.Scores(ctx, item.ID)
	if err == nil && !scores.Evaluated() {
		err = errors.New("the evaluation ended without metrics")
	}
	return err
}

// board holds a plan against the runs that are listed.
func (s *Sweeps) board(ctx context.Context, p sweep.Plan) (sweep.Board, error) {
	runs, err := s.o.Supervisor.List(ctx)
	if err != nil {
		return sweep.Board{}, err
	}
	byID := map[string]model.Run{}
	for _, r := range runs {
		byID[r.ID] = r
	}
	return p.Look(func(id string) (sweep.Found, bool) {
		r, ok := byID[id]
		if !ok {
			return sweep.Found{}, false
		}
		return s.found(ctx, r), true
	}), nil
}

// found adds to a run what it measured, and why its evaluation failed.
func (s *Sweeps) found(ctx context.Context, r model.Run) sweep.Found {
	f := sweep.Found{Run: r}
	if r.State != model.Finished {
		return f
	}
	s.mu.Lock()
	known, ok := s.scores[r.ID]
	f.Problem = s.failed[r.ID]
	s.mu.Unlock()
	if ok && known.ended.Equal(r.Ended) {
		f.Scores, f.Problem = &known.scores, ""
		return f
	}
	scores, err := s.o.Supervisor.Scores(ctx, r.ID)
	switch {
	case err == nil:
		f.Scores = &scores
	case !errors.Is(err, model.ErrNotFound):
		f.Problem = err.Error()
	}
	if f.Evaluated() {
		f.Problem = ""
		s.mu.Lock()
		s.scores[r.ID] = cachedScore{r.Ended, scores}
		s.mu.Unlock()
	}
	return f
}

// Create stores a plan and begins to work on it; one that is there already is gone on with.
func (s *Sweeps) Create(ctx context.Context, p sweep.Plan) (sweep.Status, error) {
	return s.CreateAt(ctx, p, model.Placement{})
}

// CreateAt is Create with a word on where runs that have not begun are computed.
func (s *Sweeps) CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	if err := p.Validate(); err != nil {
		return sweep.Status{}, err
	}
	if err := s.o.Supervisor.CheckPlacement(at); err != nil {
		return sweep.Status{}, err
	}
	checked := map[string]bool{}
	for _, item := range p.Look(func(string) (sweep.Found, bool) { return sweep.Found{}, false }).Items {
		if key := item.Config.Dataset; !checked[key] {
			checked[key] = true
			if err := s.o.Supervisor.o.Check(ctx, item.Config); err != nil {
				return sweep.Status{}, err
			}
		}
	}
	saved, err := s.store.Save(p)
	if err == nil && !at.Equal(saved.Placement) {
		saved.Placement = at
		err = s.store.SetMark(saved.ID, saved.Mark)
	}
	if err != nil {
		return sweep.Status{}, told(err)
	}
	if err := s.Resume(ctx, saved.ID, false); err != nil {
		return sweep.Status{}, err
	}
	return s.Get(ctx, saved.ID)
}

// Estimate says how much work a plan is, and how long it takes by the pace of the runs that are listed.
func (s *Sweeps) Estimate(ctx context.Context, p sweep.Plan) (sweep.Estimate, error) {
	b, err := s.board(ctx, p)
	if err != nil {
		return sweep.Estimate{}, err
	}
	runs, err := s.o.Supervisor.List(ctx)
	return b.Estimate(runs), err
}

// List is every sweep, newest first.
func (s *Sweeps) List(ctx context.Context) ([]sweep.Status, error) {
	all, err := s.store.List()
	if err != nil {
		s.o.Log.Error("some sweeps could not be read", "error", err)
	}
	var out []sweep.Status
	for _, saved := range all {
		one, err := s.status(ctx, saved)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Get is one sweep.
func (s *Sweeps) Get(ctx context.Context, id string) (sweep.Status, error) {
	saved, err := s.store.Get(id)
	if err != nil {
		return sweep.Status{}, err
	}
	return s.status(ctx, saved)
}

func (s *Sweeps) status(ctx context.Context, saved sweep.Saved) (sweep.Status, error) {
	b, err := s.board(ctx, saved.Plan)
	if err != nil {
		return sweep.Status{}, err
	}
	worker := ""
	if h, held := folder.HolderOf(s.store.WorkerLock(saved.ID)); held {
		worker = h.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return sweep.Status{Saved: saved, Board: b, Worker: worker, Evaluating: s.evaluating[saved.ID], Problem: s.problems[saved.ID]}, nil
}

// Stop lets no further run begin, and stops those of the sweep that are queued or work; they save first.
func (s *Sweeps) Stop(ctx context.Context, id string) error {
	saved, err := s.store.Get(id)
	if err != nil {
		return err
	}
	if err := s.rest(saved); err != nil {
		return told(err)
	}
	b, err := s.board(ctx, saved.Plan)
	if err != nil {
		return err
	}
	var errs []error
	for _, item := range b.Items {
		if item.Stage == sweep.Live && item.Run.State != model.Stopping {
			if err := s.o.Supervisor.Stop(ctx, item.ID); err != nil && !errors.Is(err, model.ErrConflict) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Resume works on a sweep again: runs that were stopped go on, and with retry those that failed begin again from their
// newest checkpoint.
func (s *Sweeps) Resume(ctx context.Context, id string, retry bool) error {
	saved, err := s.store.Get(id)
	if err != nil {
		return err
	}
	b, err := s.board(ctx, saved.Plan)
	if err != nil {
		return err
	}
	for _, item := range b.Items {
		if item.Next(sweep.Worker{Stopped: true, Retry: retry}, false, 0) == sweep.Continue {
			if err := s.o.Supervisor.Resume(ctx, item.ID, 0); err != nil && !errors.Is(err, model.ErrConflict) {
				return err
			}
		}
		if retry {
			s.mu.Lock()
			delete(s.failed, item.ID)
			s.mu.Unlock()
		}
	}
	saved.Mark.Active = true
	if err := s.store.SetMark(id, saved.Mark); err != nil {
		return told(err)
	}
	s.look()
	return nil
}

// Delete forgets a sweep that is not worked on; its runs stay.
func (s *Sweeps) Delete(_ context.Context, id string) error {
	saved, err := s.store.Get(id)
	if err != nil {
		return err
	}
	if saved.Active {
		return fmt.Errorf("sweep %s is being worked on; stop it before deleting it: %w", id, model.ErrConflict)
	}
	return told(s.store.Delete(id))
}

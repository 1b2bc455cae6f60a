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

// SweepOptions configure Sweeps; Supervisor is required.
type SweepOptions struct {
	Supervisor *Supervisor
	Width      int           // runs of one sweep that are queued, trained or evaluated at a time; 0 for one per device
	Log        *slog.Logger  // nil for slog.Default
	Poll       time.Duration // between rounds without notifications; 0 for 3 s
}

// Sweeps executes stored plans: it queues runs, evaluates finished ones, and chooses hyperparameters from their results. Its actions depend
// only on the plans and the run folders, so a restarted server continues.
type Sweeps struct {
	o     SweepOptions
	store sweep.Store

	mu         sync.Mutex
	problems   map[string]string      // of sweeps, by ID
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

// NewSweeps continues active sweeps until Close.
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

// Close stops the loop; runs and evaluations continue.
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
			select { // a training run sends many notifications per second
			case <-ctx.Done():
			case <-time.After(s.o.Poll / 10):
			}
		}
	}
}

// look wakes the loop for a round now.
func (s *Sweeps) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// round advances each active sweep.
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

// say records why a sweep cannot continue, and logs it once.
func (s *Sweeps) say(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && s.problems[id] != text {
		s.o.Log.Error("problem with a sweep", "sweep", id, "error", err)
	}
	s.problems[id] = text
}

// advance takes the next step of a sweep if a device is free: it evaluates a finished run, because choices depend on it, resumes an
// interrupted one, or queues a planned one. A run that a user stopped waits for the user.
func (s *Sweeps) advance(ctx context.Context, saved sweep.Saved) error {
	s.mu.Lock()
	evaluating := s.evaluating[saved.ID] != "" // read before the board, which then has the result of an evaluation that has ended
	s.mu.Unlock()
	b, err := s.board(ctx, saved.Plan)
	if err != nil {
		return err
	}
	if b.Over() {
		return s.rest(saved)
	}
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

// server holds the rules for Sweeps: runs that a user stopped wait for the user, and failed runs are retried only on request.
var server = sweep.Worker{}

// evalEngine is the engine of evaluations, which have no setting for it.
const evalEngine = "auto"

// begin starts or resumes the next run if a device is free for it. On a cluster, which has its own queue, it starts every possible run, so
// that they form one array.
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

// beginning returns the function that starts or resumes an item's training; nil if there is nothing to start.
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

// room reports whether the sweep can occupy one more device of an engine. Its evaluation and its live runs whose engines share these
// devices count as occupying them.
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

// share reports whether two lists have a device in common.
func share(a, b []Device) bool {
	return slices.ContainsFunc(a, func(d Device) bool {
		return slices.ContainsFunc(b, func(e Device) bool { return e.Name == d.Name })
	})
}

// rest marks a sweep as inactive.
func (s *Sweeps) rest(saved sweep.Saved) error {
	saved.Mark.Active = false
	return s.store.SetMark(saved.ID, saved.Mark)
}

// evaluate starts the evaluation of a finished run. If a user or another sweep is already evaluating it, the loop uses those scores.
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
		if !theirs { // otherwise the next round is early enough
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

// board compares a plan with the listed runs.
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

// found adds to a run its scores, or the reason why its evaluation failed.
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

// Create stores a plan and activates it; an existing plan is continued.
func (s *Sweeps) Create(ctx context.Context, p sweep.Plan) (sweep.Status, error) {
	return s.CreateAt(ctx, p, model.Placement{})
}

// CreateAt is Create with a placement for the runs that have not started.
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

// Estimate returns how much work a plan is, and how long it takes at the speed of the listed runs.
func (s *Sweeps) Estimate(ctx context.Context, p sweep.Plan) (sweep.Estimate, error) {
	b, err := s.board(ctx, p)
	if err != nil {
		return sweep.Estimate{}, err
	}
	runs, err := s.o.Supervisor.List(ctx)
	return b.Estimate(runs), err
}

// List returns every sweep, newest first.
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

// Get returns one sweep.
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

// Stop starts no further runs, and stops the queued and running runs of the sweep, which save first.
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

// Resume activates a sweep again: stopped runs continue, and with retry failed runs continue from their newest
// checkpoint.
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

// Delete deletes an inactive sweep and keeps its runs.
func (s *Sweeps) Delete(_ context.Context, id string) error {
	saved, err := s.store.Get(id)
	if err != nil {
		return err
	}
	if saved.Active {
		return fmt.Errorf("sweep %s is running; stop it before deleting it: %w", id, model.ErrConflict)
	}
	return told(s.store.Delete(id))
}

package handlertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"slotscope/model"
	"slotscope/model/sweep"
)

// Scored is a fake service of runs with scores and of sweeps over them.
type Scored struct {
	*Runs
	scores  map[string]model.Scores
	Plans   map[string]sweep.Status
	Did     []string
	Damaged string // ID of the run whose scores cannot be read
}

func (f *Scored) Scores(_ context.Context, id string) (model.Scores, error) {
	s, ok := f.scores[id]
	if f.Damaged == id {
		return s, errors.New("scores.json is damaged: unexpected EOF")
	}
	if !ok {
		return s, fmt.Errorf("run %s has no scores: %w", id, model.ErrNotFound)
	}
	return s, nil
}

// Score stores a finished run with scores.
func (f *Scored) Score(id string, seed int64, infom, psnr float64, change func(*model.Config)) *Run {
	r := f.Put(id, model.Finished, 40)
	r.Config.Steps, r.Config.Seed = 40, seed
	if change != nil {
		change(&r.Config)
	}
	dci := model.DCIScore{D: 0.5, I: 0.9, C: 0.4}
	f.scores[id] = model.Scores{Step: 40, Images: 100, PSNR: psnr, Metrics: &model.Metrics{Discrete: true, InfoM: model.Score(infom), InfoE: 1, InfoC: 0.5, InfoEHeldOut: 0.4,
		DCI: model.DCI{OneHot: dci, SlotSum: dci, Slots: dci}},
		Noise: &model.Noise{Power: 1, Images: 10, Curve: []model.NoisePoint{{SNR: 20, PSNR: model.Interval{Value: model.Score(psnr)}}, {SNR: -20, PSNR: model.Interval{Value: 9}}}}}
	return r
}

// Sweeps is a fake sweep service; Did records its actions.
type Sweeps struct{ *Scored }

func (f Sweeps) CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	f.Placed = at
	if err := p.Validate(); err != nil {
		return sweep.Status{}, err
	}
	s := sweep.Status{Saved: sweep.Saved{ID: p.ID(), Plan: p, Mark: sweep.Mark{Active: true, Placement: at}}}
	f.Plans[s.ID] = s
	return f.Get(ctx, s.ID)
}

func (f Sweeps) Estimate(ctx context.Context, p sweep.Plan) (sweep.Estimate, error) {
	runs, err := f.Runs.List(ctx)
	return f.look(ctx, p).Estimate(runs), err
}

func (f Sweeps) List(ctx context.Context) ([]sweep.Status, error) {
	var all []sweep.Status
	for id := range f.Plans {
		s, err := f.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (f Sweeps) Get(ctx context.Context, id string) (sweep.Status, error) {
	s, ok := f.Plans[id]
	if !ok {
		return s, fmt.Errorf("sweep %q: %w", id, model.ErrNotFound)
	}
	s.Board = f.look(ctx, s.Plan)
	return s, nil
}

func (f Sweeps) look(ctx context.Context, p sweep.Plan) sweep.Board {
	return p.Look(func(id string) (sweep.Found, bool) {
		run, err := f.Runs.Get(ctx, id)
		if err != nil {
			return sweep.Found{}, false
		}
		found := sweep.Found{Run: run}
		if scores, ok := f.scores[id]; ok {
			found.Scores = &scores
		}
		return found, true
	})
}

func (f Sweeps) Stop(ctx context.Context, id string) error { return f.note(ctx, "stop", id) }

func (f Sweeps) Resume(ctx context.Context, id string, retry bool) error {
	return f.note(ctx, fmt.Sprintf("resume retry=%v", retry), id)
}

func (f Sweeps) Delete(ctx context.Context, id string) error { return f.note(ctx, "delete", id) }

func (f Sweeps) note(ctx context.Context, what, id string) error {
	f.Did = append(f.Did, what)
	s, err := f.Get(ctx, id)
	if err == nil {
		s.Active = what != "stop"
		f.Plans[id] = s
	}
	return err
}

// Pair stores two groups of two seeds with InfoM around 0.8 and 0.5, far apart.
func Pair(f *Scored) {
	bare := func(c *model.Config) { c.NoDenoiser = true }
	f.Score("a0", 0, 0.80, 30, nil)
	f.Score("a1", 1, 0.81, 31, nil)
	f.Score("b0", 0, 0.50, 30.2, bare)
	f.Score("b1", 1, 0.51, 30.9, bare)
}

// NewScored returns a service without runs.
func NewScored(t *testing.T) *Scored {
	t.Helper()
	return &Scored{Runs: NewRuns(t.TempDir()), scores: map[string]model.Scores{}, Plans: map[string]sweep.Status{}}
}

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"slotscope/model"
	"slotscope/model/sweep"
)

// scoredRuns are fake runs with scores, and one sweep over them.
type scoredRuns struct {
	*fakeRuns
	scores  map[string]model.Scores
	plans   map[string]sweep.Status
	did     []string
	damaged string // the run whose scores cannot be read
}

func (f *scoredRuns) Scores(_ context.Context, id string) (model.Scores, error) {
	s, ok := f.scores[id]
	if f.damaged == id {
		return s, errors.New("scores.json is damaged: unexpected EOF")
	}
	if !ok {
		return s, fmt.Errorf("run %s is not scored: %w", id, model.ErrNotFound)
	}
	return s, nil
}

// score puts a finished run with scores in.
func (f *scoredRuns) score(id string, seed int64, infom, psnr float64, change func(*model.Config)) *fakeRun {
	r := f.put(id, model.Finished, 40)
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

// sweeps is the service of the sweeps that a test puts in.
type sweeps struct{ *scoredRuns }

func (f sweeps) CreateAt(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	f.placed = at
	if err := p.Validate(); err != nil {
		return sweep.Status{}, err
	}
	s := sweep.Status{Saved: sweep.Saved{ID: p.ID(), Plan: p, Mark: sweep.Mark{Active: true, Placement: at}}}
	f.plans[s.ID] = s
	return f.Get(ctx, s.ID)
}

func (f sweeps) List(ctx context.Context) ([]sweep.Status, error) {
	var all []sweep.Status
	for id := range f.plans {
		s, err := f.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (f sweeps) Get(ctx context.Context, id string) (sweep.Status, error) {
	s, ok := f.plans[id]
	if !ok {
		return s, fmt.Errorf("sweep %q: %w", id, model.ErrNotFound)
	}
	s.Board = s.Plan.Look(func(id string) (sweep.Found, bool) {
		run, err := f.fakeRuns.Get(ctx, id)
		if err != nil {
			return sweep.Found{}, false
		}
		found := sweep.Found{Run: run}
		if scores, ok := f.scores[id]; ok {
			found.Scores = &scores
		}
		return found, true
	})
	return s, nil
}

func (f sweeps) Stop(ctx context.Context, id string) error { return f.note(ctx, "stop", id) }

func (f sweeps) Resume(ctx context.Context, id string, retry bool) error {
	return f.note(ctx, fmt.Sprintf("resume retry=%v", retry), id)
}

func (f sweeps) Delete(ctx context.Context, id string) error { return f.note(ctx, "delete", id) }

func (f sweeps) note(ctx context.Context, what, id string) error {
	f.did = append(f.did, what)
	s, err := f.Get(ctx, id)
	if err == nil {
		s.Active = what != "stop"
		f.plans[id] = s
	}
	return err
}

// pair is two groups of two seeds: InfoM 0.8 ± and 0.5 ±, far apart.
func pair(f *scoredRuns) {
	bare := func(c *model.Config) { c.NoDenoiser = true }
	f.score("a0", 0, 0.80, 30, nil)
	f.score("a1", 1, 0.81, 31, nil)
	f.score("b0", 0, 0.50, 30.2, bare)
	f.score("b1", 1, 0.51, 30.9, bare)
}

func fakeScored(t *testing.T) *scoredRuns {
	t.Helper()
	return &scoredRuns{fakeRuns: newFakeRuns(t.TempDir()), scores: map[string]model.Scores{}, plans: map[string]sweep.Status{}}
}

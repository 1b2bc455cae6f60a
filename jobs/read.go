package jobs

import (
	"context"
	"errors"

	"slotscope/model"
	"slotscope/model/folder"
)

// List is every run, newest first.
func (s *Supervisor) List(ctx context.Context) ([]model.Run, error) { return s.o.Store.Runs(ctx) }

// Get is one run.
func (s *Supervisor) Get(ctx context.Context, id string) (model.Run, error) {
	return s.o.Store.Run(ctx, id)
}

// Points answers a query of a run's stored series.
func (s *Supervisor) Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error) {
	return s.o.Store.Points(ctx, id, q)
}

// Walk hands over every stored sample of the named series up to a step, 0 for the last, in blocks.
func (s *Supervisor) Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error {
	return s.o.Store.Walk(ctx, id, names, until, take)
}

// open opens the folder of a listed run; model.Invalid is in the error's chain where it is damaged.
func (s *Supervisor) open(ctx context.Context, id string) (*folder.Folder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.opened(id)
}

func (s *Supervisor) opened(id string) (*folder.Folder, error) {
	f, err := s.o.Data.Open(id)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		err = model.Invalid{"": err.Error()}
	}
	return f, err
}

// DamagedPoints counts the lines of a run's points that are damaged: steps that were measured and are lost.
func (s *Supervisor) DamagedPoints(ctx context.Context, id string) (int, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s.damageMu.Lock()
	d := s.damage[id]
	s.damageMu.Unlock()
	if d, err = f.CountDamage(d); err != nil {
		return 0, err
	}
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	s.damage[id] = d
	return d.Lines, nil
}

// Log is the last lines of what the run's processes wrote.
func (s *Supervisor) Log(ctx context.Context, id string, lines int) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Log(lines)
}

// Sample is the file of the reconstructions at a step, 0 for the newest, and every step that has one, ascending.
// The path is empty where there is none yet.
func (s *Supervisor) Sample(ctx context.Context, id string, step int) (path string, steps []int, err error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	steps = f.Samples()
	if step == 0 {
		if len(steps) == 0 {
			return "", nil, nil
		}
		step = steps[len(steps)-1]
	}
	path, err = f.Sample(step)
	return path, steps, err
}

// Checkpoints lists the steps of a run's complete checkpoints, ascending.
func (s *Supervisor) Checkpoints(ctx context.Context, id string) ([]int, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Checkpoints(), nil
}

// CheckpointPath is the file of the checkpoint at a step.
func (s *Supervisor) CheckpointPath(ctx context.Context, id string, step int) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Checkpoint(step)
}

// Folder opens a run's folder; the caller closes it. model.ErrNotFound is in the error's chain of an unknown run.
func (s *Supervisor) Folder(ctx context.Context, id string) (*folder.Folder, error) {
	return s.open(ctx, id)
}

// NoiseSheet is the file of a run's images under noise; model.ErrNotFound is in the error's chain where there is none.
func (s *Supervisor) NoiseSheet(ctx context.Context, id string) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.NoiseSheet()
}

// EvaluationFile is the path of one of folder.EvaluationFiles; model.ErrNotFound is in the error's chain where there is none.
func (s *Supervisor) EvaluationFile(ctx context.Context, id, name string) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.EvaluationFile(name)
}

// Scores is what a run measured on its evaluation set; model.ErrNotFound is in the error's chain before it is scored.
func (s *Supervisor) Scores(ctx context.Context, id string) (model.Scores, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return model.Scores{}, err
	}
	defer f.Close()
	scores, err := f.Scores()
	return scores, told(err)
}

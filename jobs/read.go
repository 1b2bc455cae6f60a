package jobs

import (
	"context"
	"errors"

	"slotscope/model"
	"slotscope/model/folder"
)

// List returns every run, newest first.
func (s *Supervisor) List(ctx context.Context) ([]model.Run, error) { return s.o.Store.Runs(ctx) }

// Get returns one run.
func (s *Supervisor) Get(ctx context.Context, id string) (model.Run, error) {
	return s.o.Store.Run(ctx, id)
}

// Points returns the result of a query on the stored series of a run.
func (s *Supervisor) Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error) {
	return s.o.Store.Points(ctx, id, q)
}

// Walk calls take with every stored sample of the named series up to a step (0 for the last), in blocks.
func (s *Supervisor) Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error {
	return s.o.Store.Walk(ctx, id, names, until, take)
}

// open opens the folder of a listed run; the error wraps model.Invalid if the folder is damaged.
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

// DamagedPoints returns the number of damaged lines in a run's points, which are lost measurements.
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

// Log returns the last lines of the run's log.
func (s *Supervisor) Log(ctx context.Context, id string, lines int) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Log(lines)
}

// Sample returns the file of the reconstructions at a step, 0 for the newest, and all steps that have one, ascending.
// The path is empty if there is none yet.
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

// CheckpointPath returns the path of the checkpoint at a step.
func (s *Supervisor) CheckpointPath(ctx context.Context, id string, step int) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Checkpoint(step)
}

// Folder opens a run's folder; the caller closes it. The error wraps model.ErrNotFound for an unknown run.
func (s *Supervisor) Folder(ctx context.Context, id string) (*folder.Folder, error) {
	return s.open(ctx, id)
}

// NoiseSheet returns the path of a run's images under noise; the error wraps model.ErrNotFound if there is none.
func (s *Supervisor) NoiseSheet(ctx context.Context, id string) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.NoiseSheet()
}

// EvaluationFile returns the path of one of folder.EvaluationFiles; the error wraps model.ErrNotFound if there is none.
func (s *Supervisor) EvaluationFile(ctx context.Context, id, name string) (string, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.EvaluationFile(name)
}

// Scores returns a run's scores on its evaluation set; the error wraps model.ErrNotFound if there are none yet.
func (s *Supervisor) Scores(ctx context.Context, id string) (model.Scores, error) {
	f, err := s.open(ctx, id)
	if err != nil {
		return model.Scores{}, err
	}
	defer f.Close()
	scores, err := f.Scores()
	return scores, told(err)
}

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/sweep"
)

// mostTries is how often this shell submits a run that ends without a final state, so that a run that keeps being cancelled is not
// resubmitted forever.
const mostTries = 3

// onCluster trains the runs of a shell's sweep with SLURM.
type onCluster struct {
	slurm.Cluster
	tries map[string]int // submissions by this shell, by run
}

// alike are runs with the same SLURM options.
type alike struct {
	asks    model.Asks
	folders []*folder.Folder
}

// submit submits every run that can start or continue, as arrays of runs with the same options. theirs reports whether SLURM has any runs,
// including those that it already had, which are left alone.
func (s *shellSweep) submit(ctx context.Context, b sweep.Board) (theirs bool, err error) {
	byAsks := map[string]*alike{}
	defer func() {
		for _, a := range byAsks {
			for _, f := range a.folders {
				f.Close()
			}
		}
	}()
	for _, item := range b.Items {
		if ctx.Err() != nil || !s.submits(item) {
			continue
		}
		f, err := s.made(item)
		if err != nil {
			return false, err
		}
		asks, err := queue(ctx, f, s.cluster.Cluster)
		if err != nil {
			f.Close()
			if errors.Is(err, model.ErrConflict) { // SLURM or another process has it
				theirs = true
				continue
			}
			return false, err
		}
		s.cluster.tries[item.ID]++
		key := asks.Key()
		if byAsks[key] == nil {
			byAsks[key] = &alike{asks: asks}
		}
		byAsks[key].folders = append(byAsks[key].folders, f)
	}
	for _, a := range byAsks {
		for chunk := range slices.Chunk(a.folders, model.MostInArray) {
			if err := s.submitArray(ctx, chunk, a.asks); err != nil {
				return theirs, err
			}
			theirs = true
		}
	}
	return theirs, nil
}

// submits reports whether to submit a run to SLURM. Queueing refuses a run that another process works on.
func (s *shellSweep) submits(item sweep.Standing) bool {
	next := item.Next(s.worker(), false, s.cluster.tries[item.ID])
	return next == sweep.Begin || next == sweep.Continue
}

// made opens the folder of a run, or creates it if the run is only planned.
func (s *shellSweep) made(item sweep.Standing) (*folder.Folder, error) {
	if item.Stage == sweep.Planned {
		cfg := item.Config
		cfg.Engine = s.options.Engine
		f, err := folder.Create(s.root.RunDir(item.ID), cfg, item.Name)
		if err == nil || !errors.Is(err, model.ErrConflict) {
			return f, err
		}
	}
	return s.root.Open(item.ID)
}

func (s *shellSweep) submitArray(ctx context.Context, folders []*folder.Folder, asks model.Asks) error {
	var dirs []string
	for _, f := range folders {
		dirs = append(dirs, f.Dir())
	}
	ids, refused := s.cluster.Submit(context.WithoutCancel(ctx), dirs, asks)
	if refused != nil {
		problems := []error{refused}
		for _, f := range folders {
			problems = append(problems, fail(f, refused))
		}
		return errors.Join(problems...)
	}
	var problems []error
	for i, f := range folders {
		problems = append(problems, note(f, model.Job{Executor: model.Slurm, ID: ids[i], Submitted: time.Now().UTC().Truncate(time.Millisecond), Asks: asks}))
	}
	fmt.Fprintf(s.env.err, "submitted %d runs to SLURM; first job: %s\n", len(ids), ids[0])
	return errors.Join(problems...)
}

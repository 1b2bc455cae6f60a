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

// mostTries is how often this shell submits a run which ends without its last word, so that one that is cancelled again and again stays so.
const mostTries = 3

// onCluster has SLURM train what a shell's sweep trains.
type onCluster struct {
	slurm.Cluster
	tries map[string]int // submissions by this shell, by run
}

// alike are runs that ask the cluster for the same.
type alike struct {
	asks    model.Asks
	folders []*folder.Folder
}

// submit gives SLURM every run that can begin or go on, as arrays of those that ask for the same, and says whether there were any.
// Runs that SLURM still has are left to it, and count.
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
			if errors.Is(err, model.ErrConflict) { // SLURM has it, or somebody works on it
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

// submits says whether a run is to be given to SLURM. One that somebody works on is refused when it is queued.
func (s *shellSweep) submits(item sweep.Standing) bool {
	next := item.Next(s.worker(), false, s.cluster.tries[item.ID])
	return next == sweep.Begin || next == sweep.Continue
}

// made is the folder of a run, new where the run is only planned.
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
	fmt.Fprintf(s.env.err, "%d runs are SLURM jobs %s\n", len(ids), ids[0])
	return errors.Join(problems...)
}

package jobs

import (
	"fmt"

	"slotscope/model"
)

// Placements returns where this server can run training jobs.
func (s *Supervisor) Placements() model.Placements {
	p := model.Placements{Default: s.o.Executor, Asks: s.o.Asks, Lines: s.o.Lines}
	if p.Default == "" {
		p.Default = model.Local
	}
	if s.o.Cluster == nil {
		p.Missing = s.o.NoCluster
		if p.Missing == "" {
			p.Missing = "This server was started without SLURM."
		}
	}
	return p
}

// CheckPlacement returns a model.Invalid for a placement that is not possible, under "executor" or the name of the option.
func (s *Supervisor) CheckPlacement(at model.Placement) error {
	switch at.Executor {
	case "", model.Local:
		if len(at.Asks) > 0 {
			return model.Invalid{"slurm": fmt.Sprintf("SLURM options require executor %q", model.Slurm)}
		}
		return nil
	case model.Slurm:
	default:
		return model.Invalid{"executor": fmt.Sprintf("%q is not one of %s, %s", at.Executor, model.Local, model.Slurm)}
	}
	if p := s.Placements(); p.Missing != "" {
		return model.Invalid{"executor": p.Missing}
	}
	return s.o.Cluster.Check(at.Asks, s.o.Lines)
}

// goes reports whether a run with this placement goes to the cluster.
func (s *Supervisor) goes(at model.Placement) bool {
	return at.Executor == model.Slurm || at.Executor == "" && s.o.Executor == model.Slurm
}

// onCluster reports whether a run is queued or running on the cluster.
func (s *Supervisor) onCluster(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[id]
	return e != nil && s.clustered(e)
}

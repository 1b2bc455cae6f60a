package jobs

import (
	"context"
	"errors"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/measure/report"
)

// Overview lists every run with its last values, its scores and how its evaluation stands, newest first, by one query.
func (s *Supervisor) Overview(ctx context.Context) ([]model.Overview, error) {
	all, err := s.o.Store.Overviews(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		if e := s.runs[all[i].ID]; e != nil {
			all[i].Evaluation = e.eval.state.State
		}
	}
	return all, nil
}

// Mark changes a run's tags, star and place in the archive, whatever its state.
func (s *Supervisor) Mark(ctx context.Context, id string, marks model.Marks) error {
	return s.describe(ctx, id, func(m *folder.Meta) (err error) {
		m.Tags, m.Star, m.Archived, err = marks.Apply(m.Tags, m.Star, m.Archived)
		return err
	})
}

// keepScores stores the metrics of a run's scores.json where it is another than the one stored. Only the loop, and New before it, call it.
func (s *Supervisor) keepScores(ctx context.Context, f *folder.Folder, e *entry) {
	stamp := f.ScoresStamp()
	if stamp == e.scored {
		return
	}
	var values model.Values
	scores, err := f.Scores()
	switch {
	case err == nil:
		values = report.Values(scores)
	case !errors.Is(err, model.ErrNotFound):
		s.report(e, f.ID(), err) // the run is listed without scores
	}
	if err := s.o.Store.SaveScores(ctx, f.ID(), stamp, values); err != nil {
		s.report(e, f.ID(), err)
		return
	}
	e.scored = stamp
	s.watchers.notify(f.ID())
}

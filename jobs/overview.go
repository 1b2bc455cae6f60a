package jobs

import (
	"context"
	"errors"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/measure/report"
)

// Overview lists every run with its last values, scores and evaluation state, newest first, with one query.
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

// Mark changes the tags, star and archive flag of a run in any state.
func (s *Supervisor) Mark(ctx context.Context, id string, marks model.Marks) error {
	return s.describe(ctx, id, func(m *folder.Meta) (err error) {
		m.Tags, m.Star, m.Archived, err = marks.Apply(m.Tags, m.Star, m.Archived)
		return err
	})
}

// keepScores stores the metrics of a run's scores.json if the file has changed. Only the loop and New call it.
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

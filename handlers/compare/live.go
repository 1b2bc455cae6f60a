package compare

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/report"
	ui "slotscope/views/compare"
)

// socket sends the progress of the compared runs at once and after every change; the page then requests what it lacks.
func (h Reports) socket(w http.ResponseWriter, r *http.Request) {
	c, err := readChoice(r.URL.Query())
	if err == nil && c.empty() {
		err = model.Invalid{"runs": "missing; name runs (?runs=ID,ID) or a sweep (?sweep=ID)"}
	}
	if err == nil {
		_, _, err = h.standing(r.Context(), c)
	}
	if err != nil {
		handlers.Fail(w, r, err)
		return
	}
	var last ui.Standing
	handlers.SendNews(w, r, h.Runs.Watch, func(ctx context.Context) any {
		now, live, err := h.standing(ctx, c)
		if err != nil || now == last {
			if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrNotFound) {
				slog.ErrorContext(ctx, "following compared runs", "error", err)
			}
			return nil
		}
		last = now
		return struct {
			Type string `json:"type"`
			ui.Standing
			Live int `json:"live"`
		}{"standing", now, live}
	})
}

// standing returns the progress of the runs in a comparison and how many of them are queued or running.
func (h Reports) standing(ctx context.Context, c choice) (s ui.Standing, live int, err error) {
	points, scores := fnv.New64a(), fnv.New64a()
	add := func(r model.Run, scored string) {
		fmt.Fprintln(points, r.ID, r.Attempt, r.Step)
		fmt.Fprintln(scores, r.ID, r.State, scored)
		if !r.State.Ended() {
			live++
		}
	}
	runs, err := h.overviews(ctx, c)
	for _, o := range runs {
		add(o.Run, fmt.Sprint(o.Scores[report.StepKey], o.Scores["infom"]))
	}
	return ui.Standing{Points: fmt.Sprintf("%x", points.Sum64()), Scores: fmt.Sprintf("%x", scores.Sum64())}, live, err
}

// overviews returns the indexed runs of a comparison.
func (h Reports) overviews(ctx context.Context, c choice) ([]model.Overview, error) {
	ids := c.runs
	if c.sweep != "" {
		if h.Sweeps == nil {
			return nil, fmt.Errorf("sweep %q: %w", c.sweep, model.ErrNotFound)
		}
		s, err := h.Sweeps.Get(ctx, c.sweep)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, item := range s.Board.Items {
			if item.Run.ID != "" {
				ids = append(ids, item.ID)
			}
		}
	}
	index, ok := h.Runs.(lister)
	if !ok {
		return h.each(ctx, ids)
	}
	all, err := index.Overview(ctx)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(all))
	for i, o := range all {
		at[o.ID] = i
	}
	var out []model.Overview
	for _, id := range ids {
		i, ok := at[id]
		if !ok {
			return nil, fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// each gets runs one by one, without their scores.
func (h Reports) each(ctx context.Context, ids []string) (out []model.Overview, err error) {
	for _, id := range ids {
		run, err := h.Runs.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Overview{Run: run})
	}
	return out, nil
}

package run

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/verdict"
	ui "slotscope/views/run"
)

const (
	verdictColumns = 400 // spans of steps that the rules look at
	mostEarlier    = 20  // earlier runs that a run is compared with
)

// overview draws the part of the page above the charts; the page's script asks for it while the run works.
func (h Runs) overview(w http.ResponseWriter, r *http.Request) error {
	run, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	view, err := h.overviewOf(r.Context(), run)
	if err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.RunOverview(view))
}

// apiVerdict answers what the rules say of a run.
func (h Runs) apiVerdict(w http.ResponseWriter, r *http.Request) error {
	run, err := h.Service.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	all, err := h.Service.List(r.Context())
	if err != nil {
		return err
	}
	v, err := h.verdict(r.Context(), run, all)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, v)
}

func (h Runs) overviewOf(ctx context.Context, run model.Run) (view ui.Overview, err error) {
	view = ui.Overview{Run: run, Now: time.Now(), CanEvaluate: h.Evaluations != nil}
	if h.Evaluations != nil {
		view.Evaluation = h.Evaluations.State(run.ID)
	}
	all, err := h.Service.List(ctx)
	if err != nil {
		return view, err
	}
	view.Queue = queueOf(run, all)
	view.Earlier = earlierRuns(run, all)
	view.Verdict, err = h.verdict(ctx, run, all)
	return view, err
}

// verdict judges a run beside the earlier ones of its configuration.
func (h Runs) verdict(ctx context.Context, run model.Run, all []model.Run) (verdict.Verdict, error) {
	page, err := h.Service.Points(ctx, run.ID, model.PointQuery{Names: verdict.Names(), Columns: verdictColumns})
	if err != nil {
		return verdict.Verdict{}, err
	}
	p := verdict.Progress{Config: run.Config, State: run.State, Series: page.Series}
	for _, other := range earlierRuns(run, all) {
		if e := h.newestOf(ctx, other.ID, verdict.Compared(), page.Last); len(e) > 0 {
			p.Earlier = append(p.Earlier, e)
		}
	}
	return verdict.Judge(p), nil
}

// earlierRuns are the runs of the same configuration that were made before, newest first.
func earlierRuns(run model.Run, all []model.Run) (earlier []model.Run) {
	for _, other := range all {
		if other.ID != run.ID && other.Created.Before(run.Created) && verdict.SameConfiguration(run.Config, other.Config) {
			earlier = append(earlier, other)
		}
	}
	slices.SortFunc(earlier, func(a, b model.Run) int { return b.Created.Compare(a.Created) })
	return earlier[:min(mostEarlier, len(earlier))]
}

// newestOf are the newest values of series at or before a step; nil where they cannot be read, for a run may be deleted meanwhile.
func (h Runs) newestOf(ctx context.Context, id string, names []string, step int) map[string]float64 {
	if step == 0 {
		return nil
	}
	page, err := h.Service.Points(ctx, id, model.PointQuery{Names: names, Until: step, Columns: 1})
	if err != nil {
		return nil
	}
	values := map[string]float64{}
	for name, s := range page.Series {
		values[name] = s[len(s)-1].Value
	}
	return values
}

// queueOf is the place of a run among those that wait for this machine: the longest waiting is next. A run that waits for a cluster
// says so itself.
func queueOf(run model.Run, all []model.Run) (q ui.Queue) {
	if run.State != model.Queued || run.Reason != "" {
		return q
	}
	for _, other := range all {
		switch {
		case other.State == model.Queued && other.Reason == "":
			q.Length++
			if cmp.Or(other.Updated.Compare(run.Updated), cmp.Compare(other.ID, run.ID)) <= 0 {
				q.Position++
			}
		case other.State.Live():
			q.Working = append(q.Working, other)
		}
	}
	return q
}

package run

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/verdict"
	ui "slotscope/views/run"
)

// shownAlerts is the number of alerts on the page of a run.
const shownAlerts = 10

// overview renders the section above the charts; the page's script requests it while the run is active.
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

// apiVerdict writes the verdict on a run.
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
	if view.Alerts, err = h.Service.Alerts(ctx, model.AlertQuery{Run: run.ID, Limit: shownAlerts}); err != nil {
		return view, err
	}
	view.Queue = queueOf(run, all)
	view.Earlier = verdict.Earlier(run, all)
	view.Verdict, err = h.verdict(ctx, run, all)
	return view, err
}

// verdict judges a run against the earlier runs of its configuration.
func (h Runs) verdict(ctx context.Context, run model.Run, all []model.Run) (verdict.Verdict, error) {
	p, err := verdict.Read(ctx, h.Service, run, all)
	if err != nil {
		return verdict.Verdict{}, err
	}
	return verdict.Judge(p), nil
}

// queueOf returns the position of a run in this machine's queue; the run that has waited longest is next. Runs with a reason are excluded;
// they are waiting for something else, such as a cluster.
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

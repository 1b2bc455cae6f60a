package workbench

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/query"
	"slotscope/views"
	ui "slotscope/views/workbench"
)

// mostCompared is the maximum number of runs in a comparison.
const mostCompared = 200

// deed is an action on several runs.
type deed struct {
	done string // for the result, e.g. "3 runs tagged night"
	do   func(ctx context.Context, id string) error
}

// deedOf returns the requested action; tag and ask are its details.
func (h Workbench) deedOf(what, tag string, ask model.Evaluation) (deed, error) {
	yes, no := true, false
	mark := func(done string, m model.Marks) (deed, error) {
		return deed{done, func(ctx context.Context, id string) error { return h.Runs.Mark(ctx, id, m) }}, nil
	}
	switch what {
	case "stop":
		return deed{"stopping", h.Runs.Stop}, nil
	case "delete":
		return deed{"deleted", h.Runs.Delete}, nil
	case "star":
		return mark("starred", model.Marks{Star: &yes})
	case "unstar":
		return mark("unstarred", model.Marks{Star: &no})
	case "archive":
		return mark("archived", model.Marks{Archived: &yes})
	case "unarchive":
		return mark("unarchived", model.Marks{Archived: &no})
	case "tag", "untag":
		if err := model.CheckTag(strings.TrimSpace(tag)); err != nil {
			return deed{}, model.Invalid{"tag": err.(model.Invalid)["tags"]}
		}
		if tag = strings.TrimSpace(tag); what == "tag" {
			return mark("tagged "+tag, model.Marks{Add: []string{tag}})
		}
		return mark("untagged "+tag, model.Marks{Remove: []string{tag}})
	case "evaluate", "quick":
		if what == "quick" {
			ask.Effort = model.Quick
		}
		return h.evaluation(ask)
	}
	return deed{}, model.Invalid{"do": fmt.Sprintf("got %q; use compare, export, evaluate, quick, stop, tag, untag, star, unstar, archive, unarchive or delete", what)}
}

// evaluation returns the action that queues evaluations, except for runs that are already being evaluated.
func (h Workbench) evaluation(ask model.Evaluation) (deed, error) {
	if h.Evaluations == nil {
		return deed{}, fmt.Errorf("evaluations are disabled on this server: %w", model.ErrConflict)
	}
	ask.Effort = cmp.Or(ask.Effort, model.Full)
	if !slices.Contains(model.EffortNames(), ask.Effort) {
		return deed{}, model.Invalid{"effort": fmt.Sprintf("%q is not one of %s", ask.Effort, strings.Join(model.EffortNames(), ", "))}
	}
	return deed{"queued for evaluation", func(ctx context.Context, id string) error {
		err := h.Evaluations.Queue(ctx, id, ask)
		if err != nil && h.Evaluations.State(id).Under() {
			return nil
		}
		return err
	}}, nil
}

// selection is a choice of runs; unknown holds the IDs that no run has, e.g. because it was deleted.
type selection struct {
	runs    []model.Overview
	unknown []string
}

// selected returns the runs with the given IDs, or all runs that match the query.
func selected(runs []model.Overview, c *query.Catalogue, ids []string, all bool, text string) (chosen selection, err error) {
	if all {
		a := read(url.Values{"q": {text}}, c)
		if a.fault != "" {
			return chosen, model.Invalid{"q": a.fault}
		}
		chosen.runs = a.choose(runs)
	} else {
		at := make(map[string]int, len(runs))
		for i, r := range runs {
			at[r.ID] = i
		}
		for _, id := range split(ids) {
			if i, ok := at[id]; ok {
				chosen.runs = append(chosen.runs, runs[i])
			} else {
				chosen.unknown = append(chosen.unknown, id)
			}
		}
	}
	if len(chosen.runs)+len(chosen.unknown) == 0 {
		return chosen, model.Invalid{"run": "no runs selected; select at least one"}
	}
	return chosen, nil
}

// known returns the runs of a selection for actions on all of them together, which fail if a run is unknown.
func (s selection) known() ([]model.Overview, error) {
	if len(s.unknown) > 0 {
		return nil, unknownRun(s.unknown[0])
	}
	return s.runs, nil
}

func unknownRun(id string) error {
	return fmt.Errorf("unknown run %q; it may have been deleted: %w", id, model.ErrNotFound)
}

// bulk applies an action to the selected runs and redirects to the list, or lists the runs on which it failed.
func (h Workbench) bulk(w http.ResponseWriter, r *http.Request) error {
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	f := r.Form
	runs, err := h.Runs.Overview(r.Context())
	if err != nil {
		return err
	}
	chosen, err := selected(runs, query.Of(runs), f["run"], f.Get("all") != "", f.Get("q"))
	if err != nil {
		return err
	}
	back := backTo(f.Get("back"))
	what := f.Get("do")
	if what == "compare" || what == "export" || what == "delete" && f.Get("confirm") == "" {
		known, err := chosen.known()
		if err != nil {
			return err
		}
		return together(w, r, what, known, back)
	}
	d, err := h.deedOf(what, f.Get("tag"), model.Evaluation{Effort: f.Get("effort"), Replace: f.Get("replace") != ""})
	if err != nil {
		return err
	}
	done, failed := act(r.Context(), d, chosen)
	if len(failed) == 0 {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return nil
	}
	return handlers.DrawStatus(w, r, http.StatusConflict, ui.Outcome(ui.NewOutcome(d.done, done, failed, back)))
}

// together compares or exports runs, or asks whether to delete them.
func together(w http.ResponseWriter, r *http.Request, what string, chosen []model.Overview, back string) error {
	ids := strings.Join(idsOf(chosen), ",")
	switch {
	case what == "delete":
		return handlers.Draw(w, r, ui.Outcome(ui.Sure(runsOf(chosen), back)))
	case what == "export":
		q := url.Values{"run": {ids}, "cols": {backColumns(back)}}
		http.Redirect(w, r, "/api/runs.csv?"+q.Encode(), http.StatusSeeOther)
		return nil
	case len(chosen) > mostCompared:
		return model.Invalid{"run": fmt.Sprintf("%s runs are selected; a comparison has at most %d. Select fewer or group them", views.Count(len(chosen)), mostCompared)}
	}
	http.Redirect(w, r, "/compare?runs="+ids, http.StatusSeeOther)
	return nil
}

// act applies an action to each run and collects failures, among them the unknown runs.
func act(ctx context.Context, d deed, chosen selection) (done []model.Run, failed []ui.Failure) {
	for _, id := range chosen.unknown {
		failed = append(failed, ui.Failure{Run: model.Run{ID: id}, Why: handlers.SentenceOf(unknownRun(id))})
	}
	for _, run := range chosen.runs {
		err := ctx.Err()
		if err == nil {
			err = d.do(ctx, run.ID)
		}
		if err != nil {
			failed = append(failed, ui.Failure{Run: run.Run, Why: handlers.SentenceOf(err)})
			continue
		}
		done = append(done, run.Run)
	}
	return done, failed
}

func runsOf(runs []model.Overview) []model.Run {
	all := make([]model.Run, len(runs))
	for i, r := range runs {
		all[i] = r.Run
	}
	return all
}

func idsOf(runs []model.Overview) []string {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	return ids
}

// backTo returns the URL of the list or comparison that a form came from, and never another URL.
func backTo(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Path != "/runs" && u.Path != "/compare" {
		return "/runs"
	}
	if u.Path == "/compare" {
		return "/compare?" + u.Query().Encode()
	}
	return addressOf(u.Query()).URL()
}

func backColumns(back string) string {
	u, err := url.Parse(back)
	if err != nil {
		return ""
	}
	return strings.Join(split(u.Query()["cols"]), ",")
}

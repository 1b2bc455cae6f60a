package workbench

import (
	"fmt"
	"strings"

	"slotscope/model"
	"slotscope/views"
)

// CannotSort is the notice for an unknown order.
func CannotSort(by string) string {
	return fmt.Sprintf("Cannot sort by %q: unknown column. Showing the newest runs first.", by)
}

// NoSeries is the notice for an unknown column.
func NoSeries(name string) string {
	return fmt.Sprintf("No run has %q. It may be a series that was not measured yet.", name)
}

// CannotGroup is the notice for an unknown group.
func CannotGroup(by string) string {
	return fmt.Sprintf("Cannot group by %q. Choose config, a text column or a hyperparameter.", by)
}

// Starts of the sentence that says why a view was not changed.
const (
	ViewNotDeleted = "The view was not deleted"
	ViewNotSaved   = "The view was not saved"
)

// GroupTitles are the headings of the groups of columns, by their names in queries.
var GroupTitles = map[string]string{"run": "Run", "hyperparameter": "Hyperparameters", "score": "Evaluation scores", "last value": "Latest training values"}

// EvaluationSaid returns what a row says about an evaluation and its state; empty if none is queued or running and none failed.
func EvaluationSaid(e model.Evaluation) (string, model.State) {
	switch {
	case e.State == model.Queued:
		return "evaluation queued", e.State
	case e.Under():
		return "evaluating", e.State
	case e.Failure() != "":
		return "evaluation failed", e.State
	}
	return "", ""
}

// NewOutcome is the result of an action on several runs, of which some failed; did is what was done, e.g. "tagged night".
func NewOutcome(did string, done []model.Run, failed []Failure, back string) OutcomeView {
	return OutcomeView{Title: fmt.Sprintf("%s %s, %s failed", views.Plural(len(done), "run", "runs"), did, views.Count(len(failed))), Failed: failed, Done: done, Back: back}
}

// Sure asks for confirmation before deleting runs.
func Sure(chosen []model.Run, back string) OutcomeView {
	live, ids := 0, make([]string, len(chosen))
	for i, run := range chosen {
		if ids[i] = run.ID; !run.State.Ended() {
			live++
		}
	}
	v := OutcomeView{Title: "Delete " + views.Plural(len(chosen), "run", "runs") + "?", Back: back, Done: chosen,
		Said: "This permanently deletes folders, checkpoints and points. To only hide runs from the list, archive them.",
		Confirm: &Confirm{Button: "Delete " + views.Plural(len(chosen), "run", "runs"), Fields: [][2]string{
			{"do", "delete"}, {"confirm", "yes"}, {"run", strings.Join(ids, ",")}, {"back", back}}}}
	if live > 0 {
		v.Said += fmt.Sprintf(" %s not ended and will be kept; stop them first.", views.Plural(live, "run has", "runs have"))
	}
	return v
}

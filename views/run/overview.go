package run

import (
	"fmt"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/verdict"
	"slotscope/views"
)

// Overview is the section above the charts that changes while the run is active: verdict, queue position, evaluation and alerts.
type Overview struct {
	Run         model.Run
	Verdict     verdict.Verdict
	Queue       Queue
	Evaluation  model.Evaluation
	CanEvaluate bool // evaluations can be shown and started
	Now         time.Time
	Earlier     []model.Run   // with the same configuration, newest first
	Alerts      []model.Alert // newest first
}

// Queue is the position of a run in this machine's queue; the zero value means the run is not in it.
type Queue struct {
	Position, Length int         // 1 is next
	Working          []model.Run // runs that occupy the machine
}

// says formats the queue position and what the run is waiting for; empty if the run is not queued.
func (q Queue) says() string {
	if q.Position == 0 {
		return ""
	}
	text := fmt.Sprintf("Position %s of %s in the queue.", views.Count(q.Position), views.Count(q.Length))
	if q.Position == 1 {
		text = "Next in the queue."
	}
	var names []string
	for _, r := range q.Working {
		name := views.RunName(r)
		if left := views.TimeLeft(r); left != "–" {
			name += " (" + left + " left)"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return text + " Waiting for a free device."
	}
	return text + " Waiting for " + strings.Join(names, ", ") + "."
}

// why returns the finding of the deciding rule as a sentence.
func (o Overview) why() string {
	if o.Verdict.Why == "" {
		return ""
	}
	return strings.ToUpper(o.Verdict.Why[:1]) + o.Verdict.Why[1:] + "."
}

// facts joins the verdict's facts.
func (o Overview) facts() string { return strings.Join(o.Verdict.Facts, "; ") }

// tone returns the CSS class of the verdict.
func (o Overview) tone() string {
	switch {
	case o.Verdict.Kind.Bad():
		return "bad"
	case o.Verdict.Kind == verdict.Behind || o.Verdict.Kind == verdict.Plateau:
		return "warn"
	case o.Verdict.Kind == verdict.Healthy:
		return "well"
	}
	return ""
}

// evaluationText describes the state of the evaluation; empty if the run has no checkpoint.
func (o Overview) evaluationText() string {
	e := o.Evaluation
	switch {
	case e.State == model.Queued:
		return "Evaluation queued: starts when the current training or evaluation ends."
	case e.State.Live():
		text := "Evaluating for " + views.Duration(o.Now.Sub(e.Started).Seconds())
		if e.Said != "" {
			text += ": " + e.Said
		}
		return text + "."
	case e.Failure() != "":
		return "The evaluation failed: " + e.Failure()
	case e.State == model.Finished:
		return "Evaluated " + views.Ago(o.Now, e.Ended) + "."
	case e.State == model.Stopped:
		return "You cancelled the evaluation " + views.Ago(o.Now, e.Ended) + "."
	case o.Run.Checkpoint > 0:
		return "Not evaluated yet."
	}
	return ""
}

// Trouble is the error of a rejected dialog; the dialog opens again with the user's input.
type Trouble struct {
	Dialog string // "resume", "edit" or "delete"
	Text   string // a sentence
	Steps  string // input of the resume dialog
	Name   *string
	Notes  *string
}

// in returns the error text if it belongs to the given dialog; otherwise empty.
func (t Trouble) in(dialog string) string {
	if t.Dialog != dialog {
		return ""
	}
	return t.Text
}

func orText(typed *string, stored string) string {
	if typed != nil {
		return *typed
	}
	return stored
}

// elapsed formats the time since the run first started, including pauses between resumes.
func (v RunView) elapsed() string {
	if v.Run.Started.IsZero() {
		return "–"
	}
	end := v.Now
	if v.Run.State.Ended() && !v.Run.Ended.IsZero() {
		end = v.Run.Ended
	}
	return views.Duration(max(0, end.Sub(v.Run.Started).Seconds()))
}

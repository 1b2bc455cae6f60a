package run

import (
	"fmt"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/verdict"
	"slotscope/views"
)

// Overview is what stands above the charts and changes while the run works: how it goes, what it waits for, its evaluation.
type Overview struct {
	Run         model.Run
	Verdict     verdict.Verdict
	Queue       Queue
	Evaluation  model.Evaluation
	CanEvaluate bool // evaluations can be seen and started from here
	Now         time.Time
	Earlier     []model.Run   // of the same configuration, newest first
	Alerts      []model.Alert // newest first
}

// Queue is the place of a queued run on this machine; the zero Queue for runs that do not wait here.
type Queue struct {
	Position, Length int         // 1 is next
	Working          []model.Run // that occupy the machine
}

// says writes the place in the queue and what the run waits for.
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
		return text + " Waits for a free device."
	}
	return text + " Waits for " + strings.Join(names, ", ") + "."
}

// why is what the deciding rule found, as a sentence.
func (o Overview) why() string {
	if o.Verdict.Why == "" {
		return ""
	}
	return strings.ToUpper(o.Verdict.Why[:1]) + o.Verdict.Why[1:] + "."
}

// facts are the verdict's, one after the other.
func (o Overview) facts() string { return strings.Join(o.Verdict.Facts, "; ") }

// tone is the look of the verdict.
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

// evaluationText is where the evaluation stands.
func (o Overview) evaluationText() string {
	e := o.Evaluation
	switch {
	case e.State == model.Queued:
		return "Evaluation queued: it starts when the training or evaluation that computes now has ended."
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

// Trouble is why something that a visitor asked for in a dialog was refused; the dialog opens again with what was typed.
type Trouble struct {
	Dialog string // "resume", "edit" or "delete"
	Text   string // a sentence
	Steps  string // typed into the resume dialog
	Name   *string
	Notes  *string
}

// in is the sentence for a dialog, empty where another was refused.
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

// elapsed is how long the run has been under way since its first process, pauses between resumes included.
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

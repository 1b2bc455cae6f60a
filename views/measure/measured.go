package measure

import (
	"fmt"
	"image"
	"time"

	"slotscope/model"
	"slotscope/model/measure/figure"
	"slotscope/views"
)

// Measured is the data of the page of a run's evaluation.
type Measured struct {
	Run    model.Run
	Scores *model.Scores       // nil before the first
	Values map[string][]string // names of each factor's values; empty if the dataset is not available
	Series map[string][]model.Sample
	Damage string      // which part of the evaluation cannot be read, a sentence; empty if none
	Called Called      // user-given names
	Noisy  image.Image // images under noise, one row each; nil if none
}

// Called holds the user-given names of a run's slots, and of codes by slot.
type Called struct {
	Slots map[int]string
	Codes map[int]map[int]string
}

// NewMeasure returns the view of a run's evaluation; canStart gives it buttons that start an evaluation.
func NewMeasure(m Measured, state model.Evaluation, canStart bool) MeasureView {
	v := MeasureView{Run: m.Run, Now: time.Now(), State: state, CanStart: canStart, Command: "slotscope eval " + m.Run.ID}
	v.Why, v.Damage = m.noCheckpoint(), m.Damage
	v.Empty = m.empty(v.Why)
	if m.Scores != nil {
		v.Measured, v.Stale, v.Replaces = m.said(), m.stale(), m.replaces()
		v.NoFactors, v.Groups = m.Scores.NoFactors, m.groups()
		v.HeldOut = m.partsCompared()
		v.HRR, v.Owners, v.Missing = m.faithfulness(), m.owners(), m.missing()
	}
	v.Parts = m.parts()
	v.Names = m.names()
	return v
}

// noCheckpoint explains why the run cannot be evaluated, and what to do; "" if it has a checkpoint.
func (m Measured) noCheckpoint() string {
	switch {
	case m.Run.Checkpoint > 0:
		return ""
	case m.Run.Config.Model == model.External:
		return "This run has no checkpoint: it was logged by another program. Adopt its model to evaluate it."
	case m.Run.State.Ended():
		return "This run has no checkpoint to evaluate: it ended before it saved one, or its files were removed. Resume the run to train it again."
	}
	return "This run has no checkpoint yet. You can evaluate it after it saves one."
}

// empty explains why there are no scores beyond PSNR; "" if there are.
func (m Measured) empty(why string) string {
	switch {
	case m.Scores != nil && m.Scores.Evaluated():
		return ""
	case why != "":
		return why
	case m.Damage != "":
		return "Evaluate the run again to replace the unreadable scores; it takes minutes."
	case m.Run.State.Ended():
		return "Not evaluated yet. An evaluation encodes random images of the dataset, relates codes to factors, and tests noise and swaps. It takes minutes; the scores are stored with the run."
	}
	return "Still training and not evaluated yet. An evaluation measures the newest checkpoint; it takes minutes and slows down training."
}

// replaces says what a quick evaluation would replace; "" if there are no full scores.
func (m Measured) replaces() string {
	if !m.Scores.Full() {
		return ""
	}
	return fmt.Sprintf("A quick evaluation measures at most 2,000 images and replaces these full scores of %s images.", views.Count(m.Scores.Images))
}

// measuredHow is the start of the sentence that describes an evaluation.
func measuredHow(effort string) string {
	if effort == model.Quick {
		return "Quick evaluation"
	}
	return "Measured"
}

// figureOf draws figures for the page; none for those that the run has no data for.
func (m Measured) figureOf(names ...string) []views.FigureView {
	var all []views.FigureView
	for _, name := range names {
		if f, ok := figures[name](m); ok {
			all = append(all, views.FigureOf(f, "/runs/"+m.Run.ID+"/measure", nil))
		}
	}
	return all
}

// Figure draws one figure of the page by name; drawn is false if the run has no data for it, known if there is no such figure.
func (m Measured) Figure(name string) (f figure.Figure, drawn, known bool) {
	draw, known := figures[name]
	if !known {
		return f, false, false
	}
	f, drawn = draw(m)
	return f, drawn, true
}

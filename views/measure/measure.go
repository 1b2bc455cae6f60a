// Package measure renders the results of a run's evaluation.
package measure

import (
	"time"

	"slotscope/model"
	"slotscope/views"
)

// MeasureView is the view of a run's evaluation.
type MeasureView struct {
	Run      model.Run
	Now      time.Time
	State    model.Evaluation
	CanStart bool   // the page has buttons that start an evaluation
	Why      string // why the run cannot be evaluated and what to do, sentences; empty if it can
	Replaces string // which full scores a quick evaluation would replace, a sentence; empty if none
	Command  string // the equivalent command line
	Measured string // when and on what the run was evaluated, a sentence; empty before
	Stale    string // what changed since, a sentence; empty if nothing
	Damage   string // which scores cannot be read, a sentence; empty if none
	Empty    string // why there are no scores, a sentence; empty if there are any
	Groups   []MeasuredGroup
	Parts    []MeasurePart
	Names    []SlotNames

	HRR     *HRRPanel  // nil for baselines
	Owners  []OwnerRow // what each slot is named after; empty if not measured
	Missing string     // metrics that these scores lack, a sentence; empty if none

	NoFactors string         // why slots are not compared with factors, a sentence; empty if they are
	HeldOut   *PartsCompared // nil for a run trained on a whole dataset
}

// PartsCompared compares the scores of the held-out part of a dataset with those of the training part.
type PartsCompared struct {
	Trained, HeldOut string // names of the parts
	NoFactors        string // as in MeasureView, for the held-out part
	Says             []string
	Rows             []ComparedScore
	Figures          []views.FigureView
}

// ComparedScore is one score on both parts; Difference is empty if a value is missing.
type ComparedScore struct {
	Name, Trained, HeldOut, Difference, Note string
}

// MeasuredGroup is a titled group of scores.
type MeasuredGroup struct {
	Title string
	Rows  []MeasuredScore
}

// MeasuredScore is one score and its meaning.
type MeasuredScore struct {
	Name, Value, Interval string
	Main                  bool // one of the main scores, shown highlighted
	Note                  string
}

// HRRPanel compares a trained model with a true holographic reduced representation.
type HRRPanel struct {
	Says []string
	Rows []HRRFigure // empty if not measured
}

// HRRFigure is one figure of the model and of a true HRR.
type HRRFigure struct {
	Name, Value, True, Note string
}

// OwnerRow is a slot with the factors it is named after.
type OwnerRow struct {
	Slot   int
	Name   string
	Called string // user-given name; empty if none
	Shares []views.FactorShare
	Text   string // the shares as text
}

// MeasurePart is a section that answers one question with figures.
type MeasurePart struct {
	ID, Question string
	Says         []string
	Figures      []views.FigureView
}

// SlotNames lists the meanings of one slot's codes.
type SlotNames struct {
	Slot   int
	Called string // user-given name
	Factor string // empty if the slot carries none
	Codes  []NamedCode
	More   int // number of codes not listed
}

// NamedCode is a code and the factor value it represents.
type NamedCode struct {
	Code   int
	Called string // user-given name
	Value  string
	Share  string // share of its images with the value
	Count  int
}

// evaluating is the label of an evaluation that is not queued.
func (v MeasureView) evaluating() string {
	if v.State.State == model.Stopping {
		return "stopping"
	}
	return "measuring"
}

// cancelText is the label of the cancel button; pressed again while stopping, it kills the process.
func (v MeasureView) cancelText() string {
	if v.State.State == model.Stopping {
		return "Force stop"
	}
	return "Cancel"
}

// live reports whether the page updates itself.
func (v MeasureView) live() bool { return v.State.Under() }

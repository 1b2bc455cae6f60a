// Package measure draws what an evaluation found in a run.
package measure

import (
	"time"

	"slotscope/model"
	"slotscope/views"
)

// MeasureView is what an evaluation found in a run.
type MeasureView struct {
	Run      model.Run
	Now      time.Time
	State    model.Evaluation
	CanStart bool   // an evaluation can be started from the page
	Why      string // why it cannot, as a sentence; empty otherwise
	Command  string // the same in a terminal
	Measured string // when and on what, as a sentence; empty before there are scores
	Stale    string // what has happened since; empty otherwise
	Damage   string // what cannot be read of them, as a sentence; empty otherwise
	Empty    string // what there is instead of scores; empty where there are any
	Groups   []MeasuredGroup
	Parts    []MeasurePart
	Names    []SlotNames

	HRR     *HRRPanel  // nil for baselines
	Owners  []OwnerRow // what each slot is named after; empty where that was not measured
	Missing string     // what this program measures and these scores lack, as a sentence; empty where nothing is

	NoFactors string         // why slots are not held against factors, as a sentence; empty where they are
	HeldOut   *PartsCompared // nil for a run that was trained on a whole dataset
}

// PartsCompared is what was measured on the part of a dataset that training left out, beside the same of its own part.
type PartsCompared struct {
	Trained, HeldOut string // names of the parts
	NoFactors        string // as in MeasureView, of the part left out
	Says             []string
	Rows             []ComparedScore
	Figures          []views.FigureView
}

// ComparedScore is one score on both parts; Difference is empty where there is none.
type ComparedScore struct {
	Name, Trained, HeldOut, Difference, Note string
}

// MeasuredGroup are scores of one kind.
type MeasuredGroup struct {
	Title string
	Rows  []MeasuredScore
}

// MeasuredScore is one number and what it says.
type MeasuredScore struct {
	Name, Value, Interval string
	Main                  bool // of those that are compared
	Note                  string
}

// HRRPanel says whether a trained model is a holographic reduced representation.
type HRRPanel struct {
	Says []string
	Rows []HRRFigure // empty where it was not measured
}

// HRRFigure is one figure beside what a true HRR has.
type HRRFigure struct {
	Name, Value, True, Note string
}

// OwnerRow is what a slot is named after.
type OwnerRow struct {
	Slot   int
	Name   string
	Called string // by a person; empty where nobody gave a name
	Shares []views.FactorShare
	Text   string // the shares in words
}

// MeasurePart answers one question with figures.
type MeasurePart struct {
	ID, Question string
	Says         []string
	Figures      []views.FigureView
}

// SlotNames are what the codes of one slot stand for.
type SlotNames struct {
	Slot   int
	Called string // by a person
	Factor string // empty where the slot tells of none
	Codes  []NamedCode
	More   int // codes that are not listed
}

// NamedCode is a code with the value it stands for.
type NamedCode struct {
	Code   int
	Called string // by a person
	Value  string
	Share  string // of its images that show the value
	Count  int
}

// evaluating names what an evaluation that is not queued does.
func (v MeasureView) evaluating() string {
	if v.State.State == model.Stopping {
		return "stopping"
	}
	return "measuring"
}

// cancelText is what the button to end an evaluation says: a second time it ends the process by force.
func (v MeasureView) cancelText() string {
	if v.State.State == model.Stopping {
		return "End by force"
	}
	return "Cancel"
}

// live says whether the page changes by itself.
func (v MeasureView) live() bool { return v.State.Under() }

// Package theory draws the page of capacity, noise and correlation.
package theory

import (
	"slotscope/views"
)

// TheoryView is the theory at chosen sizes.
type TheoryView struct {
	Entries []TheoryEntry
	Rates   []TheoryLink // what images of a dataset need, as values of R
	Sources []TheorySource
	Parts   []TheoryPart
	Points  []TheoryPoint
}

// TheoryEntry is one number of the form.
type TheoryEntry struct {
	Name, Label, Symbol, Unit string
	Value, Min, Max, Step     string
	Log                       bool // the slider moves by factors
	Problem                   string
}

// TheoryLink is an address with its name.
type TheoryLink struct {
	Text, Href string
	Here       bool
}

// TheorySource is a checkpoint that can be shown beside the curves.
type TheorySource struct {
	Key, Text string
	Chosen    bool
}

// TheoryPart answers one question.
type TheoryPart struct {
	ID, Question string
	Formulas     []Formula
	Says         []string // sentences
	Facts        []TheoryFact
	Figures      []views.FigureView
}

// Formula is one of the equations that this package holds, by name, and its place in the paper.
type Formula struct{ Name, Place string }

// TheoryFact is a number with its meaning.
type TheoryFact struct {
	Term, Value string
	Good, Bad   bool
}

// TheoryPoint is a checkpoint's row: cells under TheoryColumns, or why there are none.
type TheoryPoint struct {
	Label string
	Href  string // the page at the checkpoint's sizes
	Cells []string
	Why   string
}

// TheoryColumns head the table of checkpoints.
var TheoryColumns = []string{"m", "d", "k", "bound, nats", "H(c₁…c_m), nats", "redundancy, nats", "SNR · m from z", "SNR · m from ẑ", "‖Σᵢⱼ‖_F² · d", "‖Σᵢⱼ‖_op · d", "total correlation, nats", "its bound, nats"}

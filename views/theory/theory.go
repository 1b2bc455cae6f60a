// Package theory renders the theory page: capacity, noise and correlation.
package theory

import (
	"slotscope/views"
)

// TheoryView is the view of the theory page at the chosen sizes.
type TheoryView struct {
	Entries []TheoryEntry
	Rates   []TheoryLink // rates R that the images of each dataset need
	Sources []TheorySource
	Parts   []TheoryPart
	Points  []TheoryPoint
}

// TheoryEntry is one numeric field of the form.
type TheoryEntry struct {
	Name, Label, Symbol, Unit string
	Value, Min, Max, Step     string
	Log                       bool // the slider is logarithmic
	Problem                   string
}

// TheoryLink is a link; Here marks the current one.
type TheoryLink struct {
	Text, Href string
	Here       bool
}

// TheorySource is a checkpoint that can be added to the curves.
type TheorySource struct {
	Key, Text string
	Chosen    bool
}

// TheoryPart is a section of the page that answers one question.
type TheoryPart struct {
	ID, Question string
	Formulas     []Formula
	Says         []string // explanatory sentences
	Facts        []TheoryFact
	Figures      []views.FigureView
}

// Formula is an equation of this package, by name, and its place in the paper.
type Formula struct{ Name, Place string }

// TheoryFact is a labelled value.
type TheoryFact struct {
	Term, Value string
	Good, Bad   bool
}

// TheoryPoint is a checkpoint's table row: cells for TheoryColumns, and in Why the reason if some are missing.
type TheoryPoint struct {
	Label string
	Href  string // this page at the checkpoint's sizes
	Cells []string
	Why   string
}

// TheoryColumns are the headings of the checkpoint table.
var TheoryColumns = []string{"m", "d", "k", "bound, nats", "H(c₁…c_m), nats", "redundancy, nats", "SNR · m from z", "SNR · m from ẑ", "‖Σᵢⱼ‖_F² · d", "‖Σᵢⱼ‖_op · d", "total correlation, nats", "its bound, nats"}

// Package sweep renders the sweep pages.
package sweep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/sweep"
	"slotscope/views"
	"slotscope/views/compare"
)

// SweepsView is the list of sweeps.
type SweepsView struct{ Rows []SweepHead }

// SweepHead is the state and progress of a sweep.
type SweepHead struct {
	ID, Name, Preset                       string
	Created                                time.Time
	Active, Over                           bool
	Worker                                 string // command-line process that runs it; empty if none
	Evaluating, Problem                    string
	Done, Failed, Live, Halted, Out, Total int // runs
	Steps, AllSteps                        int
	Rate                                   float64 // images per second now
	Left                                   float64 // seconds
	LeftKnown                              bool
}

// SweepView is the page of one sweep.
type SweepView struct {
	SweepHead
	Plan     string // JSON
	Problems []string
	Waiting  int // runs that wait for a hyperparameter to be selected
	Varies   bool
	Parts    []SweepPart
	Results  []compare.SectionView
}

// SweepPart is one part with its runs.
type SweepPart struct {
	Name, About string
	Items       []SweepItem
}

// SweepItem is one run of a sweep.
type SweepItem struct {
	ID, Name, Stage string
	Run             model.Run
	Exists          bool
	Choosing        bool // only used to select a hyperparameter
	Steps           int
	Scores          []string // InfoM, PSNR in dB
	Problem         string
}

// SweepFormView is the form of a new sweep.
type SweepFormView struct {
	Kind, Name, Preset, Steps, Seeds, Set string
	Vary                                  []VaryLine
	Search, Draws, DrawSeed               string
	Race                                  string // seeds before the first round of the race; empty if none
	Presets                               []string
	Models, Datasets, Parts, FieldNames   []Choosable
	FieldParts                            []Choosable // parts of the field's protocol
	Bad                                   model.Invalid
	Place                                 views.PlaceView
	Estimate                              *sweep.Estimate // nil unless requested
}

// VaryLine is a hyperparameter to vary.
type VaryLine struct{ Field, Values, Problem string }

// Choosable is one choice of a list.
type Choosable struct {
	Key, Label string
	Chosen     bool
}

// state returns the sweep's state as a run state, for the chip's colour.
func (h SweepHead) state() string {
	switch {
	case h.Over && h.Failed > 0:
		return "failed"
	case h.Over:
		return "finished"
	case h.Active, h.Worker != "":
		return "running"
	}
	return "stopped"
}

// word returns the sweep's state as shown to the user.
func (h SweepHead) word() string {
	switch {
	case h.Over && h.Failed > 0:
		return fmt.Sprintf("finished, %d failed", h.Failed)
	case h.Over:
		return "finished"
	case h.Active, h.Worker != "":
		return "running"
	}
	return "stopped"
}

// work describes an estimate.
func work(e sweep.Estimate) string {
	text := "Up to " + views.Plural(e.Runs, "run", "runs")
	if e.Done > 0 {
		text += ", " + views.Count(e.Done) + " already done"
	}
	text += "; " + views.Plural(e.Steps, "step", "steps") + " left. "
	if !e.Known {
		return text + "Duration unknown: no run of this preset has been timed on this machine."
	}
	return text + "About " + views.Duration(e.Seconds) + " of training, one run after another, at the speed of " + e.From + "; excludes evaluation."
}

func (h SweepHead) left() string {
	switch {
	case h.Over:
		return "–"
	case !h.LeftKnown:
		return "unknown until a run starts"
	}
	return views.Duration(h.Left)
}

// now returns what the sweep is doing.
func (h SweepHead) now() string {
	switch {
	case h.Over:
		return ""
	case h.Evaluating != "":
		return "evaluating " + h.Evaluating
	case h.Worker != "":
		return "running from the command line: " + h.Worker
	case h.Live > 0:
		return views.Plural(h.Live, "run queued or running", "runs queued or running")
	}
	return ""
}

// stageState returns the stage as a run state, for the chip's colour.
func (i SweepItem) stageState() string {
	switch i.Stage {
	case "planned":
		return "planned"
	case "done":
		return "finished"
	case "to evaluate":
		return "queued"
	case "failed":
		return "failed"
	case "out":
		return "stopped"
	}
	return string(i.Run.State)
}

func (i SweepItem) stageWord() string {
	if i.Stage == "live" || i.Stage == "halted" {
		return string(i.Run.State)
	}
	return i.Stage
}

func (v SweepView) partTitle(p SweepPart) string {
	done := 0
	for _, i := range p.Items {
		if i.Stage == "done" {
			done++
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s · %d of %d runs done", p.Name, done, len(p.Items)))
}

func (i SweepItem) score(n int) string {
	if n < len(i.Scores) {
		return i.Scores[n]
	}
	return "–"
}

// otherProblems lists the keys of problems that no field of the form shows.
func (v SweepFormView) otherProblems() []string {
	var keys []string
	for key := range v.Bad {
		switch key {
		case "executor", "partition", "account", "time", "gpus", "line":
			if v.Place.Offered() {
				continue
			}
			keys = append(keys, key)
		case "", "steps", "seeds", "datasets", "parts", "field-parts", "name", "models", "set", "draws", "draw-seed", "race":
		default:
			if strings.HasPrefix(key, "vary[") {
				continue
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// PartsOf returns the parts of the paper's study, of which some are chosen.
func PartsOf(chosen []string) []Choosable {
	return choices(chosen, [][2]string{{"main", "Main results: every model, after selecting its hyperparameter"}, {"grid", "Latent dimension and codebook size"}, {"ablations", "Ablations"}, {"ratio", "Number of slots and dimension, together"}})
}

// FieldPartsOf returns the parts of the comparison with the literature, of which some are chosen.
func FieldPartsOf(chosen []string) []Choosable {
	return choices(chosen, [][2]string{{"models", "Every model, trained as in its source"}, {"tuned", "Every model, after selecting its hyperparameter"}, {"splits", "Splits: combinations held out of training"}, {"ratio", "Number of slots and dimension, together"}})
}

func choices(chosen []string, all [][2]string) (out []Choosable) {
	for _, c := range all {
		out = append(out, Choosable{Key: c[0], Label: c[1], Chosen: slices.Contains(chosen, c[0])})
	}
	return out
}

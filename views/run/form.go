package run

import (
	"math"
	"strconv"

	"slotscope/model"
	"slotscope/views"
)

// RunFormView is the form that starts a run.
type RunFormView struct {
	Place     views.PlaceView
	Groups    []FormGroup
	Name      string
	NameError string
	Whole     string  // error of the form as a whole; empty if none
	Problems  int     // number of invalid fields
	Rate      float64 // images per second of the newest comparable run; 0 if none was measured
	RateFrom  string  // that run's name

	Parameters int // number of trainable parameters; 0 if the entries are invalid
	Networks   int // how many of them are in encoder and decoder
}

// FormGroup is a heading and its fields; a folded group starts collapsed.
type FormGroup struct {
	Key    string
	Title  string
	About  string
	Folded bool
	Fields []FormField
}

// FormField is one field of the form: its definition, value as entered, default and error.
type FormField struct {
	model.Field
	Value   string
	Default string
	Source  string // where the default comes from
	Error   string // a sentence; empty if valid
	Hint    string // a consequence of the value, a sentence; empty if none
	Options []Option
}

// Option is one option of a select field.
type Option struct{ Value, Label string }

var groupTexts = map[string][2]string{
	"run":       {"Task and duration", ""},
	"network":   {"Network", "Width of encoder and decoder, number of slots, codebook size."},
	"objective": {"Objective", "Weights of the loss terms."},
	"optimizer": {"Optimizer", "AdamW and gradient clipping."},
	"ablation":  {"Ablations", "Variants the paper tried: components added or removed."},
	"compute":   {"Computation", "How batches reach the engine. Results stay the same up to rounding."},
	"cadence":   {"Cadence", "How often the run saves checkpoints, reconstructs samples and measures."},
}

// NewFormGroup returns the group of the given fields. The first group and any group with an error start expanded.
func NewFormGroup(key string, fields []FormField) FormGroup {
	g := FormGroup{Key: key, Title: groupTexts[key][0], About: groupTexts[key][1], Fields: fields, Folded: key != "run"}
	for _, f := range fields {
		g.Folded = g.Folded && f.Error == ""
	}
	return g
}

// changed counts the fields that differ from their defaults.
func (g FormGroup) changed() int {
	n := 0
	for _, f := range g.Fields {
		if f.Value != f.Default {
			n++
		}
	}
	return n
}

// decides reports whether the defaults of other fields depend on this one.
func (f FormField) decides() bool {
	return f.Name == "dataset" || f.Name == "model" || f.Name == "preset"
}

func (f FormField) errorID() string { return f.Name + "-error" }
func (f FormField) helpID() string  { return f.Name + "-help" }

// describedBy returns the IDs of the texts that describe the input.
func (f FormField) describedBy() string {
	if f.Error != "" {
		return f.errorID() + " " + f.helpID()
	}
	return f.helpID()
}

func (f FormField) on() bool { return f.Value == "true" || f.Value == "on" }

func (f FormField) defaultText() string {
	if f.Kind == model.Bool {
		return map[string]string{"true": "on", "false": "off"}[f.Default]
	}
	return f.Default
}

// inputMode selects the on-screen keyboard on phones.
func (f FormField) inputMode() string {
	if f.Kind == model.Int {
		return "numeric"
	}
	return "text"
}

// bounds describes the range of a numeric field; empty for other fields.
func (f FormField) bounds() string {
	if f.Kind != model.Int && f.Kind != model.Float {
		return ""
	}
	low := "at least " + bound(f.Min)
	if f.Above {
		low = "above " + bound(f.Min)
	}
	return low + ", at most " + bound(f.Max)
}

func bound(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e10 {
		return views.Count(int(v))
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// presetAbout returns the presets with their descriptions, in order.
func presetAbout() []Option {
	var all []Option
	for _, name := range model.PresetNames() {
		all = append(all, Option{Value: name, Label: model.PresetAbout(name)})
	}
	return all
}

// estimate returns the duration of the run at the measured rate; empty if unknown.
func (v RunFormView) estimate() string {
	steps, batch := v.number("steps"), v.number("batch")
	if v.Rate <= 0 || steps <= 0 || batch <= 0 {
		return ""
	}
	return views.Duration(steps * batch / v.Rate)
}

func (v RunFormView) number(name string) float64 {
	for _, g := range v.Groups {
		for _, f := range g.Fields {
			if f.Name == name {
				n, _ := strconv.ParseFloat(f.Value, 64)
				return n
			}
		}
	}
	return 0
}

// share describes how the parameters are distributed.
func (v RunFormView) share() string {
	if between := v.Parameters - v.Networks; between > 0 {
		return views.Count(v.Networks) + " in encoder and decoder, " + views.Count(between) + " between them"
	}
	return views.Count(v.Networks) + ", all in encoder and decoder"
}

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
	Whole     string  // what is wrong with the form as a whole; may be empty
	Problems  int     // entries with a problem
	Rate      float64 // images per second of the newest like run; 0 where none was measured
	RateFrom  string  // that run's name

	Parameters int // learned numbers; 0 where what is typed makes no model
	Networks   int // of them in encoder and decoder
}

// FormGroup is a heading and the entries under it; a folded one is closed until opened.
type FormGroup struct {
	Key    string
	Title  string
	About  string
	Folded bool
	Fields []FormField
}

// FormField is one entry: what it is, what it holds as typed, what it would be by default, what is wrong with it.
type FormField struct {
	model.Field
	Value   string
	Default string
	Source  string // where the default comes from
	Error   string // a sentence, or empty
	Hint    string // what the value implies, a sentence, or empty
	Options []Option
}

// Option is one choice.
type Option struct{ Value, Label string }

var groupTexts = map[string][2]string{
	"run":       {"What to learn, and how long", ""},
	"network":   {"Network", "How wide the encoder and decoder are, how many slots, how large the codebook."},
	"objective": {"Objective", "The weights of the terms of the loss."},
	"optimizer": {"Optimizer", "AdamW and the clip of the gradient."},
	"ablation":  {"Ablations", "What the paper tried and took out, or left out to see what happens."},
	"cadence":   {"Cadence", "How often the run saves, shows and measures itself."},
}

// NewFormGroup puts entries under the heading of their group. The first group and any with a problem stand open.
func NewFormGroup(key string, fields []FormField) FormGroup {
	g := FormGroup{Key: key, Title: groupTexts[key][0], About: groupTexts[key][1], Fields: fields, Folded: key != "run"}
	for _, f := range fields {
		g.Folded = g.Folded && f.Error == ""
	}
	return g
}

// changed counts the entries that differ from their defaults.
func (g FormGroup) changed() int {
	n := 0
	for _, f := range g.Fields {
		if f.Value != f.Default {
			n++
		}
	}
	return n
}

// decides says whether other entries' defaults follow from this one.
func (f FormField) decides() bool {
	return f.Name == "dataset" || f.Name == "model" || f.Name == "preset"
}

func (f FormField) errorID() string { return f.Name + "-error" }
func (f FormField) helpID() string  { return f.Name + "-help" }

// describedBy lists the texts that belong to the input.
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

// inputMode asks phones for the right keys.
func (f FormField) inputMode() string {
	if f.Kind == model.Int {
		return "numeric"
	}
	return "text"
}

// bounds says what values are allowed, or nothing where there is nothing to say.
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

// presetAbout describes the presets, in their order.
func presetAbout() []Option {
	var all []Option
	for _, name := range model.PresetNames() {
		all = append(all, Option{Value: name, Label: model.PresetAbout(name)})
	}
	return all
}

// estimate says how long the form's run would take at the measured rate.
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

// share says where the parameters lie.
func (v RunFormView) share() string {
	if between := v.Parameters - v.Networks; between > 0 {
		return views.Count(v.Networks) + " in encoder and decoder, " + views.Count(between) + " between them"
	}
	return views.Count(v.Networks) + ", all in encoder and decoder"
}

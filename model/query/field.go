// Package query implements the language that selects runs on the runs page, in the API and on the command line:
//
//	model=hrr lr<1e-3 infom>0.7 -failed tag:night
//
// docs/query.md describes it for users.
package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/measure/report"
)

// Kind is the type of a field's values, which determines how they are compared.
type Kind string

const (
	Text     Kind = "text"
	Number   Kind = "number"
	Duration Kind = "duration" // seconds
	Time     Kind = "time"     // seconds since 1970
	Flag     Kind = "flag"     // 1 for yes, 0 for no
	Set      Kind = "set"      // several words, such as tags
)

// Groups of fields, in display order.
const (
	OfRun       = "run"
	OfConfig    = "hyperparameter"
	OfScores    = "score"
	OfLastValue = "last value"
)

// Groups lists the groups in display order.
var Groups = []string{OfRun, OfConfig, OfScores, OfLastValue}

// Field is a property of runs that can be queried, sorted by and shown.
type Field struct {
	Name    string // name in queries
	Label   string // column heading
	Unit    string
	Help    string // one sentence
	Group   string
	Kind    Kind
	Choices []string // all possible values; nil for any text or number

	decimals int // of a Number; −1 for as many as needed
	text     func(r *model.Overview) string
	number   func(r *model.Overview, now time.Time) (float64, bool)
}

// Catalogue holds the fields that queries can use.
type Catalogue struct {
	fields []Field
	byName map[string]int
}

// New returns a catalogue with the last values of the given series, and with all hyperparameters, scores and run properties.
func New(series ...string) *Catalogue {
	c := &Catalogue{byName: map[string]int{}}
	for _, f := range slices.Concat(runFields(), configFields(), scoreFields()) {
		c.add(f)
	}
	for _, name := range slices.Sorted(slices.Values(series)) {
		c.add(seriesField(name))
	}
	return c
}

// Of returns a catalogue with the last values of the series of the given runs.
func Of(runs []model.Overview) *Catalogue {
	seen := map[string]bool{}
	var names []string
	for i := range runs {
		for name := range runs[i].Values {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return New(names...)
}

// add adds a field unless its name is taken or cannot be typed in a query.
func (c *Catalogue) add(f Field) {
	if _, taken := c.byName[f.Name]; taken || f.Name == "" || strings.ContainsFunc(f.Name, func(r rune) bool { return !inName(r) }) {
		return
	}
	c.byName[f.Name] = len(c.fields)
	c.fields = append(c.fields, f)
}

// Fields returns the fields, by group.
func (c *Catalogue) Fields() []Field { return slices.Clone(c.fields) }

// Field returns the field with a name, case-insensitively.
func (c *Catalogue) Field(name string) (Field, bool) {
	i, ok := c.byName[name]
	if !ok {
		i, ok = c.byName[strings.ToLower(name)]
	}
	if !ok {
		return Field{}, false
	}
	return c.fields[i], true
}

// Has reports whether a run has a value.
func (f Field) Has(r *model.Overview, now time.Time) bool {
	if f.text != nil {
		return f.text(r) != ""
	}
	_, ok := f.number(r, now)
	return ok
}

// Number returns the value of a run in the field's unit; false if it has none, and for text.
func (f Field) Number(r *model.Overview, now time.Time) (float64, bool) {
	if f.number == nil {
		return 0, false
	}
	return f.number(r, now)
}

// Numeric reports whether values are numbers with a meaningful mean.
func (f Field) Numeric() bool { return f.Kind == Number || f.Kind == Duration }

// Shown returns the value as text, empty if none.
func (f Field) Shown(r *model.Overview, now time.Time) string {
	if f.text != nil {
		return f.text(r)
	}
	v, ok := f.number(r, now)
	if !ok {
		return ""
	}
	return f.Format(v)
}

// Format formats a number of the field.
func (f Field) Format(v float64) string {
	switch f.Kind {
	case Flag:
		if v == 0 {
			return ""
		}
		return "yes"
	case Time:
		return time.UnixMilli(int64(v * 1000)).UTC().Format("2006-01-02 15:04")
	case Duration:
		return (time.Duration(v) * time.Second).String()
	}
	if f.decimals >= 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', f.decimals, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Decimals returns the number of decimals shown, −1 for as many as needed.
func (f Field) Decimals() int { return f.decimals }

// Compare orders two runs by the field, descending if down is set. Runs without a value or with NaN come last in both directions, so callers
// must use down rather than negate the result.
func (f Field) Compare(a, b *model.Overview, now time.Time, down bool) int {
	order := func(c int) int {
		if down {
			return -c
		}
		return c
	}
	if f.Name == "state" {
		return order(cmp.Compare(stateRank(a.State), stateRank(b.State)))
	}
	if f.text != nil {
		x, y := f.text(a), f.text(b)
		if c := missingLast(x == "", y == ""); c != 0 || x == "" {
			return c
		}
		return order(cmp.Compare(strings.ToLower(x), strings.ToLower(y)))
	}
	x, hasX := f.number(a, now)
	y, hasY := f.number(b, now)
	if c := missingLast(!hasX || math.IsNaN(x), !hasY || math.IsNaN(y)); c != 0 || !hasX || math.IsNaN(x) {
		return c
	}
	return order(cmp.Compare(x, y))
}

func missingLast(a, b bool) int {
	switch {
	case a && !b:
		return 1
	case b && !a:
		return -1
	}
	return 0
}

// stateRank ranks states that need attention first.
func stateRank(s model.State) int { return slices.Index(states, s) }

var states = []model.State{model.Running, model.Stopping, model.Queued, model.Failed, model.Interrupted, model.Stopped, model.Finished}

func stateNames() (names []string) {
	for _, s := range states {
		names = append(names, string(s))
	}
	return names
}

func runFields() []Field { return append(standingFields(), progressFields()...) }

// standingFields returns the fields of a run's identity and state.
func standingFields() []Field {
	state := runText("state", "State", "State of the run.", func(r *model.Overview) string { return string(r.State) })
	state.Choices = stateNames()
	evaluation := runText("evaluation", "Evaluation", "State of the last evaluation.", func(r *model.Overview) string { return string(r.Evaluation) })
	evaluation.Choices = stateNames()
	return []Field{
		state,
		runText("name", "Run", "Name of the run.", func(r *model.Overview) string { return r.Name }),
		{Name: "tag", Label: "Tags", Help: "The run's tags.", Group: OfRun, Kind: Set, text: func(r *model.Overview) string { return string(r.Tags) }},
		runFlag("star", "Star", "You starred the run.", func(r *model.Overview) bool { return r.Star }),
		runFlag("archived", "Archived", "The run is archived: listed only when a query names archived.", func(r *model.Overview) bool { return r.Archived }),
		runFlag("live", "Live", "The run is queued, running or stopping.", func(r *model.Overview) bool { return !r.State.Ended() }),
		runFlag("scored", "Scored", "The run has scores of an evaluation.", func(r *model.Overview) bool { _, ok := r.Scores["infom"]; return ok }),
		runText("id", "ID", "The run's ID.", func(r *model.Overview) string { return r.ID }),
		runText("notes", "Notes", "Notes on the run.", func(r *model.Overview) string { return r.Notes }),
		runText("reason", "Reason", "Why the run ended.", func(r *model.Overview) string { return r.Reason }),
		runText("engine", "Engine", "Compute engine; before the run starts, the requested one.", func(r *model.Overview) string { return cmp.Or(r.Engine, r.Config.Engine) }),
		runText("revision", "Revision", "Revision of the program that ran it.", func(r *model.Overview) string { return r.Revision }),
		evaluation,
	}
}

// progressFields returns the fields of a run's progress and times.
func progressFields() []Field {
	return []Field{
		runNumber("step", "Step", "", "Last completed step.", 0, func(r *model.Overview, _ time.Time) (float64, bool) { return float64(r.Step), true }),
		runNumber("progress", "Progress", "", "Share of the steps done, 0–1 or 0%–100%.", 3, func(r *model.Overview, _ time.Time) (float64, bool) {
			return float64(r.Step) / float64(r.Config.Steps), r.Config.Steps > 0
		}),
		runNumber("rate", "Images/s", "", "Images per second.", 1, func(r *model.Overview, _ time.Time) (float64, bool) {
			return r.ImagesPerSecond, r.ImagesPerSecond > 0
		}),
		runDuration("left", "Time left", "Time to the last step at the current rate.", func(r *model.Overview, _ time.Time) (float64, bool) {
			return r.SecondsLeft, r.State == model.Running && r.SecondsLeft > 0
		}),
		runDuration("elapsed", "Elapsed", "Time from start to end, or until now.", func(r *model.Overview, now time.Time) (float64, bool) {
			end := r.Ended
			if end.IsZero() {
				end = now
			}
			return max(0, end.Sub(r.Started).Seconds()), !r.Started.IsZero()
		}),
		runDuration("age", "Age", "Time since the run was created.", func(r *model.Overview, now time.Time) (float64, bool) {
			return max(0, now.Sub(r.Created).Seconds()), !r.Created.IsZero()
		}),
		runMoment("created", "Created", "When the run was created, UTC.", func(r *model.Overview) time.Time { return r.Created }),
		runMoment("started", "Started", "When the run first started, UTC.", func(r *model.Overview) time.Time { return r.Started }),
		runMoment("ended", "Ended", "When the run ended, UTC.", func(r *model.Overview) time.Time { return r.Ended }),
		runMoment("updated", "Updated", "When the run last reported its state, UTC.", func(r *model.Overview) time.Time { return r.Updated }),
		runNumber("checkpoint", "Checkpoint", "step", "Step of the newest checkpoint.", 0, func(r *model.Overview, _ time.Time) (float64, bool) {
			return float64(r.Checkpoint), r.Checkpoint > 0
		}),
		runNumber("attempt", "Attempt", "", "How many times the run was started or resumed.", 0, func(r *model.Overview, _ time.Time) (float64, bool) {
			return float64(r.Attempt), r.Attempt > 0
		}),
		runNumber("parameters", "Parameters", "", "Number of learned parameters.", 0, func(r *model.Overview, _ time.Time) (float64, bool) {
			return float64(r.Parameters), r.Parameters > 0
		}),
	}
}

func runText(name, label, help string, read func(*model.Overview) string) Field {
	return Field{Name: name, Label: label, Help: help, Group: OfRun, Kind: Text, text: read}
}

func runNumber(name, label, unit, help string, decimals int, read func(*model.Overview, time.Time) (float64, bool)) Field {
	return Field{Name: name, Label: label, Unit: unit, Help: help, Group: OfRun, Kind: Number, decimals: decimals, number: read}
}

func runFlag(name, label, help string, read func(*model.Overview) bool) Field {
	return Field{Name: name, Label: label, Help: help, Group: OfRun, Kind: Flag, Choices: []string{"yes", "no"}, number: func(r *model.Overview, _ time.Time) (float64, bool) {
		if read(r) {
			return 1, true
		}
		return 0, true
	}}
}

func runMoment(name, label, help string, read func(*model.Overview) time.Time) Field {
	return Field{Name: name, Label: label, Help: help, Group: OfRun, Kind: Time, number: func(r *model.Overview, _ time.Time) (float64, bool) {
		t := read(r)
		return float64(t.UnixMilli()) / 1000, !t.IsZero()
	}}
}

func runDuration(name, label, help string, read func(*model.Overview, time.Time) (float64, bool)) Field {
	return Field{Name: name, Label: label, Unit: "s", Help: help, Group: OfRun, Kind: Duration, number: read}
}

// configFields returns the hyperparameters; runs of models without a hyperparameter have no value.
func configFields() []Field {
	var all []Field
	for _, f := range model.Fields() {
		out := Field{Name: f.Name, Label: strings.TrimSpace(f.Label + " " + f.Symbol), Unit: f.Unit, Help: f.Help, Group: OfConfig, Kind: Text, Choices: f.Choices, decimals: -1}
		read := func(r *model.Overview) string {
			if r.Config.Model == "" || !f.Of(r.Config.Model) {
				return ""
			}
			return f.Get(r.Config)
		}
		switch f.Kind {
		case model.Int, model.Float:
			out.Kind = Number
			out.number = func(r *model.Overview, _ time.Time) (float64, bool) {
				if r.Config.Model == "" || !f.Of(r.Config.Model) {
					return 0, false
				}
				return f.Float(r.Config), true
			}
		case model.Bool:
			out.Kind, out.Choices = Flag, []string{"yes", "no"}
			out.number = func(r *model.Overview, _ time.Time) (float64, bool) {
				switch read(r) {
				case "true":
					return 1, true
				case "false":
					return 0, true
				}
				return 0, false
			}
		default:
			out.text = read
		}
		all = append(all, out)
	}
	return all
}

// scoreNames maps the keys of metrics that are also hyperparameter names to other names.
var scoreNames = map[string]string{"d": "dci_d", "i": "dci_i", "c": "dci_c"}

func scoreFields() []Field {
	var all []Field
	for _, m := range report.AllMetrics() {
		name := cmp.Or(scoreNames[m.Key], strings.TrimPrefix(m.Key, "field_"))
		all = append(all, Field{Name: name, Label: m.Label, Unit: m.Unit, Help: m.About, Group: OfScores, Kind: Number, decimals: max(m.Decimals, 2),
			number: func(r *model.Overview, _ time.Time) (float64, bool) {
				v, ok := r.Scores[m.Key]
				return v, ok
			}})
	}
	return all
}

func seriesField(name string) Field {
	label := name
	if name == "psnr/eval" {
		label = "PSNR, last"
	}
	return Field{Name: name, Label: label, Help: fmt.Sprintf("Last value of %s during training.", name), Group: OfLastValue, Kind: Number, decimals: -1,
		number: func(r *model.Overview, _ time.Time) (float64, bool) {
			v, ok := r.Values[name]
			return v, ok
		}}
}

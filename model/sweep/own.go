package sweep

import (
	"fmt"
	"strings"

	"slotscope/model"
)

// Own is a user-defined sweep as entered in a form or on the command line: one part, over any number of hyperparameters.
type Own struct {
	Name, Preset     string
	Steps            int // 0 for the preset's
	Seeds            int
	Models, Datasets []string
	Vary             []Line // each a hyperparameter and its axis, parsed by ParseAxis
	Set              []Line // settings of every run
	Draws            int    // settings drawn by random search; 0 for every combination
	DrawSeed         int64
	Race             int // seeds before the first round of a race; 0 for none
}

// Line is a name and a value.
type Line struct{ Name, Value string }

// ParseLine parses name=value.
func ParseLine(text string) (Line, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(name) == "" {
		return Line{}, fmt.Errorf("%q is not of the form name=value", strings.TrimSpace(text))
	}
	return Line{strings.TrimSpace(name), strings.TrimSpace(value)}, nil
}

// mostSeeds is the maximum number of seeds of a user-defined sweep.
const mostSeeds = 100

// Plan returns the sweep as a plan. Problems with the i-th hyperparameter are under the key vary[i].
func (o Own) Plan() (Plan, error) {
	bad := model.Invalid{}
	if o.Seeds < 1 || o.Seeds > mostSeeds {
		bad["seeds"] = fmt.Sprintf("%d seeds: choose 1 to %d", o.Seeds, mostSeeds)
		return Plan{}, bad
	}
	part := Part{Name: o.Name, Models: o.Models, Datasets: o.Datasets, Seeds: upTo(o.Seeds)}
	if o.Draws != 0 {
		part.Random = &Random{o.Draws, o.DrawSeed}
	}
	if o.Race != 0 {
		part.Race = &Race{o.Race}
	}
	seen := map[string]bool{}
	for i, line := range o.Vary {
		a, err := ParseAxis(line.Name, line.Value)
		why := ""
		switch {
		case err != nil:
			why = err.Error()
		case seen[a.Field]:
			why = a.Field + " is varied twice"
		default:
			why = a.problem(part.Random != nil)
		}
		if why != "" {
			bad[fmt.Sprintf("vary[%d]", i)] = why
		}
		seen[a.Field] = true
		part.Vary = append(part.Vary, a)
	}
	p := Plan{Name: o.Name, Preset: o.Preset, Steps: o.Steps, Parts: []Part{part}}
	for _, line := range o.Set {
		if p.Set == nil {
			p.Set = map[string]string{}
		}
		p.Set[line.Name] = line.Value
	}
	if len(bad) > 0 {
		return p, bad
	}
	return p, p.Validate()
}

package sweep

import (
	"fmt"
	"strings"

	"slotscope/model"
)

// Own is a question of one's own as a form or a command line puts it: one part, over any number of hyperparameters.
type Own struct {
	Name, Preset     string
	Steps            int // 0 for the preset's
	Seeds            int
	Models, Datasets []string
	Vary             []Line // each a hyperparameter and what ParseAxis reads
	Set              []Line // of every run
	Draws            int    // of random search; 0 for every combination
	DrawSeed         int64
	Race             int // seeds before the first round of a race; 0 for none
}

// Line is a name with a value.
type Line struct{ Name, Value string }

// ParseLine reads name=value.
func ParseLine(text string) (Line, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(name) == "" {
		return Line{}, fmt.Errorf("%q is not of the form name=value", strings.TrimSpace(text))
	}
	return Line{strings.TrimSpace(name), strings.TrimSpace(value)}, nil
}

// mostSeeds is how many seeds a question may have.
const mostSeeds = 100

// Plan is the question as a plan. What is wrong with the i-th hyperparameter is under vary[i].
func (o Own) Plan() (Plan, error) {
	bad := model.Invalid{}
	if o.Seeds < 1 || o.Seeds > mostSeeds {
		bad["seeds"] = fmt.Sprintf("%d is not a number of seeds from 1 to %d", o.Seeds, mostSeeds)
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

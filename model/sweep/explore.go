package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
)

// Exploration holds a sweep's runs and the parameters that it varies.
type Exploration struct {
	Parameters []Parameter
	Rows       []Row
}

// Parameter is a hyperparameter that a sweep varies, including model and dataset if there are several.
type Parameter struct {
	model.Field
	Levels []string // values, or ranges of values if there are many; numbers ascend
}

// Row is a run with its value of each parameter.
type Row struct {
	Standing
	Values  []string  // "–" if its model has no such hyperparameter
	Numbers []float64 // values as numbers: the level of a word, the minimum − 1 for "–"
	Levels  []int     // indices of the parameter's levels; −1 for "–"
	Setting int       // the same for runs that differ only in their seed
}

const (
	mostLevels = 8 // more values are grouped into ranges
	spans      = 5 // number of ranges
	absent     = "–"
)

// Explore returns the runs that a sweep reports, with every parameter that has at least two values among them.
func (b Board) Explore() Exploration {
	var items []Standing
	for _, s := range b.Items {
		if len(s.Parts) > 0 {
			items = append(items, s)
		}
	}
	e := Exploration{}
	for _, s := range items {
		e.Rows = append(e.Rows, Row{Standing: s})
	}
	for _, name := range b.Plan.varied() {
		if f, ok := model.FieldByName(name); ok {
			e.add(f)
		}
	}
	settings := map[string]int{}
	for i := range e.Rows {
		cfg := e.Rows[i].Config
		cfg.Seed = 0
		key := RunID(cfg)
		if _, known := settings[key]; !known {
			settings[key] = len(settings)
		}
		e.Rows[i].Setting = settings[key]
	}
	return e
}

// varied returns the names of hyperparameters in which the plan's runs may differ, without duplicates.
func (p Plan) varied() []string {
	names := []string{"model", "dataset", "preset", "steps"}
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, part := range p.Parts {
		if part.Select != nil {
			for _, a := range part.Select.Axes {
				add(a.Field)
			}
		}
		for _, a := range part.Vary {
			add(a.Field)
		}
		for _, set := range append([]Variant{{part.Set}}, part.Variants...) {
			for _, f := range model.Fields() {
				if _, has := set.Set[f.Name]; has {
					add(f.Name)
				}
			}
		}
	}
	return names
}

// add adds a parameter if runs have at least two values of it.
func (e *Exploration) add(f model.Field) {
	values, seen := make([]string, len(e.Rows)), []string{}
	for i, row := range e.Rows {
		values[i] = absent
		if f.Of(row.Config.Model) {
			values[i] = f.Get(row.Config)
			if !slices.Contains(seen, values[i]) {
				seen = append(seen, values[i])
			}
		}
	}
	if len(seen) < 2 {
		return
	}
	p := Parameter{Field: f, Levels: seen}
	level := func(value string) int { return slices.Index(p.Levels, value) }
	if f.Kind == model.Int || f.Kind == model.Float {
		slices.SortFunc(p.Levels, func(a, b string) int { return cmp.Compare(numberOf(a), numberOf(b)) })
		if len(seen) > mostLevels {
			p.Levels, level = inSpans(p.Levels)
		}
	}
	for i, value := range values {
		row := &e.Rows[i]
		at, number := -1, math.NaN()
		if value != absent {
			at = level(value)
			number = numberOf(value)
			if math.IsNaN(number) {
				number = float64(at)
			}
		}
		row.Values, row.Levels, row.Numbers = append(row.Values, value), append(row.Levels, at), append(row.Numbers, number)
	}
	e.Parameters = append(e.Parameters, p)
	e.below(len(e.Parameters) - 1)
}

// below sets the number of absent values to the parameter's minimum − 1.
func (e *Exploration) below(i int) {
	least := math.Inf(1)
	for _, row := range e.Rows {
		if row.Levels[i] >= 0 {
			least = min(least, row.Numbers[i])
		}
	}
	for _, row := range e.Rows {
		if row.Levels[i] < 0 {
			row.Numbers[i] = least - 1
		}
	}
}

func numberOf(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// inSpans groups ascending values into ranges with about equally many values.
func inSpans(values []string) (levels []string, level func(value string) int) {
	at := map[string]int{}
	for s := range spans {
		part := values[s*len(values)/spans : (s+1)*len(values)/spans]
		for _, v := range part {
			at[v] = s
		}
		levels = append(levels, part[0]+"–"+part[len(part)-1])
	}
	return levels, func(value string) int { return at[value] }
}

// Index returns the index of a parameter by name; −1 if there is none.
func (e Exploration) Index(name string) int {
	return slices.IndexFunc(e.Parameters, func(p Parameter) bool { return p.Name == name })
}

// Title returns the parameter's title for pages.
func (p Parameter) Title() string { return strings.TrimSpace(fmt.Sprintf("%s %s", p.Label, p.Symbol)) }

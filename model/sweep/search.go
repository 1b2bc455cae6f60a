package sweep

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
)

// Random draws settings from the axes instead of using every combination. The same seed draws the same settings, and the values of one axis
// do not depend on the other axes.
type Random struct {
	Draws int   `json:"draws"`
	Seed  int64 `json:"seed"`
}

const (
	drawDigits = 3  // significant digits of a drawn number, to keep it readable
	drawTries  = 50 // draws tried per requested setting
)

// ParseAxis parses the values of a hyperparameter: comma-separated, as in "0.1, 0.3, 1", or a range for random draws, as in
// "0.0001..0.01 log"; log draws log-uniformly.
func ParseAxis(field, text string) (Axis, error) {
	a := Axis{Field: strings.TrimSpace(field)}
	text = strings.TrimSpace(text)
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		a.Values = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		return a, nil
	}
	high, a.Log = strings.CutSuffix(strings.TrimSpace(high), "log")
	var errs [2]error
	a.Low, errs[0] = strconv.ParseFloat(strings.TrimSpace(low), 64)
	a.High, errs[1] = strconv.ParseFloat(strings.TrimSpace(high), 64)
	if errs[0] != nil || errs[1] != nil {
		return a, fmt.Errorf("%q is not a range; write it as in 0.0001..0.01 or 0.0001..0.01 log", text)
	}
	return a, nil
}

// String returns the axis's values in the form that ParseAxis reads.
func (a Axis) String() string {
	if !a.ranged() {
		return strings.Join(a.Values, ", ")
	}
	text := strconv.FormatFloat(a.Low, 'g', -1, 64) + ".." + strconv.FormatFloat(a.High, 'g', -1, 64)
	if a.Log {
		text += " log"
	}
	return text
}

func (a Axis) ranged() bool { return a.Low != 0 || a.High != 0 || a.Log }

// problem returns what is wrong with an axis; empty if nothing is. random is whether its values are drawn.
func (a Axis) problem(random bool) string {
	f, ok := model.FieldByName(a.Field)
	switch {
	case !ok || a.Field == "model" || a.Field == "dataset" || a.Field == "seed" || a.Field == "preset":
		return fmt.Sprintf("%q is not a hyperparameter that can be varied", a.Field)
	case !a.ranged() && len(a.Values) == 0:
		return a.Field + " needs at least one value"
	case !a.ranged():
		return ""
	case len(a.Values) > 0:
		return a.Field + " has both values and a range; use one of them"
	case f.Kind != model.Int && f.Kind != model.Float:
		return a.Field + " is not a number; list its values"
	case !(a.Low < a.High) || math.IsInf(a.Low, 0) || math.IsInf(a.High, 0):
		return fmt.Sprintf("%s: the range %s does not ascend", a.Field, a)
	case a.Log && a.Low <= 0:
		return fmt.Sprintf("%s: a logarithmic range must begin above 0, not at %v", a.Field, a.Low)
	case !random:
		return a.Field + " has a range, which only random search supports; list its values for a grid"
	}
	return ""
}

// draw returns the axis's value for u in [0, 1).
func (a Axis) draw(u float64) string {
	if !a.ranged() {
		return a.Values[int(u*float64(len(a.Values)))]
	}
	v := a.Low + u*(a.High-a.Low)
	if a.Log {
		v = a.Low * math.Pow(a.High/a.Low, u)
	}
	if f, _ := model.FieldByName(a.Field); f.Kind == model.Int {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', drawDigits, 64), 64)
	return strconv.FormatFloat(min(max(short, a.Low), a.High), 'g', -1, 64)
}

// settings draws distinct settings of the axes; fewer than requested if the axes do not have enough.
func (r Random) settings(axes []Axis) (all []map[string]string) {
	if len(axes) == 0 {
		return []map[string]string{{}}
	}
	streams := make([]*rand.Rand, len(axes))
	for i, a := range axes {
		h := fnv.New64a()
		h.Write([]byte(a.Field))
		streams[i] = rand.New(rand.NewPCG(uint64(r.Seed), h.Sum64()))
	}
	seen := map[string]bool{}
	for try := 0; try < drawTries*r.Draws && len(all) < r.Draws; try++ {
		set := map[string]string{}
		for i, a := range axes {
			set[a.Field] = a.draw(streams[i].Float64())
		}
		if key := settingKey(set); !seen[key] {
			seen[key] = true
			all = append(all, set)
		}
	}
	return all
}

// settingKey returns a setting as text, with sorted fields.
func settingKey(set map[string]string) string {
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, field+"="+set[field])
	}
	return strings.Join(parts, " ")
}

// grid returns every combination of the axes.
func grid(axes []Axis) []map[string]string {
	all := []map[string]string{{}}
	for _, a := range axes {
		var next []map[string]string
		for _, s := range all {
			for _, v := range a.Values {
				next = append(next, with(s, a.Field, v))
			}
		}
		all = next
	}
	return all
}

// axesOf returns the axes that apply to a model.
func (p Part) axesOf(name string) (axes []Axis) {
	for _, a := range p.Vary {
		if a.concerns(name) {
			axes = append(axes, a)
		}
	}
	return axes
}

// validateSearch checks the random search and the race.
func (p Part) validateSearch(at string, bad model.Invalid) {
	if r := p.Random; r != nil {
		switch {
		case r.Draws < 1 || r.Draws > maxRuns:
			bad[at+"random.draws"] = fmt.Sprintf("%d draws: choose 1 to %d", r.Draws, maxRuns)
		case len(p.Vary) == 0:
			bad[at+"random"] = "random search needs a hyperparameter to draw"
		}
	}
	if r := p.Race; r != nil && (r.Least < leastRaced || r.Least >= len(p.Seeds)) {
		bad[at+"race.least"] = fmt.Sprintf("%d seeds before the first round: choose at least %d, and fewer than the part's %d", r.Least, leastRaced, len(p.Seeds))
	}
}

// tooFew returns a problem if the axes have fewer settings for a model than are to be drawn; empty if none.
func (p Part) tooFew() string {
	if p.Random == nil {
		return ""
	}
	for _, name := range p.Models {
		if axes := p.axesOf(name); len(axes) > 0 {
			if n := len(p.Random.settings(axes)); n < p.Random.Draws {
				return fmt.Sprintf("%d draws are more than the %d distinct settings of %s; choose fewer", p.Random.Draws, n, name)
			}
		}
	}
	return ""
}

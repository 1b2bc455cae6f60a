// Package sweep plans many runs: models × datasets × seeds × hyperparameters, in parts, some of which first choose a
// hyperparameter. A plan is data; Look holds it against the runs that there are and says what is done and what comes next.
// Nothing else is remembered, so a sweep can be interrupted anywhere and gone on with anywhere.
package sweep

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"slotscope/model"
)

// Plan is what a sweep is to do.
type Plan struct {
	Name    string            `json:"name"`
	Preset  string            `json:"preset"`
	Steps   int               `json:"steps,omitempty"`   // of every run; 0 for the preset's
	Set     map[string]string `json:"set,omitempty"`     // hyperparameters of every run, by name
	Eval    map[string]int    `json:"eval,omitempty"`    // flags of `slotscope eval`: noise, pairs, probe, trees
	Factors map[string]int    `json:"factors,omitempty"` // how many a dataset has, by name, where the paper does not study it; see Settle
	Parts   []Part            `json:"parts"`
}

// Size is how large and how long runs are. A part, and a part's choice, may have one of their own.
type Size struct {
	Preset string `json:"preset,omitempty"` // of every run; empty for that of the level above
	Steps  int    `json:"steps,omitempty"`  // of every run; 0 for that of the level above, or else the preset's
}

// over is the size at a level below: what it says itself, else what s says. Another preset brings its own steps.
func (s Size) over(below Size) Size {
	if below.Preset != "" && below.Preset != s.Preset {
		return below
	}
	return Size{s.Preset, cmp.Or(below.Steps, s.Steps)}
}

func (p Plan) size() Size { return Size{p.Preset, p.Steps} }

func (s Size) validate(at string, bad model.Invalid) {
	if s.Steps < 0 {
		bad[at+"steps"] = fmt.Sprintf("%d is below 0; leave steps out to use the preset's", s.Steps)
	}
	if s.Preset != "" && !slices.Contains(model.PresetNames(), s.Preset) {
		bad[at+"preset"] = fmt.Sprintf("%q is not one of %s", s.Preset, strings.Join(model.PresetNames(), ", "))
	}
}

// Part is one question: every model on every dataset with every seed, for each combination of the axes, and once more for
// each variant.
type Part struct {
	Name     string   `json:"name"`
	About    string   `json:"about,omitempty"` // one sentence
	Models   []string `json:"models"`
	Datasets []string `json:"datasets"`
	Seeds    []int64  `json:"seeds"`
	Size
	Set      map[string]string `json:"set,omitempty"` // hyperparameters of the part's runs, by name
	Select   *Select           `json:"select,omitempty"`
	Vary     []Axis            `json:"vary,omitempty"`
	Random   *Random           `json:"random,omitempty"` // nil for every combination of the axes
	Race     *Race             `json:"race,omitempty"`   // nil for every seed of every setting
	Variants []Variant         `json:"variants,omitempty"`
}

// Select chooses one hyperparameter for each model and dataset before the part's own runs begin: the value with the highest
// mean InfoM over seeds of its own, so that the choice does not flatter the part's scores.
type Select struct {
	Seeds []int64 `json:"seeds"`
	Size
	Axes []Axis `json:"axes"` // at most one for each model
}

// Axis is a hyperparameter with the values that it takes, or for random draws the range that they lie in.
type Axis struct {
	Field  string   `json:"field"`
	Values []string `json:"values,omitempty"`
	Low    float64  `json:"low,omitempty"`
	High   float64  `json:"high,omitempty"`
	Log    bool     `json:"log,omitempty"`    // magnitudes are drawn evenly
	Models []string `json:"models,omitempty"` // that it concerns; empty for all
}

// Variant is a setting to hold against the plain one.
type Variant struct {
	Set map[string]string `json:"set"`
}

// Item is one run of a plan.
type Item struct {
	ID        string // of its run: the same configuration has the same one in every sweep
	Name      string // of its run
	Part      int
	Selecting bool   // the run is for Select
	Value     string // that Select tries with it
	Config    model.Config
	eval      map[string]int // Plan.Eval
}

const (
	maxRuns  = 5000    // of one plan
	maxBytes = 1 << 20 // of its file
)

// Read reads a plan from JSON; unknown keys are errors.
func Read(r io.Reader) (Plan, error) {
	var p Plan
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return p, fmt.Errorf("reading the plan: %w", err)
	}
	if len(text) > maxBytes {
		return p, model.Invalid{"": fmt.Sprintf("the plan is larger than %d bytes", maxBytes)}
	}
	if err := model.ReadJSON(bytes.NewReader(text), &p); err != nil {
		return p, model.Invalid{"": "the plan is not the JSON expected here: " + err.Error()}
	}
	return p, p.Validate()
}

// Validate returns every problem as model.Invalid, or nil.
func (p Plan) Validate() error {
	bad := model.Invalid{}
	if strings.TrimSpace(p.Name) == "" || len(p.Name) > 100 {
		bad["name"] = "a sweep needs a name of at most 100 bytes"
	}
	if !utf8.ValidString(p.Name) || strings.ContainsFunc(p.Name, unicode.IsControl) {
		bad["name"] = "the name must be one line"
	}
	p.size().validate("", bad)
	if p.Preset == "" {
		bad["preset"] = fmt.Sprintf("%q is not one of %s", p.Preset, strings.Join(model.PresetNames(), ", "))
	}
	if len(p.Parts) == 0 {
		bad["parts"] = "a sweep needs at least one part"
	}
	for name, v := range p.Eval {
		if !slices.Contains([]string{"noise", "pairs", "probe", "trees"}, name) {
			bad["eval"] = fmt.Sprintf("%q is not one of noise, pairs, probe, trees", name)
		} else if v < 0 {
			bad["eval"] = fmt.Sprintf("%s: %d is negative", name, v)
		}
	}
	for name, n := range p.Factors {
		if !slices.Contains(p.Datasets(), name) || n < 0 {
			bad["factors"] = fmt.Sprintf("%q = %d is not the number of factors of one of the datasets", name, n)
		}
	}
	for i, part := range p.Parts {
		part.validate(fmt.Sprintf("parts[%d].", i), bad)
	}
	if len(bad) > 0 {
		return bad
	}
	if n := p.Runs(); n > maxRuns {
		return model.Invalid{"parts": fmt.Sprintf("%d runs; the limit is %d", n, maxRuns)}
	}
	for i, part := range p.Parts {
		if why := part.tooFew(); why != "" {
			return model.Invalid{fmt.Sprintf("parts[%d].random.draws", i): why}
		}
	}
	for _, item := range p.try() {
		if err := item.err; err != nil {
			return model.Invalid{"parts": fmt.Sprintf("%s on %s: %v", item.Config.Model, item.Config.Dataset, err)}
		}
	}
	return nil
}

// Settle asks once for the number of factors of each dataset and notes it where the paper does not study the dataset: baselines
// take their latents from it. A dataset that count cannot open ends the sweep before it begins.
func (p Plan) Settle(count func(dataset string) (int, error)) (Plan, error) {
	p.Factors = nil
	for _, dataset := range p.Datasets() {
		n, err := count(dataset)
		var bad model.Invalid
		if errors.As(err, &bad) && bad["dataset"] != "" {
			return p, model.Invalid{"datasets": bad["dataset"]}
		}
		if err != nil {
			return p, model.Invalid{"datasets": err.Error()}
		}
		if model.Studied(dataset) {
			continue
		}
		if p.Factors == nil {
			p.Factors = map[string]int{}
		}
		p.Factors[dataset] = n
	}
	return p, p.Validate()
}

func (p Part) validate(at string, bad model.Invalid) {
	lists := map[string]int{"models": len(p.Models), "datasets": len(p.Datasets), "seeds": len(p.Seeds)}
	p.Size.validate(at, bad)
	for name, n := range lists {
		if n == 0 {
			bad[at+name] = "needs at least one entry"
		}
	}
	for _, name := range p.Models {
		if !slices.Contains(model.ModelNames(), name) {
			bad[at+"models"] = fmt.Sprintf("%q is not one of %s", name, strings.Join(model.ModelNames(), ", "))
		}
	}
	axes := p.Vary
	if p.Select != nil {
		axes = slices.Concat(axes, p.Select.Axes)
		p.Select.Size.validate(at+"select.", bad)
		if len(p.Select.Seeds) == 0 {
			bad[at+"select.seeds"] = "needs at least one entry"
		}
		for _, name := range p.Models {
			n := 0
			for _, a := range p.Select.Axes {
				if a.concerns(name) {
					n++
				}
			}
			if n > 1 {
				bad[at+"select.axes"] = fmt.Sprintf("%s has %d; one hyperparameter is chosen for a model", name, n)
			}
		}
	}
	for i, a := range axes {
		if why := a.problem(p.Random != nil && i < len(p.Vary)); why != "" {
			bad[at+"vary"] = why
		}
	}
	p.validateSearch(at, bad)
}

func (a Axis) concerns(name string) bool {
	return len(a.Models) == 0 || slices.Contains(a.Models, name)
}

// axis is what Select varies for a model; false where it chooses nothing.
func (p Part) axis(name string) (Axis, bool) {
	if p.Select == nil {
		return Axis{}, false
	}
	i := slices.IndexFunc(p.Select.Axes, func(a Axis) bool { return a.concerns(name) })
	if i < 0 {
		return Axis{}, false
	}
	return p.Select.Axes[i], true
}

// settings are the combinations of the part's axes for a model, or draws from them, then its variants.
func (p Part) settings(name string) []map[string]string {
	all := grid(p.axesOf(name))
	if p.Random != nil {
		all = p.Random.settings(p.axesOf(name))
	}
	for _, v := range p.Variants {
		all = append(all, v.Set)
	}
	return all
}

// countSettings is how many settings there are, without making them; more than maxRuns are counted as one more than that.
func (p Part) countSettings(name string) int {
	axes, n := p.axesOf(name), 1
	for _, a := range axes {
		n = min(n*len(a.Values), maxRuns+1)
	}
	if p.Random != nil && len(axes) > 0 {
		n = p.Random.Draws
	}
	return n + len(p.Variants)
}

func with(set map[string]string, field, value string) map[string]string {
	out := maps.Clone(set)
	out[field] = value
	return out
}

// Runs is how many runs the plan has at most, those of Select included; runs that parts share are counted in each.
func (p Plan) Runs() int {
	n := 0
	for _, part := range p.Parts {
		for _, name := range part.Models {
			if a, ok := part.axis(name); ok {
				n += len(part.Datasets) * len(a.Values) * len(part.Select.Seeds)
			}
			n += len(part.Datasets) * len(part.Seeds) * part.countSettings(name)
		}
	}
	return n
}

// ID names the plan: its name and a sum of all that it says.
func (p Plan) ID() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("sweep: a plan cannot be written: %v", err)) // it is plain data
	}
	return cmp.Or(word(p.Name, 24), "sweep") + "-" + sum(text)
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text))[:8] }

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// word makes text fit for an id: at most n of a-z, 0-9 and '-'.
func word(text string, n int) string {
	text = strings.Trim(notWord.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.Trim(text[:min(n, len(text))], "-")
}

// Item makes a part's run of a model on a dataset with a seed and a setting.
func (p Plan) Item(part int, name, dataset string, seed int64, set map[string]string) (Item, error) {
	return p.item(part, p.size().over(p.Parts[part].Size), name, dataset, seed, set)
}

// selecting makes a run that only serves the part's choice.
func (p Plan) selecting(part int, name, dataset string, seed int64, field, value string) (Item, error) {
	size := p.size().over(p.Parts[part].Size).over(p.Parts[part].Select.Size)
	item, err := p.item(part, size, name, dataset, seed, map[string]string{field: value})
	item.Selecting, item.Value = true, value
	return item, err
}

func (p Plan) item(part int, size Size, name, dataset string, seed int64, set map[string]string) (Item, error) {
	cfg, err := model.Default(name, size.Preset, dataset)
	if err != nil {
		return Item{Config: model.Config{Model: name, Dataset: dataset}}, err
	}
	cfg = cfg.WithFactors(p.Factors[dataset])
	cfg.Evaluate = "" // the sweep does, with the plan's flags
	if size.Steps > 0 {
		cfg.Steps = size.Steps
	}
	for _, assignments := range []map[string]string{p.Set, p.Parts[part].Set, set} {
		for _, field := range slices.Sorted(maps.Keys(assignments)) {
			if err := cfg.Set(field, assignments[field]); err != nil {
				return Item{Config: cfg}, err
			}
		}
	}
	cfg.Seed = seed
	item := Item{Part: part, Config: cfg, ID: RunID(cfg), Name: runName(cfg, set), eval: p.Eval}
	return item, cfg.Validate().OrNil()
}

// RunID names the run of a configuration, on whichever engine it is trained.
func RunID(cfg model.Config) string {
	cfg.Engine = ""
	text, err := json.Marshal(cfg)
	if err != nil {
		panic(fmt.Sprintf("sweep: a configuration cannot be written: %v", err)) // it is plain data
	}
	return fmt.Sprintf("%s-%s-s%d-%s", cfg.Model, cmp.Or(word(cfg.Dataset, 24), "data"), cfg.Seed, sum(text))
}

func runName(cfg model.Config, set map[string]string) string {
	words := []string{cfg.Model, cfg.Preset, cfg.Dataset}
	for _, field := range slices.Sorted(maps.Keys(set)) {
		words = append(words, field+"="+set[field])
	}
	return strings.Join(append(words, "seed "+strconv.FormatInt(cfg.Seed, 10)), " ")
}

type trial struct {
	Item
	err error
}

// try makes an item of every setting, with one seed, so that what is wrong shows before anything runs.
func (p Plan) try() []trial {
	var all []trial
	for i, part := range p.Parts {
		for _, dataset := range part.Datasets {
			for _, name := range part.Models {
				for _, set := range part.settings(name) {
					item, err := p.Item(i, name, dataset, part.Seeds[0], set)
					all = append(all, trial{item, err})
				}
				if a, ok := part.axis(name); ok {
					for _, v := range a.Values {
						item, err := p.selecting(i, name, dataset, part.Seeds[0], a.Field, v)
						all = append(all, trial{item, err})
					}
				}
			}
		}
	}
	return all
}

// Datasets lists every dataset of the plan once.
func (p Plan) Datasets() []string {
	var all []string
	for _, part := range p.Parts {
		for _, d := range part.Datasets {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// JSON is the plan as Read reads it.
func (p Plan) JSON() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(p); err != nil {
		panic(fmt.Sprintf("sweep: a plan cannot be written: %v", err)) // it is plain data
	}
	return b.Bytes()
}

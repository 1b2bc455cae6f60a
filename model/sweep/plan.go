// Package sweep plans sets of runs: models × datasets × seeds × hyperparameters, in parts, some of which first select a
// hyperparameter. A plan is plain data; Look compares it with the existing runs and returns what is done and what comes next.
// There is no other state, so a sweep can be interrupted and resumed anywhere.
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

// Plan describes the runs of a sweep.
type Plan struct {
	Name    string            `json:"name"`
	Preset  string            `json:"preset"`
	Steps   int               `json:"steps,omitempty"`   // of every run; 0 for the preset's
	Set     map[string]string `json:"set,omitempty"`     // hyperparameters of every run, by name
	Eval    map[string]int    `json:"eval,omitempty"`    // flags of `slotscope eval`: noise, pairs, probe, trees
	Factors map[string]int    `json:"factors,omitempty"` // number of factors by dataset, for datasets that the paper does not study; see Settle
	Parts   []Part            `json:"parts"`
}

// Size is the network size and training length of runs. A part and its selection may override it.
type Size struct {
	Preset string `json:"preset,omitempty"` // of every run; empty to inherit
	Steps  int    `json:"steps,omitempty"`  // of every run; 0 to inherit or use the preset's
}

// over returns the size at a lower level, which overrides s. A different preset uses its own steps.
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

// Part is a set of runs: every model on every dataset with every seed, for each combination of the axes and for each variant.
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

// Select selects one hyperparameter for each model and dataset before the part's own runs begin: the value with the highest
// mean InfoM over separate seeds, so that the selection does not bias the part's scores.
type Select struct {
	Seeds []int64 `json:"seeds"`
	Size
	Axes []Axis `json:"axes"` // at most one per model
}

// Axis is a hyperparameter with its values, or with a range for random draws.
type Axis struct {
	Field  string   `json:"field"`
	Values []string `json:"values,omitempty"`
	Low    float64  `json:"low,omitempty"`
	High   float64  `json:"high,omitempty"`
	Log    bool     `json:"log,omitempty"`    // draw log-uniformly
	Models []string `json:"models,omitempty"` // models it applies to; empty for all
}

// Variant is a setting to compare with the plain one.
type Variant struct {
	Set map[string]string `json:"set"`
}

// Item is one run of a plan.
type Item struct {
	ID        string // run ID; the same for the same configuration in every sweep
	Name      string // run name
	Part      int
	Selecting bool   // the run is for Select
	Value     string // value that Select tries
	Config    model.Config
	eval      map[string]int // Plan.Eval
}

const (
	maxRuns  = 5000    // per plan
	maxBytes = 1 << 20 // size of a plan file
)

// Read reads a plan from JSON; unknown keys are errors.
func Read(r io.Reader) (Plan, error) {
	var p Plan
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return p, fmt.Errorf("reading the plan: %w", err)
	}
	if len(text) > maxBytes {
		return p, model.Invalid{"": fmt.Sprintf("the plan is larger than the limit of %d bytes", maxBytes)}
	}
	if err := model.ReadJSON(bytes.NewReader(text), &p); err != nil {
		return p, model.Invalid{"": "invalid JSON in the plan: " + err.Error()}
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
		bad["name"] = "the name must be one line of text"
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
			bad["factors"] = fmt.Sprintf("%q = %d: use a dataset of the plan and a number of at least 0", name, n)
		}
	}
	for i, part := range p.Parts {
		part.validate(fmt.Sprintf("parts[%d].", i), bad)
	}
	if len(bad) > 0 {
		return bad
	}
	if n := p.Runs(); n > maxRuns {
		return model.Invalid{"parts": fmt.Sprintf("%d runs planned; the limit is %d", n, maxRuns)}
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

// Settle counts the factors of each dataset once and stores the number for datasets that the paper does not study, since baselines derive
// their latents from it. It returns an error for a dataset that count cannot open.
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
			bad[at+name] = "choose at least one"
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
			bad[at+"select.seeds"] = "choose at least one"
		}
		for _, name := range p.Models {
			n := 0
			for _, a := range p.Select.Axes {
				if a.concerns(name) {
					n++
				}
			}
			if n > 1 {
				bad[at+"select.axes"] = fmt.Sprintf("%s has %d; at most one hyperparameter can be selected per model", name, n)
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

// axis returns the axis that Select varies for a model; false if there is none.
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

// settings returns the combinations of the part's axes for a model, or draws from them, then its variants.
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

// countSettings returns the number of settings without creating them; the number of combinations is capped at maxRuns + 1.
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

// Runs returns the maximum number of runs of the plan, including those of Select; runs shared by parts are counted in each.
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

// ID returns the plan's ID: its name and a hash of its JSON.
func (p Plan) ID() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("sweep: a plan cannot be written: %v", err)) // it is plain data
	}
	return cmp.Or(word(p.Name, 24), "sweep") + "-" + sum(text)
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text))[:8] }

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// word converts text for use in an ID: at most n of a-z, 0-9 and '-'.
func word(text string, n int) string {
	text = strings.Trim(notWord.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.Trim(text[:min(n, len(text))], "-")
}

// Item returns a part's run of a model on a dataset with a seed and a setting.
func (p Plan) Item(part int, name, dataset string, seed int64, set map[string]string) (Item, error) {
	return p.item(part, p.size().over(p.Parts[part].Size), name, dataset, seed, set)
}

// selecting returns a run that only serves the part's selection.
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
	cfg.Evaluate = "" // the sweep evaluates, with the plan's flags
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

// RunID returns the run ID of a configuration, independent of how it is computed.
func RunID(cfg model.Config) string {
	cfg = cfg.WithoutComputing()
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

// try creates an item of every setting, with one seed, to find problems before anything runs.
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

// Datasets returns the datasets of the plan, without duplicates.
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

// JSON returns the plan in the format that Read reads.
func (p Plan) JSON() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(p); err != nil {
		panic(fmt.Sprintf("sweep: a plan cannot be written: %v", err)) // it is plain data
	}
	return b.Bytes()
}

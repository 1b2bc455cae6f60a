package report

import (
	"cmp"
	"fmt"
	"image"
	"io"
	"slices"
	"strings"

	"slotscope/model"
)

// Entry is one run of a report.
type Entry struct {
	Run    model.Run
	Scores *model.Scores // nil if not yet scored
	Damage string        // why existing scores cannot be read, as a sentence; empty otherwise

	Lost int // number of steps whose points are damaged

	// Points calls yield for the points of the named series, or all if names is empty, in ascending steps; nil if there are none.
	Points func(names []string, yield func(model.Point) error) error
	// Samples returns one series of a run, which the caller may modify; nil if only Points can provide it.
	Samples func(name string) ([]model.Sample, error)
	// Pages calls yield with all series of a run, page by page in ascending steps; nil if only Points can provide them.
	Pages func(yield func(series map[string][]model.Sample) error) error
	// Names lists the series of a run; nil if only Points can provide them.
	Names func() ([]string, error)
	Sheet func() ([]byte, error) // the newest reconstructions, an encoded PNG; nil if none

	// Noisy returns the sheet of images described by Scores.Noise, nil if there is none. The function is nil if it is not available.
	Noisy func() (image.Image, error)

	// Agreement returns latents of images that all runs on the dataset encode, nil if none were kept. The function is nil if not available.
	Agreement func() (*Latents, error)

	// Pair runs images a and b of the dataset through the newest checkpoint; Between returns the pair that a report shows.
	// Both are nil without a usable checkpoint.
	Pair    func(a, b int) (Pair, error)
	Between func() (a, b int, err error)

	// Bundle writes the run's model for other programs, as a zip archive; nil omits it from the report.
	Bundle func(w io.Writer) error
}

// Damage is the sentence for existing scores that cannot be read.
const Damage = "scores.json is damaged or from another version; evaluate the run again to replace it"

// steps is the number of steps that the report groups the run by: the step of its scores, else the configured steps.
func (e Entry) steps() int {
	if e.Scores != nil {
		return e.Scores.Step
	}
	return e.Run.Config.Steps
}

// missing explains why the run is excluded from the scores; empty if it is included.
func (e Entry) missing() string {
	switch s := e.Run.State; {
	case e.Scores != nil:
		return ""
	case e.Damage != "":
		return e.Damage
	case s == model.Failed || s == model.Interrupted || s == model.Stopped:
		return strings.TrimSpace(fmt.Sprintf("%s at step %s of %s. %s", s, grouped(e.Run.Step), grouped(e.Run.Config.Steps), e.Run.Reason))
	case s == model.Finished:
		return "finished, not evaluated yet"
	}
	return fmt.Sprintf("%s, step %s of %s", e.Run.State, grouped(e.Run.Step), grouped(e.Run.Config.Steps))
}

// Group is a set of runs that differ only in their seed, with its scores.
type Group struct {
	Label   string // the model, and what distinguishes this group from others of the same model and dataset
	Dataset string
	Model   string
	Config  model.Config // shared by all; seed and engine are the first run's
	Differs []string     // names of the fields in Label

	Entries []Entry  // counted runs, by ascending seed
	Left    []Left   // excluded runs
	Scores  []Scored // one per metric
	Problem string   // why a score of the group is missing, as a sentence; empty if none is
}

// Left is a run excluded from the means, with the reason.
type Left struct {
	Entry
	Why string
}

// Scored is one metric over the seeds of a group.
type Scored struct {
	Metric Metric
	Seeds  []int64   // seeds that have a value
	Values []float64 // by seed
	Summary

	Within *model.Interval // 95% interval of a single seed's value, over the rows or votes it was measured on; nil for several seeds or if there is none
	Chance Summary         // the same score with the factors' rows shuffled, over seeds; N is 0 if not measured
}

// Text is Summary.Text, plus for a single seed the interval of its own value if there is one: "0.34 (0.31 to 0.37)".
func (s Scored) Text(plain int) string {
	text := s.Summary.Text(plain)
	if s.N == 1 && s.Within != nil {
		text += fmt.Sprintf(" (%s to %s)", fixed(float64(s.Within.Low), plain), fixed(float64(s.Within.High), plain))
	}
	return text
}

// Score returns a metric's summary over the group.
func (g Group) Score(key string) Scored {
	for _, s := range g.Scores {
		if s.Metric.Key == key {
			return s
		}
	}
	return Scored{Summary: Summarise(nil)}
}

// Best returns the run with the highest InfoM, or without InfoM the highest PSNR, as the paper does for its images; nil if none is
// scored.
func (g Group) Best() *Entry {
	for _, key := range []string{"infom", "psnr"} {
		m, _ := MetricByKey(key)
		best := -1
		for i, e := range g.Entries {
			if v := m.Of(*e.Scores); finite(v) && (best < 0 || v > m.Of(*g.Entries[best].Scores)) {
				best = i
			}
		}
		if best >= 0 {
			return &g.Entries[best]
		}
	}
	return nil
}

// sameBut is the configuration without the fields that may differ within a group: seed, engine and cadences; its number of steps is
// the entry's steps.
func (e Entry) sameBut() model.Config {
	c := SameBut(e.Run)
	c.Steps = e.steps()
	return c
}

// SameBut is a run's configuration without the fields that may differ between seeds of a group: seed, engine and cadences.
func SameBut(r model.Run) model.Config {
	c := r.Config.WithoutComputing()
	c.Seed, c.CheckpointEvery, c.SampleEvery, c.EvalEvery, c.Evaluate = 0, 0, 0, 0, ""
	return c
}

// Groups collects runs that differ only in their seed, in the paper's order of datasets and models.
func Groups(entries []Entry) []Group {
	var groups []Group
	at := map[model.Config]int{}
	for _, e := range entries {
		key := e.sameBut()
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			cfg := e.Run.Config
			cfg.Steps = e.steps()
			groups = append(groups, Group{Dataset: key.Dataset, Model: key.Model, Config: cfg})
		}
		groups[i].add(e)
	}
	slices.SortStableFunc(groups, byPaper)
	for i := range groups {
		groups[i].finish()
	}
	label(groups)
	return groups
}

func (g *Group) add(e Entry) {
	if why := e.missing(); why != "" {
		g.Left = append(g.Left, Left{e, why})
		return
	}
	g.Entries = append(g.Entries, e)
}

// finish sorts the seeds, excludes repeated ones, and summarizes the scores.
func (g *Group) finish() {
	slices.SortStableFunc(g.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Run.Config.Seed, b.Run.Config.Seed), b.Run.Created.Compare(a.Run.Created), cmp.Compare(a.Run.ID, b.Run.ID))
	})
	kept := g.Entries[:0:0]
	for _, e := range g.Entries {
		if n := len(kept); n > 0 && kept[n-1].Run.Config.Seed == e.Run.Config.Seed {
			g.Left = append(g.Left, Left{e, fmt.Sprintf("repeats seed %d of the newer run %s", e.Run.Config.Seed, kept[n-1].Run.ID)})
			continue
		}
		kept = append(kept, e)
	}
	g.Entries = kept
	slices.SortStableFunc(g.Left, func(a, b Left) int {
		return cmp.Or(cmp.Compare(a.Run.Config.Seed, b.Run.Config.Seed), cmp.Compare(a.Run.ID, b.Run.ID))
	})
	for _, m := range every() {
		g.Scores = append(g.Scores, g.summarise(m))
	}
	g.agree()
}

// summarise is one metric over the group's runs.
func (g *Group) summarise(m Metric) Scored {
	s, chance := Scored{Metric: m}, []float64{}
	for _, e := range g.Entries {
		v := m.Of(*e.Scores)
		if !finite(v) {
			continue
		}
		s.Seeds, s.Values = append(s.Seeds, e.Run.Config.Seed), append(s.Values, v)
		if m.chance != nil {
			chance = append(chance, float64(m.chance(*e.Scores)))
		}
		if m.within != nil {
			if i := m.within(*e.Scores); i.Low.Defined() && i.High.Defined() {
				s.Within = &i
			}
		}
	}
	if len(s.Values) != 1 {
		s.Within = nil
	}
	s.Summary, s.Chance = Summarise(s.Values), Summarise(chance)
	return s
}

func byPaper(a, b Group) int {
	by := cmp.Or(
		cmp.Compare(rank(datasetOrder, a.Dataset), rank(datasetOrder, b.Dataset)), cmp.Compare(a.Dataset, b.Dataset),
		cmp.Compare(rank(modelOrder, a.Model), rank(modelOrder, b.Model)), cmp.Compare(a.Model, b.Model))
	if by != 0 {
		return by
	}
	return compareConfigs(a.Config, b.Config)
}

// seedless is a configuration without the seed and how it is computed.
func seedless(c model.Config) model.Config {
	c.Seed = 0
	return c.WithoutComputing()
}

// settingPlaces numbers the settings of runs in the paper's order; settings that compare equal share a number. It compares settings
// rather than runs, because comparisons are slow and many runs share few settings.
func settingPlaces(runs []Entry) map[model.Config]int {
	places := map[model.Config]int{}
	var groups []Group
	for _, e := range runs {
		c := seedless(e.Run.Config)
		if _, seen := places[c]; !seen {
			places[c] = 0
			groups = append(groups, Group{Dataset: c.Dataset, Model: c.Model, Config: c})
		}
	}
	slices.SortStableFunc(groups, byPaper)
	for i, g := range groups {
		if i == 0 {
			continue
		}
		places[g.Config] = places[groups[i-1].Config]
		if byPaper(groups[i-1], g) != 0 {
			places[g.Config]++
		}
	}
	return places
}

// rank is a name's index in order; unknown names come last.
func rank(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// compareConfigs orders settings of one model: the unmodified model first, then ablations in the paper's order; numbers by size.
func compareConfigs(a, b model.Config) int {
	if seedless(a) == seedless(b) {
		return 0 // fast path: most runs are seeds of the same configuration
	}
	if by := cmp.Compare(ablated(a), ablated(b)); by != 0 {
		return by
	}
	fields := model.Fields()
	for _, group := range []string{"ablation", "network", "objective", "optimizer", "run"} {
		for _, f := range fields {
			if f.Group != group || f.Name == "seed" || f.Computing() {
				continue
			}
			x, y := f.Get(a), f.Get(b)
			if x == y {
				continue
			}
			if f.Kind == model.Int || f.Kind == model.Float {
				return cmp.Compare(number(x), number(y))
			}
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// ablated is the 1-based index of the first ablation field that a configuration changes; 0 if none.
func ablated(c model.Config) int {
	plain, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err != nil {
		return 0
	}
	for i, f := range model.Fields() {
		if f.Group == "ablation" && f.Get(c) != f.Get(plain) {
			return i + 1
		}
	}
	return 0
}

// label names every group by its model and by the fields that differ among groups of that model on that dataset.
func label(groups []Group) {
	for i := range groups {
		g := &groups[i]
		var rivals []model.Config
		for _, o := range groups {
			if o.Dataset == g.Dataset && o.Model == g.Model {
				rivals = append(rivals, o.Config)
			}
		}
		g.Differs = Differing(rivals)
		words := []string{ModelLabel(g.Model)}
		if g.Model == model.External {
			words[0] = g.Config.Preset // the model's own name, or the tool it comes from
		}
		for _, name := range g.Differs {
			if g.Model == model.External && name == "preset" {
				continue
			}
			words = append(words, setting(name, g.Config))
		}
		g.Label = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
	}
}

// Differing lists the fields in which configurations differ, except seed, engine and cadence. If presets differ, it ignores values
// that are a preset's defaults.
func Differing(configs []model.Config) []string {
	var names []string
	if len(configs) < 2 {
		return nil
	}
	presets := different(configs, mustField("preset").Get)
	for _, f := range model.Fields() {
		if f.Name == "seed" || f.Computing() || f.Group == "cadence" && f.Name != "eval_images" {
			continue
		}
		if different(configs, func(c model.Config) string {
			if presets && f.Name != "preset" {
				return beyondPreset(f, c)
			}
			return f.Get(c)
		}) {
			names = append(names, f.Name)
		}
	}
	return names
}

func different(configs []model.Config, get func(model.Config) string) bool {
	first := get(configs[0])
	return slices.ContainsFunc(configs[1:], func(c model.Config) bool { return get(c) != first })
}

// beyondPreset is a field's value, or empty if it is the preset's default.
func beyondPreset(f model.Field, c model.Config) string {
	def, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err == nil && f.Get(def) == f.Get(c) {
		return ""
	}
	return f.Get(c)
}

func mustField(name string) model.Field {
	f, ok := model.FieldByName(name)
	if !ok {
		panic("report: no field " + name)
	}
	return f
}

// setting formats one field's value as part of a label: "β 0.3", "no denoiser", "tiny"; empty for a switch that is off.
func setting(name string, c model.Config) string {
	f := mustField(name)
	v := f.Get(c)
	switch {
	case f.Kind == model.Bool && v == "true":
		return strings.ToLower(f.Label[:1]) + f.Label[1:]
	case f.Kind == model.Bool:
		return ""
	case name == "preset" || name == "dataset":
		return v
	case name == "symbol_init" && v == "unit":
		return "unit-magnitude symbols"
	case name == "symbol_init":
		return ""
	case f.Symbol != "":
		return f.Symbol + " " + v
	}
	return strings.ToLower(f.Label[:1]) + f.Label[1:] + " " + v
}

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
	Scores *model.Scores // nil before the run is scored
	Damage string        // why scores that there are cannot be read, as a sentence; empty otherwise

	Lost int // measured steps whose points are damaged

	// Points walks the points of the named series, all for none, steps ascending; nil where there are none.
	Points func(names []string, yield func(model.Point) error) error
	// Samples is one series of a run, for the caller to change; nil where Points must be walked for it.
	Samples func(name string) ([]model.Sample, error)
	// Pages walks all series of a run, steps ascending from page to page; nil where Points must be walked for them.
	Pages func(yield func(series map[string][]model.Sample) error) error
	// Names lists the series of a run; nil where Points must be walked for them.
	Names func() ([]string, error)
	Sheet func() ([]byte, error) // the newest reconstructions, an encoded PNG; nil for none

	// Noisy is the sheet of images that Scores.Noise describes, nil where there is none; nil where it cannot be asked for.
	Noisy func() (image.Image, error)

	// Agreement is the latents of images that all runs on the dataset encode; nil where none were kept, or where they cannot be asked for.
	Agreement func() (*Latents, error)

	// Pair takes images a and b of the dataset through the newest checkpoint; Between names the pair that a report shows.
	// Both are nil where there is no checkpoint to ask.
	Pair    func(a, b int) (Pair, error)
	Between func() (a, b int, err error)

	// Bundle writes the run's model for other programs, as a zip archive; nil leaves it out of the report.
	Bundle func(w io.Writer) error
}

// Damage is the sentence for scores that are there and cannot be read.
const Damage = "its scores.json is damaged or of another version; evaluating the run again replaces it"

// steps is how far the model had come that is reported: where it was scored, else where it was to go.
func (e Entry) steps() int {
	if e.Scores != nil {
		return e.Scores.Step
	}
	return e.Run.Config.Steps
}

// missing says in a sentence why the run has no part in the scores; empty where it has.
func (e Entry) missing() string {
	switch s := e.Run.State; {
	case e.Scores != nil:
		return ""
	case e.Damage != "":
		return e.Damage
	case s == model.Failed || s == model.Interrupted || s == model.Stopped:
		return strings.TrimSpace(fmt.Sprintf("%s at step %d of %d. %s", s, e.Run.Step, e.Run.Config.Steps, e.Run.Reason))
	case s == model.Finished:
		return "finished, but not scored: its folder has no scores.json"
	}
	return fmt.Sprintf("%s, step %d of %d", e.Run.State, e.Run.Step, e.Run.Config.Steps)
}

// Group is the runs that differ in nothing but their seed, and what they say together.
type Group struct {
	Label   string // the model, and what tells this group from others of the same model on the same dataset
	Dataset string
	Model   string
	Config  model.Config // shared by all; seed and engine are the first run's
	Differs []string     // names of the fields in Label

	Entries []Entry  // that count, seeds ascending
	Left    []Left   // that do not
	Scores  []Scored // one for each metric
	Problem string   // why a score of the group is missing, as a sentence; empty for none
}

// Left is a run that was left out of the means, and why.
type Left struct {
	Entry
	Why string
}

// Scored is one metric over the seeds of a group.
type Scored struct {
	Metric Metric
	Seeds  []int64   // that have a value
	Values []float64 // by seed
	Summary

	Within *model.Interval // 95% interval of the only seed's value, over what it was measured on; nil for several seeds, and where it has none
	Chance Summary         // of the same score with the factors' rows shuffled, over seeds; N is 0 where it was not measured
}

// Text is Summary's, and for a single seed the interval of its own value where there is one: "0.34 (0.31 to 0.37)".
func (s Scored) Text(plain int) string {
	text := s.Summary.Text(plain)
	if s.N == 1 && s.Within != nil {
		text += fmt.Sprintf(" (%s to %s)", fixed(float64(s.Within.Low), plain), fixed(float64(s.Within.High), plain))
	}
	return text
}

// Score finds a metric's summary over the group.
func (g Group) Score(key string) Scored {
	for _, s := range g.Scores {
		if s.Metric.Key == key {
			return s
		}
	}
	return Scored{Summary: Summarise(nil)}
}

// Best is the run with the highest InfoM, or without InfoM the highest PSNR; nil where none is scored. The paper shows the
// images of that run.
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

// sameBut is the configuration without what may differ within a group: seed, engine, how often things are written, and the
// number of steps, which is the entry's own.
func (e Entry) sameBut() model.Config {
	c := SameBut(e.Run)
	c.Steps = e.steps()
	return c
}

// SameBut is a run's configuration without what may differ within a group that folds seeds: seed, engine, and how often things are written.
func SameBut(r model.Run) model.Config {
	c := r.Config
	c.Seed, c.Engine, c.CheckpointEvery, c.SampleEvery, c.EvalEvery, c.Evaluate = 0, "", 0, 0, 0, ""
	return c
}

// Groups puts runs together that differ in their seed alone, in the paper's order of datasets and models.
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

// finish orders the seeds, leaves out repetitions of one, and sums up.
func (g *Group) finish() {
	slices.SortStableFunc(g.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Run.Config.Seed, b.Run.Config.Seed), b.Run.Created.Compare(a.Run.Created), cmp.Compare(a.Run.ID, b.Run.ID))
	})
	kept := g.Entries[:0:0]
	for _, e := range g.Entries {
		if n := len(kept); n > 0 && kept[n-1].Run.Config.Seed == e.Run.Config.Seed {
			g.Left = append(g.Left, Left{e, fmt.Sprintf("repeats seed %d of run %s, which is newer", e.Run.Config.Seed, kept[n-1].Run.ID)})
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

// summarise is a metric over the group's runs.
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

// seedless is a configuration without what seeds of it differ in.
func seedless(c model.Config) model.Config {
	c.Seed, c.Engine = 0, ""
	return c
}

// settingPlaces numbers the settings of runs in the paper's order; those that it does not tell apart share a place. Comparing settings takes
// long, and many runs have few.
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

// rank is a name's place in the paper's order; unknown names come after.
func rank(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// compareConfigs orders settings of one model: ablations after the plain model and as the paper lists them, numbers by size.
func compareConfigs(a, b model.Config) int {
	if a.Seed, a.Engine = b.Seed, b.Engine; a == b {
		return 0 // seeds of one configuration, of which there are many
	}
	if by := cmp.Compare(ablated(a), ablated(b)); by != 0 {
		return by
	}
	fields := model.Fields()
	for _, group := range []string{"ablation", "network", "objective", "optimizer", "run"} {
		for _, f := range fields {
			if f.Group != group || f.Name == "seed" || f.Name == "engine" {
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

// ablated is the place of the first design choice that a configuration undoes; 0 for none.
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

// label names every group by its model and by what differs among the groups of that model on that dataset.
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
			words[0] = g.Config.Preset // its own name, or the tool that it comes from
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

// Differing lists the fields in which configurations differ, seed, engine and cadence apart. Where presets differ, what each
// preset sets itself is left out.
func Differing(configs []model.Config) []string {
	var names []string
	if len(configs) < 2 {
		return nil
	}
	presets := different(configs, mustField("preset").Get)
	for _, f := range model.Fields() {
		if f.Name == "seed" || f.Name == "engine" || f.Group == "cadence" && f.Name != "eval_images" {
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

// beyondPreset is a field's value, or nothing where it is its preset's own.
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

// setting writes one field's value as a part of a label: "β 0.3", "no denoiser", "tiny"; empty for a switch that is off.
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

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slotscope/model"
)

// Card writes card.md, a model card with a section for each group.
func (r *Report) Card(w io.Writer) error {
	var l lines
	l.add("# Model card: %s\n", mdText(r.Title))
	done := map[string]bool{}
	for _, s := range r.Sections {
		for _, g := range s.Groups {
			key := g.Label + "\x00" + g.Dataset + "\x00" + fmt.Sprint(g.ids())
			if len(g.Entries) > 0 && !done[key] {
				done[key] = true
				g.card(&l)
			}
		}
	}
	if len(done) == 0 {
		l.add("None of these runs has scores yet, so there is no model to describe.\n")
	}
	l.add("## Intended use\n")
	l.add("Research and teaching on disentangled representations of synthetic images: comparing models under one protocol and inspecting what individual slots encode. Not intended for images of people, decisions about people, or images unlike the training data.\n")
	l.add("## Limitations\n")
	for _, limit := range limits {
		l.add("- %s", limit)
	}
	return l.to(w)
}

var limits = []string{
	"Scores are measured on training images, as is customary in this field, and do not predict performance on new scenes. Only scores labelled unseen use images that were held out of training.",
	"InfoE and DCI's I are near 1 for any large, evenly used codebook; compare them with the held-out InfoE.",
	"Which factor a slot encodes, if any, varies from seed to seed.",
	"Intervals cover variation between seeds only, with the same data, program and hyperparameters.",
}

func (g Group) card(l *lines) {
	c := g.Config
	first := g.Entries[0]
	l.add("## %s on %s\n", mdText(g.Label), mdText(DatasetLabel(g.Dataset)))
	l.add("| | |\n| --- | --- |")
	if c.Model == model.External {
		l.add("| Model | %s, from another program: m = %d, k = %d |", mdText(c.Preset), c.M, c.K)
		l.add("| Data | %s |", g.data())
		l.add("| Training | by another program, %s steps |", grouped(first.Run.Step))
	} else {
		l.add("| Model | %s, preset `%s`: d = %d, m = %d, k = %d |", ModelLabel(c.Model), c.Preset, c.D, c.M, c.K)
		l.add("| Parameters | %s |", grouped(first.Run.Parameters))
		l.add("| Data | %s |", g.data())
		l.add("| Training | %s steps of %d images, AdamW, learning rate %g |", grouped(c.Steps), c.Batch, c.LR)
		l.add("| Changes from the preset | %s |", mdText(g.changed()))
	}
	l.add("| Seeds | %s |", seedList(g.seeds()))
	l.add("| Compute | %s |", g.compute())
	l.add("| Comparison with the paper | %s |", mdText(g.claims()))
	l.add("| Program revision | %s |", strings.Join(g.each(func(e Entry) string { return "`" + e.Run.Revision + "`" }), ", "))
	for _, s := range g.Scores {
		if s.N > 0 {
			l.add("| %s | %s (n = %d) |", mdHead(s.Metric), s.Text(s.Metric.Decimals), s.N)
		}
	}
	l.add("")
}

// claims states whether the group's scores may be compared with the paper's, and if not, why.
func (g Group) claims() string {
	if why := withheld(plural(len(g.Entries), "seed"), len(g.Entries), g.departures()); why != "" {
		return "no claim: " + why
	}
	return "trained and evaluated like the published runs"
}

// data describes the training images and, if any, the held-out images that are measured separately.
func (g Group) data() string {
	text := fmt.Sprintf("%s (%s), all images", mdText(DatasetLabel(g.Dataset)), mdCode(g.Dataset))
	for _, e := range g.Entries {
		if h := e.Scores.HeldOut; h != nil {
			return text + fmt.Sprintf("; held out and measured as unseen: %s", mdCode(h.Dataset))
		}
	}
	return text
}

// changed lists the fields that differ from the preset's defaults.
func (g Group) changed() string {
	var words []string
	for _, f := range changedFields(g.Config) {
		words = append(words, f.Name+" = "+f.Get(g.Config))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// changedFields are the fields in which a configuration differs from its preset's defaults, except the seed and how it was computed.
func changedFields(c model.Config) []model.Field {
	def, err := model.Default(c.Model, c.Preset, c.Dataset)
	if err != nil {
		return nil
	}
	var changed []model.Field
	for _, f := range model.Fields() {
		if f.Name != "seed" && !f.Computing() && f.Get(c) != f.Get(def) {
			changed = append(changed, f)
		}
	}
	return changed
}

func (g Group) seeds() []int64 {
	var seeds []int64
	for _, e := range g.Entries {
		seeds = append(seeds, e.Run.Config.Seed)
	}
	return seeds
}

// compute is the engines and the training time of the runs.
func (g Group) compute() string {
	total := 0.0
	for _, e := range g.Entries {
		total += e.seconds()
	}
	text := strings.Join(g.each(func(e Entry) string { return e.Run.Engine }), ", ")
	if total == 0 {
		return text
	}
	each := time.Duration(total/float64(len(g.Entries))) * time.Second
	return fmt.Sprintf("%s, %v per run, %v total", text, each, time.Duration(total)*time.Second)
}

// each collects the distinct non-empty values of say over the runs.
func (g Group) each(say func(Entry) string) []string {
	var all []string
	for _, e := range g.Entries {
		if s := say(e); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// grouped writes an integer with thousands separators.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Reproduce writes REPRODUCE.md: the commands that train and score the same runs, and the engines and revisions of the originals.
func (r *Report) Reproduce(w io.Writer) error {
	var l lines
	l.add("# How to reproduce these numbers\n")
	l.add("A configuration and a seed determine a run up to rounding; a different engine or processor may round differently.\n")
	l.add("All at once, including a comparison of the intervals:\n\n```sh\nslotscope reproduce report.zip\n```\n")
	l.add("Or step by step: train each run, then evaluate it with the options used for the scores in this report. RUN is the id that `train` prints.\n\n```sh")
	for _, e := range r.Runs {
		l.add("%s", e.command())
		if e.Scores != nil && e.Scores.Evaluated() {
			l.add("slotscope eval RUN %s", strings.Join(e.Scores.EvalFlags(), " "))
		}
	}
	l.add("```\n")
	if r.Again != "" {
		l.add("The report itself, from existing runs:\n\n```sh\n%s%s\n```\n", r.Again, bundlesFlag(r.bundles()))
	}
	if models := r.bundles(); len(models) > 0 {
		l.add("The trained models, for PyTorch, ONNX and Slotscope; `verify` recomputes their scores, `adopt` imports them as runs:\n\n```sh")
		for _, f := range models {
			l.add("slotscope verify %s", f.Name)
		}
		l.add("```\n")
	}
	l.add("| run | seed | engine | revision | parameters |\n| --- | --: | --- | --- | --: |")
	for _, e := range r.Runs {
		l.add("| `%s` | %d | %s | `%s` | %s |", e.Run.ID, e.Run.Config.Seed, e.Run.Engine, e.Run.Revision, grouped(e.Run.Parameters))
	}
	l.add("\nFull configurations are in results.json; checksums of all files are in %s (`sha256sum -c %s`).", SumsName, SumsName)
	return l.to(w)
}

func bundlesFlag(models []File) string {
	if len(models) == 0 {
		return ""
	}
	return " --bundles"
}

// command is the `slotscope train` command that reproduces the run, or a comment if another program trained it.
func (e Entry) command() string {
	c := e.Run.Config
	if c.Model == model.External {
		return fmt.Sprintf("# run %s was trained by another program: train it there, then run `slotscope adopt` or `slotscope import`", e.Run.ID)
	}
	words := []string{"slotscope", "train", "--dataset", c.Dataset, "--model", c.Model, "--preset", c.Preset, "--seed", fmt.Sprint(c.Seed), "--steps", fmt.Sprint(c.Steps)}
	for _, f := range changedFields(c) {
		switch f.Name {
		case "dataset", "model", "preset", "steps":
		default:
			words = append(words, "--set", f.Name+"="+f.Get(c))
		}
	}
	for i := range words {
		words[i] = quoted(words[i])
	}
	return strings.Join(words, " ")
}

// AgainOf is the command that recreates a report of runs or of a sweep. It does not depend on the order of names.
func AgainOf(names ...string) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = quoted(name)
	}
	slices.Sort(words)
	return "slotscope report " + strings.Join(slices.Compact(words), " ") + " --out report"
}

// quoted quotes a word for the shell if needed.
func quoted(word string) string {
	if strings.Trim(word, plainInShell) == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/+"

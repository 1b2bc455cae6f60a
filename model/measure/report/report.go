package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

// Input is what a report is made of.
type Input struct {
	Title      string
	Parts      []Part
	Selections []Selection // hyperparameters that were chosen on the way; empty outside sweeps
	Rule       Rule        // empty for PaperRule
	Again      string      // the command that makes this report from the same runs
}

// Selection is the choice of one hyperparameter for one model on one dataset, by mean InfoM over its own seeds.
type Selection struct {
	Model, Dataset string
	Field          string // name of the hyperparameter
	Options        []Option
	Chosen         string // empty while undecided
}

// Option is one value that was tried.
type Option struct {
	Value string
	InfoM Summary
	Runs  []string // ids
}

// Report is an input, grouped and summed up.
type Report struct {
	Input
	Sections []Section
	Runs     []Entry // of all parts, each once, by dataset, model, setting and seed

	Told func(Progress) // hears, often, how far the writing of files has come; may be nil
	now  Progress
	draw func() ([][]figure.Figure, error) // of each section, drawn once
}

// New makes a report. Runs without scores are listed, not refused: curves can be reported all the same.
func New(in Input) (*Report, error) {
	if in.Rule == "" {
		in.Rule = PaperRule
	}
	if !slices.Contains(Rules(), in.Rule) {
		return nil, model.Invalid{"rule": fmt.Sprintf("%q is not a rule for bold; use paper, overlap or none", in.Rule)}
	}
	r := &Report{Input: in}
	seen := map[string]bool{}
	for _, p := range in.Parts {
		r.Sections = append(r.Sections, NewSection(p, in.Rule))
		for _, e := range p.Entries {
			if !seen[e.Run.ID] {
				seen[e.Run.ID] = true
				r.Runs = append(r.Runs, e)
			}
		}
	}
	if len(r.Runs) == 0 {
		return nil, model.Invalid{"runs": "a report needs at least one run"}
	}
	r.draw = sync.OnceValues(r.figures)
	places := settingPlaces(r.Runs)
	slices.SortStableFunc(r.Runs, func(a, b Entry) int {
		x, y := a.Run.Config, b.Run.Config
		return cmp.Or(cmp.Compare(places[seedless(x)], places[seedless(y)]), cmp.Compare(x.Seed, y.Seed), cmp.Compare(a.Run.ID, b.Run.ID))
	})
	return r, nil
}

// Left lists the runs that no section counts.
func (r *Report) Left() []Left {
	counted := map[string]bool{}
	for _, s := range r.Sections {
		for _, g := range s.Groups {
			for _, e := range g.Entries {
				counted[e.Run.ID] = true
			}
		}
	}
	var all []Left
	for _, s := range r.Sections {
		for _, l := range s.Left() {
			if !counted[l.Run.ID] {
				counted[l.Run.ID] = true
				all = append(all, l)
			}
		}
	}
	return all
}

// Notes are the sentences that stand under every table.
func (r *Report) Notes() []string {
	notes := []string{
		"Mean ± half the width of the 95% interval of the mean over seeds, by Student's t with n − 1 degrees of freedom and Bessel's correction; the half width is rounded to one significant digit and the mean to the same place. A single seed has no interval.",
		r.Rule.About(),
		fmt.Sprintf("Nothing is set in bold, and nothing is called equivalent to a published value (✓), below %d seeds or where preset, steps, batch, data, evaluation set or hyperparameters differ from the published runs; the reason stands under the table.", LeastSeeds),
		"✓ means equivalent: half the width of our 95% interval is at most the published one, and the difference of the means lies within it.",
		fmt.Sprintf("A winner is named where Welch's 95%% interval of its difference to every other row excludes 0, with at least %d seeds each.", LeastSeeds),
		"Aggregated: the mean over all datasets, seed by seed; its interval is over seeds.",
	}
	for _, e := range r.Runs {
		if e.Lost > 0 {
			notes = append(notes, fmt.Sprintf("Run %s has %d damaged lines of points: its curves leave these steps out. Its scores do not depend on them.", e.Run.ID, e.Lost))
		}
	}
	var field []string
	for _, s := range r.Sections {
		for _, g := range s.Groups {
			if g.Problem != "" {
				notes = append(notes, g.Label+" on "+DatasetLabel(g.Dataset)+": "+g.Problem)
			}
		}
		if len(s.FieldTables()) > 0 {
			field = FieldNotes
		}
	}
	notes = append(notes, field...)
	return append(notes, PublishedNotes...)
}

// File is one file of a report.
type File struct {
	Name, Type, About string
	Write             func(io.Writer) error
}

// Files lists what a report can be downloaded as, SHA256SUMS and the archive of all apart.
func (r *Report) Files() []File {
	return []File{
		{"report.html", "text/html; charset=utf-8", "Everything in one page, figures included; prints well.", r.HTML},
		{"report.md", "text/markdown; charset=utf-8", "The tables for a README or an issue.", r.Markdown},
		{"table.tex", "application/x-tex; charset=utf-8", "The paper's tables in LaTeX; compiles with booktabs alone.", r.TeX},
		{"summary.csv", "text/csv; charset=utf-8", "One line per mean, with interval and the paper's value.", r.Summary},
		{"curves.csv", "text/csv; charset=utf-8", "Every point of every series of every run, never thinned.", r.Curves},
		{"results.json", "application/json; charset=utf-8", "The whole record: every value of every seed, configurations, runs that failed.", r.JSON},
		{"card.md", "text/markdown; charset=utf-8", "A model card: data, intended use, size, compute, limits.", r.Card},
		{"REPRODUCE.md", "text/markdown; charset=utf-8", "The commands that make these numbers again.", r.Reproduce},
	}
}

// All lists Files and, under figures/, every figure as SVG and PNG and the reconstructions of each group's best run; under bundles/, the
// models of the runs that have a Bundle.
func (r *Report) All() ([]File, error) {
	files := append(r.Files(), r.bundles()...)
	drawn, err := r.draw()
	if err != nil {
		return nil, err
	}
	for i, s := range r.Sections {
		for _, f := range drawn[i] {
			files = append(files, File{"figures/" + f.Name + ".svg", "image/svg+xml", f.Title, bytesOf(func() ([]byte, error) { return f.SVG(), nil })},
				File{"figures/" + f.Name + ".png", "image/png", f.Title, bytesOf(func() ([]byte, error) { return f.PNG(2) })})
		}
		for _, d := range s.Datasets() {
			sheets, err := s.Sheets(d)
			if err != nil {
				return nil, err
			}
			for j, sheet := range sheets {
				name := fmt.Sprintf("figures/%s.png", slug(sectionPrefix(i), d, sheet.Label, "reconstructions", fmt.Sprint(j+1)))
				files = append(files, File{name, "image/png", sheet.Label, bytesOf(func() ([]byte, error) { return sheet.PNG, nil })})
			}
		}
	}
	return files, nil
}

// bundles lists the models.
func (r *Report) bundles() (files []File) {
	for _, e := range r.Runs {
		if e.Bundle != nil {
			files = append(files, File{"bundles/" + e.Run.ID + ".zip", "application/zip", "The model of run " + e.Run.ID + ".", e.Bundle})
		}
	}
	return files
}

// figures draws every section.
func (r *Report) figures() ([][]figure.Figure, error) {
	var all [][]figure.Figure
	for i, s := range r.Sections {
		drawn, err := s.Figures(sectionPrefix(i))
		if err != nil {
			return nil, err
		}
		all = append(all, drawn)
	}
	return all, nil
}

// sectionPrefix begins the names of a section's figures.
func sectionPrefix(i int) string { return fmt.Sprintf("s%d", i+1) }

func bytesOf(make func() ([]byte, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		b, err := make()
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
}

// ErrNoFile is in the chain of errors for a name that no file of a report has.
var ErrNoFile = fmt.Errorf("no file of a report has this name: %w", model.ErrNotFound)

// File finds a file by name.
func (r *Report) File(name string) (File, error) {
	for _, f := range r.Files() {
		if f.Name == name {
			return f, nil
		}
	}
	return File{}, ErrNoFile
}

// FieldNotes are what one must know to read tables of the field's metrics.
var FieldNotes = []string{
	"By chance: the same score once the factors' rows are shuffled, and of UDR once every run's rows are; a score says something as far as it exceeds that.",
	"In brackets, for a single seed: the 95% interval of that run's value over the rows or votes that it was measured on. It says nothing of other seeds.",
	"UDR: of codes by information with Miller and Madow's correction, of numbers by lasso; each run among the other seeds of its row, so that its interval over seeds is too narrow.",
}

// lines collects text and hands it over at once.
type lines struct{ b []byte }

func (l *lines) add(format string, args ...any) { l.b = fmt.Appendf(l.b, format+"\n", args...) }

func (l *lines) to(w io.Writer) error {
	_, err := w.Write(l.b)
	return err
}

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

// Input is the content of a report.
type Input struct {
	Title      string
	Parts      []Part
	Selections []Selection // hyperparameters selected by a sweep; empty otherwise
	Rule       Rule        // empty for PaperRule
	Again      string      // command that recreates this report from the same runs
}

// Selection is the selected value of one hyperparameter for one model on one dataset, by mean InfoM over separate seeds.
type Selection struct {
	Model, Dataset string
	Field          string // name of the hyperparameter
	Options        []Option
	Chosen         string // empty while undecided
}

// Option is one value tried for a hyperparameter.
type Option struct {
	Value string
	InfoM Summary
	Runs  []string // run ids
}

// Report is an input with its runs grouped and summarized.
type Report struct {
	Input
	Sections []Section
	Runs     []Entry // of all parts, without repeats, ordered by dataset, model, setting and seed

	Told func(Progress) // called often with the progress of writing files; may be nil
	now  Progress
	draw func() ([][]figure.Figure, error) // figures by section, drawn once
}

// New builds a report. Runs without scores are accepted and listed as excluded, so that their curves can still be reported.
func New(in Input) (*Report, error) {
	if in.Rule == "" {
		in.Rule = PaperRule
	}
	if !slices.Contains(Rules(), in.Rule) {
		return nil, model.Invalid{"rule": fmt.Sprintf("unknown bold rule %q; use paper, overlap or none", in.Rule)}
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

// Left lists the runs that no section counts in its means.
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

// Notes are the sentences below the tables.
func (r *Report) Notes() []string {
	notes := []string{
		"Mean ± half-width of the 95% confidence interval of the mean over seeds (Student's t with n − 1 degrees of freedom, Bessel's correction). The half-width is rounded to one significant digit and the mean to the same place. A single seed has no interval.",
		r.Rule.About(),
		fmt.Sprintf("A row is neither bold nor marked equivalent to a published value (✓) if it has fewer than %d seeds, or if its preset, steps, batch size, data, evaluation set or hyperparameters differ from the published runs. The reason is given below the table.", LeastSeeds),
		"✓ means equivalent: the half-width of our 95% interval is at most the published half-width, and so is the difference between the means.",
		fmt.Sprintf("A winner is named only if Welch's 95%% interval of its difference from every other row excludes 0, with at least %d seeds in each row.", LeastSeeds),
		"Aggregated: the mean over all datasets for each seed; the interval is over seeds.",
	}
	for _, e := range r.Runs {
		if e.Lost > 0 {
			notes = append(notes, fmt.Sprintf("Run %s has %d damaged lines of points; its curves omit those steps. Its scores are not affected.", e.Run.ID, e.Lost))
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

// Files lists the downloadable files of a report, except SHA256SUMS and the archive of all files.
func (r *Report) Files() []File {
	return []File{
		{"report.html", "text/html; charset=utf-8", "The full report as one self-contained page with figures; suitable for printing.", r.HTML},
		{"report.md", "text/markdown; charset=utf-8", "The tables in Markdown, for a README or an issue.", r.Markdown},
		{"table.tex", "application/x-tex; charset=utf-8", "The paper's tables in LaTeX; needs only the booktabs package.", r.TeX},
		{"summary.csv", "text/csv; charset=utf-8", "One row per mean, with its interval and the paper's value.", r.Summary},
		{"curves.csv", "text/csv; charset=utf-8", "All points of all series of all runs, not thinned.", r.Curves},
		{"results.json", "application/json; charset=utf-8", "The full record: all values by seed, configurations and failed runs.", r.JSON},
		{"card.md", "text/markdown; charset=utf-8", "A model card: data, intended use, size, compute and limitations.", r.Card},
		{"REPRODUCE.md", "text/markdown; charset=utf-8", "The commands that reproduce these numbers.", r.Reproduce},
	}
}

// All lists Files and, under figures/, every figure as SVG and PNG and the reconstructions of each group's best run, and under
// bundles/, the models of the runs that have a Bundle.
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

// bundles lists the model archives of the runs.
func (r *Report) bundles() (files []File) {
	for _, e := range r.Runs {
		if e.Bundle != nil {
			files = append(files, File{"bundles/" + e.Run.ID + ".zip", "application/zip", "Model of run " + e.Run.ID + ".", e.Bundle})
		}
	}
	return files
}

// figures draws the figures of every section.
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

// sectionPrefix is the prefix of the names of a section's figures.
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

// ErrNoFile is returned, wrapped, for a name that no file of a report has.
var ErrNoFile = fmt.Errorf("a report has no file of this name: %w", model.ErrNotFound)

// File returns the file with the given name.
func (r *Report) File(name string) (File, error) {
	for _, f := range r.Files() {
		if f.Name == name {
			return f, nil
		}
	}
	return File{}, ErrNoFile
}

// FieldNotes explain the tables of metrics from other papers.
var FieldNotes = []string{
	"Chance: the same score after shuffling the rows of the factors (for UDR, the rows of every run). A score is meaningful only to the extent that it exceeds its chance level.",
	"In parentheses, for a single seed: the 95% interval of that run's value over the rows or votes it was measured on. It does not cover variation between seeds.",
	"UDR: for codes, by mutual information with the Miller–Madow correction; for numbers, by lasso. Each run is compared with the other seeds of its row, so the interval over seeds is too narrow.",
}

// lines accumulates text and writes it in one call.
type lines struct{ b []byte }

func (l *lines) add(format string, args ...any) { l.b = fmt.Appendf(l.b, format+"\n", args...) }

func (l *lines) to(w io.Writer) error {
	_, err := w.Write(l.b)
	return err
}

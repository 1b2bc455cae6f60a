package report

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"slotscope/model"
)

func TestDepartures(t *testing.T) {
	for _, c := range []struct {
		model, preset, dataset string
		images                 int
		change                 func(*model.Config)
		want                   string
	}{
		{"hrr", "paper", "shapes3d", 10_000, nil, ""},
		{"vqvae", "paper", "mpi3d-complex", 20_000, func(c *model.Config) { c.WeightDecay = 0.01 }, ""}, // within the paper's sweep
		{"hrr", "tiny", "shapes3d", 10_000, nil, "preset tiny instead of paper, 20,000 steps instead of 125,000, batch 32 instead of 128"},
		{"hrr", "paper", "shapes3d-synthetic", 10_000, nil, "other images (Shapes3D, synthetic) instead of Shapes3D"},
		{"hrr", "paper", "shapes3d[shape=cube]", 10_000, nil, "a subset of Shapes3D instead of all images"},
		{"hrr", "paper", "dsprites", 10_000, nil, "dataset dSprites, which has no published values"},
		{"hrr", "paper", "isaac3d", 2_000, nil, "2,000 evaluation images instead of 10,000"},
		{"hrr", "paper", "isaac3d", 10_000, func(c *model.Config) { c.NoDenoiser, c.LambdaCB = true, 0.1 }, "λ_cb 0.1 instead of 0.001, no denoiser"},
		{"hrr", "paper", "isaac3d", 10_000, func(c *model.Config) { c.CheckpointEvery, c.Seed = 7, 9 }, ""},
	} {
		cfg, err := model.Default(c.model, c.preset, c.dataset)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(&cfg)
		}
		if got := strings.Join(Departures(cfg, c.images), ", "); got != c.want {
			t.Errorf("%s %s on %s: got %q, want %q", c.model, c.preset, c.dataset, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	published, _ := PublishedFor("shapes3d", "hrr", "infom") // 0.85 ± 0.05
	infom, _ := MetricByKey("infom")
	cell := func(n int, mean, half float64, departs ...string) Cell {
		return Cell{Scored: Scored{Metric: infom, Summary: Summary{N: n, Mean: mean, Half: half}}, Published: &published, Departs: departs}
	}
	for _, c := range []struct {
		cell       Cell
		equivalent bool
		why        string
	}{
		{cell(3, 0.85, 0.05), true, ""},
		{cell(3, 0.90, 0.05), true, ""}, // at both limits
		{cell(5, 0.91, 0.01), false, "Not equivalent: the difference (+0.06) exceeds the published ± 0.05."},
		{cell(5, 0.79, 0.01), false, "Not equivalent: the difference (−0.06) exceeds the published ± 0.05."},
		{cell(5, 0.85, 0.06), false, "Not shown to be equivalent: our interval (± 0.06) is wider than the published one (± 0.05)."},
		{cell(2, 0.85, 0.01), false, "No claim: 2 seeds instead of at least 3."},
		{cell(1, 0.85, math.NaN(), "preset tiny instead of paper"), false, "No claim: 1 seed instead of at least 3, preset tiny instead of paper."},
		{cell(0, math.NaN(), math.NaN()), false, ""},
	} {
		if equivalent, why := c.cell.Match(); equivalent != c.equivalent || why != c.why {
			t.Errorf("%v ± %v of %d: %v %q", c.cell.Mean, c.cell.Half, c.cell.N, equivalent, why)
		}
	}
}

func TestWinner(t *testing.T) {
	high, mid, low := Summarise([]float64{0.90, 0.91, 0.92}), Summarise([]float64{0.5, 0.7, 0.9}), Summarise([]float64{0.1, 0.11, 0.12})
	for _, c := range []struct {
		column      []Summary
		first, next int
		wins        bool
	}{
		{[]Summary{low, high}, 1, 0, true},
		{[]Summary{mid, high, low}, 1, 0, false}, // mid's interval is too wide
		{[]Summary{Summarise([]float64{0.1, 0.11}), high}, 1, 0, false},
		{[]Summary{high, Summarise(nil)}, -1, -1, false},
		{[]Summary{high, high}, 0, 1, false},
	} {
		if first, next, wins := Winner(c.column); first != c.first || next != c.next || wins != c.wins {
			t.Errorf("%+v: %d %d %v", c.column, first, next, wins)
		}
	}
}

func TestWithheldRows(t *testing.T) {
	w := &world{}
	for seed := range int64(3) {
		w.add("vqvae", "shapes3d", seed, 0.5, 40, asPaper)
		w.add("qlae", "shapes3d", seed, 0.5, 40, nil)
		w.add("hrr", "shapes3d", seed, 0.5, 40, nil)
	}
	w.add("betavae", "shapes3d", 0, 0.5, 40, asPaper)
	got := reportOf(t, w).Sections[0].Table("shapes3d", Columns()).Withheld()
	want := []string{"No claim for β-VAE: 1 seed instead of at least 3.", "No claim for QLAE; HRR: preset tiny instead of paper, 100 steps instead of 125,000, batch 32 instead of 128."}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// evidence is what decides whether a claim is allowed, stated independently of Departures.
type evidence struct {
	values []float64 // InfoM by seed
	config model.Config
	images int
}

func (e evidence) may() bool {
	c := e.config
	return len(e.values) >= 3 && c.Preset == "paper" && c.Steps == 125_000 && c.Batch == 128 && e.images == 10_000 && c.Dataset != rendered && c.Dataset != "dsprites"
}

// beats reports whether Welch's 95% interval of the difference between two means is above zero, with at least three seeds each.
func beats(x, y []float64) bool {
	a, va := meanVariance(x)
	b, vb := meanVariance(y)
	if len(x) < 3 || len(y) < 3 {
		return false
	}
	va, vb = va/float64(len(x)), vb/float64(len(y))
	if va+vb == 0 {
		return a > b
	}
	nu := (va + vb) * (va + vb) / (va*va/float64(len(x)-1) + vb*vb/float64(len(y)-1))
	return a-b > distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile(0.975)*math.Sqrt(va+vb)
}

func meanVariance(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, variance
}

// drawWorld makes up to five of the paper's models on one dataset, trained and measured in random ways.
func drawWorld(t *rapid.T) (*world, map[string]evidence) {
	w, all := &world{}, map[string]evidence{}
	dataset := rapid.SampledFrom([]string{"shapes3d", "isaac3d", rendered, "dsprites"}).Draw(t, "dataset")
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"hrr", "vqvae", "qlae", "betavae", "betatcvae"}), 1, 5, rapid.ID).Draw(t, "models")
	for _, name := range names {
		seeds := rapid.IntRange(1, 5).Draw(t, "seeds")
		preset := rapid.SampledFrom([]string{"paper", "paper", "small"}).Draw(t, "preset")
		steps := rapid.SampledFrom([]int{125_000, 125_000, 125_000, 60}).Draw(t, "steps")
		batch := rapid.SampledFrom([]int{128, 128, 128, 64}).Draw(t, "batch")
		e := evidence{images: rapid.SampledFrom([]int{10_000, 10_000, 10_000, 500}).Draw(t, "images")}
		center := rapid.Float64Range(0.3, 0.9).Draw(t, "center")
		for seed := range seeds {
			v := center + rapid.Float64Range(-0.02, 0.02).Draw(t, "value")
			entry := w.add(name, dataset, int64(seed), v, 30+10*v, func(c *model.Config) {
				asPaper(c)
				c.Steps, c.Batch = steps, batch
				if preset != "paper" {
					*c, _ = model.Default(name, preset, dataset)
				}
				c.Seed = int64(seed)
			})
			entry.Scores.Images, entry.Points, entry.Sheet = e.images, nil, nil
			e.values, e.config = append(e.values, v), entry.Run.Config
		}
		all[ModelLabel(name)] = e
	}
	return w, all
}

// TestNoClaimOutsideTheRules: no table or file shows bold, a tick, a winner or published values against the rules, and every withheld
// claim has its reason below the table.
func TestNoClaimOutsideTheRules(t *testing.T) {
	claims := 0
	rapid.Check(t, func(t *rapid.T) {
		w, all := drawWorld(t)
		rule := rapid.SampledFrom(Rules()).Draw(t, "rule")
		r, err := New(Input{Title: "any", Parts: []Part{{Entries: w.entries}}, Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Sections[0]
		for _, table := range s.Tables(Columns()) {
			for _, v := range table.Verdicts() {
				if v.Metric.Key != "infom" || v.Winner == "" {
					continue
				}
				claims++
				for label, e := range all {
					if label != v.Winner && !beats(all[v.Winner].values, e.values) {
						t.Fatalf("%s wins over %s: %v, %v", v.Winner, label, all[v.Winner].values, e.values)
					}
				}
			}
			withheld := strings.Join(table.Withheld(), "\n")
			for label, e := range all {
				if strings.Contains(withheld, label) == e.may() {
					t.Fatalf("%s may claim: %v, below the table: %s", label, e.may(), withheld)
				}
			}
		}
		texts := map[string]string{}
		for _, f := range []string{"report.md", "report.html", "table.tex", "summary.csv", "card.md"} {
			file, err := r.File(f)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := file.Write(&b); err != nil {
				t.Fatal(err)
			}
			texts[f] = b.String()
		}
		check := func(where, label string, claimed bool) {
			if !claimed {
				return
			}
			claims++
			if !all[label].may() {
				t.Fatalf("%s makes a claim for %s: %+v", where, label, all[label])
			}
		}
		for line := range strings.Lines(texts["report.md"]) {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			label, _, _ := strings.Cut(first, ",")
			if _, ok := all[label]; ok && strings.HasPrefix(line, "| ") {
				check("report.md", label, strings.Contains(line, "**") || strings.Contains(line, "✓"))
				if strings.Contains(first, ",") && all[label].config.Dataset == rendered && !strings.Contains(line, "other images") {
					t.Fatalf("other images are compared with published values without a note: %s", line)
				}
			}
		}
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(texts["report.html"]))
		if err != nil {
			t.Fatal(err)
		}
		doc.Find("tbody tr").Each(func(_ int, row *goquery.Selection) {
			label := row.Find("th").Text()
			if _, ok := all[label]; ok {
				check("report.html", label, row.Find(".bold").Length() > 0 || strings.Contains(row.Text(), "✓"))
			}
			row.Find(".published").Each(func(_ int, p *goquery.Selection) {
				if all[label].config.Dataset == rendered && !strings.Contains(p.Text(), "other images") {
					t.Fatalf("other images are compared with published values without a note: %s", p.Text())
				}
			})
		})
		for line := range strings.Lines(texts["table.tex"]) {
			for label, e := range all {
				if strings.HasPrefix(strings.TrimSpace(line), modelNames[e.config.Model].tex+" &") {
					check("table.tex", label, strings.Contains(line, `\mathbf`))
				}
			}
		}
		rows, err := csv.NewReader(strings.NewReader(texts["summary.csv"])).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		at := func(row []string, column string) string { return row[slices.Index(rows[0], column)] }
		for _, row := range rows[1:] {
			check("summary.csv", at(row, "label"), at(row, "bold_paper") == "true" || at(row, "bold_overlap") == "true" || at(row, "equivalent") == "true")
			if at(row, "dataset") == rendered && at(row, "published_mean") != "" && at(row, "published_images") != "other images" {
				t.Fatalf("summary.csv compares other images with published values without a note: %q", row)
			}
		}
		for label, e := range all {
			chapter := texts["card.md"][strings.Index(texts["card.md"], "## "+mdText(label)+" on"):]
			check("card.md", label, strings.Contains(strings.SplitN(chapter, "\n## ", 2)[0], "trained and evaluated like the published runs"))
			_ = e
		}
	})
	if claims == 0 {
		t.Error("no draw made a claim, so nothing was tested")
	}
}

// ExampleDepartures shows the reasons below a table of short runs.
func ExampleDepartures() {
	c, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	for _, why := range Departures(c, 10_000) {
		fmt.Println(why)
	}
	// Output:
	// preset tiny instead of paper
	// 20,000 steps instead of 125,000
	// batch 32 instead of 128
	// other images (Shapes3D, synthetic) instead of Shapes3D
}

// Models of other programs keep their own names and are not compared with published values.
func TestModelsOfOthers(t *testing.T) {
	var w world
	for _, name := range []string{"theirs", "mine"} {
		w.add("hrr", "shapes3d", 0, 0.5, 0.5, func(c *model.Config) {
			*c = model.Config{Model: model.External, Preset: name, Dataset: "shapes3d", Steps: 60, M: 9, K: 512}
		})
	}
	r := reportOf(t, &w)
	var labels []string
	for _, g := range r.Sections[0].Groups {
		labels = append(labels, g.Label)
		if why := g.departures(); !slices.Equal(why, []string{"trained by another program"}) {
			t.Errorf("departures of %s: %q", g.Label, why)
		}
	}
	if slices.Sort(labels); !slices.Equal(labels, []string{"mine", "theirs"}) {
		t.Errorf("rows %q", labels)
	}
	if text := written(t, r.Reproduce); strings.Contains(text, "slotscope train") || strings.Count(text, "was trained by another program") != 2 {
		t.Errorf("REPRODUCE.md:\n%s", text)
	}
	if text := written(t, r.Card); strings.Contains(text, "AdamW") || !strings.Contains(text, "from another program: m = 9, k = 512") {
		t.Errorf("card.md:\n%s", text)
	}
}

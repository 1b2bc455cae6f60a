package report

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a set of runs with scores that can be checked by hand.
type world struct{ entries []Entry }

// asPaper configures a run like the published ones.
func asPaper(c *model.Config) {
	seed := c.Seed
	*c, _ = model.Default(c.Model, "paper", c.Dataset)
	c.Seed = seed
}

// add adds a finished run with scores; change may be nil.
func (w *world) add(name, dataset string, seed int64, infom, psnr float64, change func(*model.Config)) *Entry {
	cfg, err := model.Default(name, "tiny", dataset)
	if err != nil {
		panic(err)
	}
	cfg.Seed, cfg.Steps = seed, 100
	if change != nil {
		change(&cfg)
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := model.Run{ID: fmt.Sprintf("%s-%s-%d-%d", name, dataset, seed, len(w.entries)), Config: cfg, Created: start}
	r.State, r.Step, r.Started, r.Ended, r.Engine, r.Revision, r.Parameters = model.Finished, cfg.Steps, start, start.Add(time.Minute), "cpu", "abc123", 412_345
	dci := model.DCIScore{D: model.Score(infom - 0.1), I: 0.9, C: 0.4}
	undefined := model.DCIScore{D: model.Undefined(), I: model.Undefined(), C: model.Undefined()}
	e := Entry{Run: r, Scores: &model.Scores{Version: 1, Step: cfg.Steps, Images: 10_000, Seed: seed, PSNR: psnr,
		Metrics: &model.Metrics{Discrete: true, InfoM: model.Score(infom), InfoE: 0.99, InfoC: model.Score(infom / 2), InfoEHeldOut: model.Undefined(),
			DCI: model.DCI{OneHot: dci, SlotSum: dci, Slots: undefined}},
		Noise: &model.Noise{Power: 1, Images: 100, Curve: []model.NoisePoint{{SNR: 20, PSNR: model.Interval{Value: model.Score(psnr)}}, {SNR: -20, PSNR: model.Interval{Value: 10}}}}}}
	e.Points = func(_ []string, yield func(model.Point) error) error {
		for step := 1; step <= 100; step++ {
			p := model.Point{Step: step, Values: map[string]float64{"total": float64(seed+1) / float64(step), "psnr/eval": psnr}}
			if step == 13 {
				p.Values["total"] = math.NaN()
			}
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	}
	e.Sheet = func() ([]byte, error) {
		var b bytes.Buffer
		err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 4)))
		return b.Bytes(), err
	}
	w.entries = append(w.entries, e)
	return &w.entries[len(w.entries)-1]
}

// paperLike is two models on two datasets with three seeds each, one failed run and one without scores.
func paperLike() *world {
	w := &world{}
	for i, v := range []float64{0.80, 0.82, 0.84} {
		w.add("hrr", "shapes3d", int64(i), v, 40+float64(i), asPaper)
		w.add("hrr", "isaac3d", int64(i), v-0.1, 30+float64(i), asPaper)
		w.add("vqvae", "shapes3d", int64(i), v-0.2, 42+float64(i), asPaper)
		w.add("vqvae", "isaac3d", int64(i), v-0.3, 43+float64(i), asPaper)
	}
	failed := w.add("hrr", "shapes3d", 3, 0, 0, asPaper)
	failed.Scores, failed.Run.State, failed.Run.Step, failed.Run.Reason = nil, model.Failed, 40, "The loss is not finite."
	w.add("vqvae", "isaac3d", 3, 0, 0, asPaper).Scores = nil
	return w
}

func reportOf(t *testing.T, w *world) *Report {
	t.Helper()
	r, err := New(Input{Title: "Two models on two datasets", Parts: []Part{{Entries: w.entries}}, Again: "slotscope report a b --out report"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// 0.80, 0.82, 0.84: mean 0.82, s = 0.02, t(0.975, 2) = 4.3027, so ± 0.0497.
func TestGroupsOverSeeds(t *testing.T) {
	r := reportOf(t, paperLike())
	s := r.Sections[0]
	if got := fmt.Sprint(s.Datasets(), s.Labels()); got != "[shapes3d isaac3d] [VQ-VAE HRR]" {
		t.Errorf("order %s", got)
	}
	hrr := s.Groups[1]
	m := hrr.Score("infom")
	if hrr.Label != "HRR" || m.N != 3 || !near(m.Mean, 0.82, 1e-12) || !near(m.Half, 0.04968, 1e-5) || fmt.Sprint(m.Seeds) != "[0 1 2]" {
		t.Errorf("%s %+v", hrr.Label, m)
	}
	if len(hrr.Left) != 1 || !strings.Contains(hrr.Left[0].Why, "failed at step 40 of 125,000. The loss is not finite.") {
		t.Errorf("excluded: %+v", hrr.Left)
	}
	if best := hrr.Best(); best == nil || best.Run.Config.Seed != 2 {
		t.Errorf("best %+v", best)
	}
	if left := r.Left(); len(left) != 2 || !strings.Contains(left[1].Why, "not evaluated") {
		t.Errorf("excluded: %+v", left)
	}
}

func TestTableAndAggregation(t *testing.T) {
	s := reportOf(t, paperLike()).Sections[0]
	table := s.Table("shapes3d", Columns())
	vq, hrr := table.Rows[0].Cells, table.Rows[1].Cells
	if !hrr[0].Bold || vq[0].Bold || vq[0].Published.String() != "0.6 ± 0.1" {
		t.Errorf("InfoM: HRR bold %v, VQ-VAE bold %v, published %v", hrr[0].Bold, vq[0].Bold, vq[0].Published)
	}
	// 0.82 ± 0.0497 beside 0.85 ± 0.05; D 0.72 ± 0.0497 beside 0.88 ± 0.02; InfoE 0.99 ± 0 beside 0.999 ± 0.005
	if got := fmt.Sprint(hrr[0].equivalence(), hrr[6].equivalence()); !near(hrr[0].Difference(), -0.03, 1e-12) || got != "✓✓" {
		t.Errorf("difference %v, equivalent %s", hrr[0].Difference(), got)
	}
	if d, e := hrr[3].equivalence(), hrr[1].equivalence(); !strings.Contains(d, "is wider than the published one (± 0.02)") || e != "Not equivalent: the difference (−0.009) exceeds the published ± 0.005." {
		t.Errorf("D: %s; InfoE: %s", d, e)
	}
	// by seed: (0.80 + 0.70)/2, (0.82 + 0.72)/2, (0.84 + 0.74)/2, whose s is again 0.02
	all := s.Aggregated(Columns())
	if len(all.Rows) != 2 || all.Rows[1].Label != "HRR" || !near(all.Rows[1].Cells[0].Mean, 0.77, 1e-12) || !near(all.Rows[1].Cells[0].Half, 0.04968, 1e-5) {
		t.Errorf("%+v", all.Rows)
	}
	if one := NewSection(Part{Entries: paperLike().entries[:1]}, PaperRule).Aggregated(Columns()); len(one.Rows) != 0 {
		t.Error("a single dataset was aggregated")
	}
}

func TestGroupsTellSettingsApart(t *testing.T) {
	w := &world{}
	plain := func(c *model.Config) { c.LambdaCB = 0.001 }
	bare := func(c *model.Config) { c.NoDenoiser = true }
	w.add("hrr", "shapes3d", 0, 0.8, 40, plain).Run.Config.Engine = "xla:cuda"
	w.entries[0].Run.Config.StepsPerCall = 8
	w.add("hrr", "shapes3d", 0, 0.7, 39, plain).Run.Created = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC) // the same seed, later
	w.add("hrr", "shapes3d", 0, 0.6, 38, bare)
	w.add("hrr", "shapes3d", 1, 0.5, 37, bare)
	w.add("hrr", "shapes3d", 0, 0.9, 41, func(c *model.Config) { c.LambdaCB = 0.1 })
	s := NewSection(Part{Entries: w.entries}, PaperRule)
	var labels []string
	for _, g := range s.Groups {
		labels = append(labels, fmt.Sprintf("%s: %d", g.Label, len(g.Entries)))
	}
	if d := cmp.Diff([]string{"HRR, λ_cb 0.001: 1", "HRR, λ_cb 0.1: 1", "HRR, λ_cb 0.001, no denoiser: 2"}, labels); d != "" {
		t.Error(d)
	}
	if g := s.Groups[0]; len(g.Left) != 1 || !strings.Contains(g.Left[0].Why, "repeats seed 0") || g.Entries[0].Scores.PSNR != 39 {
		t.Errorf("the newer of two runs with one seed must count: %+v", g)
	}
	a := s.Ablations()
	if len(a) != 1 || a[0].Change != "no denoiser" || !near(a[0].Differences[0].Mean, 0.55-0.7, 1e-12) || a[0].Differences[0].Interval() {
		t.Errorf("%+v", a)
	}
	if c := s.Table("shapes3d", Columns()).Rows[2].Cells[0]; c.Published != nil {
		t.Error("an ablated row has a published value")
	}
}

func TestGrids(t *testing.T) {
	w := &world{}
	for _, d := range []int{64, 128} {
		for _, k := range []int{128, 64} {
			for seed := range int64(2) {
				w.add("hrr", "shapes3d", seed, float64(d)/1000+float64(k)/100_000, 40, func(c *model.Config) { c.D, c.K = d, k })
			}
		}
	}
	s := NewSection(Part{Entries: w.entries[:7]}, PaperRule) // d 128, k 64 has one seed
	grids := s.Grids(metricsOf([]string{"infom", "swap_exact"}))
	if len(grids) != 1 {
		t.Fatalf("%d grids", len(grids))
	}
	g := grids[0]
	if fmt.Sprint(g.Rows, g.Columns) != "[64 128] [64 128]" || !near(g.Cells[0][1].Mean, 0.12864, 1e-12) || g.Cells[0][1].N != 1 || g.Cells[1][0].N != 2 {
		t.Errorf("%+v", g)
	}
	if len(s.GridFigures("x")) == 0 {
		t.Error("no heat map")
	}
}

// Two runs with the value (s+1)/step at seed s: at step 1 the values are 1 and 2; at step 13 neither has a finite value.
func TestCurveOf(t *testing.T) {
	w := &world{}
	w.add("hrr", "shapes3d", 0, 0.8, 40, nil)
	w.add("hrr", "shapes3d", 1, 0.8, 40, nil)
	g := Groups(w.entries)[0]
	c, lines, err := g.CurveOf("total", 0)
	if err != nil || len(c.Steps) != 100 || c.Mean[0] != 1.5 || c.N[0] != 2 || !near(c.Low[0], 1.5-12.7062*0.5, 1e-3) || c.Points != 200 {
		t.Errorf("%v %+v", err, c)
	}
	if c.N[12] != 0 || !math.IsNaN(c.Mean[12]) {
		t.Errorf("step 13 has no value: %v", c.Mean[12])
	}
	thin := c.Thin(5)
	if len(thin.Steps) >= 20 || thin.Steps[0] != 1 || thin.Steps[len(thin.Steps)-1] != 100 || thin.Mean[0] != 1.5 {
		t.Errorf("thinned to %v", thin.Steps)
	}
	if len(lines) != 2 || len(lines[0].Samples) != 100 || lines[1].Run.Config.Seed != 1 || lines[1].Samples[0].Value != 2 {
		t.Errorf("lines of the runs: %+v", lines)
	}
	if few := lines[0].Thin(5); len(few) >= 20 || few[0].Step != 1 || few[len(few)-1].Step != 100 {
		t.Errorf("line thinned to %v", few)
	}
	_, smooth, _ := g.CurveOf("total", 0.5) // m: ½, then ½·½ + ½·½ = ½; without bias ½/½ = 1 and ½/¾ = ⅔
	if s := smooth[0].Samples; s[0].Value != 1 || !near(s[1].Value, 2.0/3, 1e-12) {
		t.Errorf("smoothed %v", s[:2])
	}
	for i := range g.Entries { // entries with Samples need no Points
		e := &g.Entries[i]
		e.Samples = func(name string) ([]model.Sample, error) {
			return e.walked(name)
		}
	}
	again, whole, err := g.CurveOf("total", 0.5)
	if diff := cmp.Diff(smooth[1].Samples, whole[1].Samples, cmpopts.EquateNaNs()); diff != "" || err != nil || again.Points != 200 {
		t.Error(diff, err)
	}
	if none, _, err := g.CurveOf("nothing", 0); err != nil || len(none.Steps) != 0 {
		t.Errorf("missing series: %+v %v", none, err)
	}
}

// Means span 1 to 3, so the range can be 0 to 4: the interval's −9 is outside, its 3.5 inside.
func TestInView(t *testing.T) {
	l := figure.Line{Y: []float64{1, 3}, Low: []float64{-9, 2.5}, High: []float64{1.5, 3.5}}
	if got := inView([]figure.Line{l}, false); got != [2]float64{0, 3.5} {
		t.Errorf("linear: %v", got)
	}
	if got := inView([]figure.Line{{Y: []float64{1, 4}, Low: []float64{-1, 1e-9}, High: []float64{2, 100}}}, true); got != [2]float64{0.5, 8} {
		t.Errorf("logarithmic: %v", got)
	}
	if got := inView([]figure.Line{{Y: []float64{2, 2}}}, false); got != [2]float64{} {
		t.Errorf("level: %v", got)
	}
}

func TestResultsAreNumbersOrNull(t *testing.T) {
	w := paperLike()
	w.entries[0].Scores.PSNR = math.Inf(1)
	text := written(t, reportOf(t, w).JSON)
	var back Results
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != Schema || len(back.Runs) != 14 || len(back.Left) != 2 || len(back.Sections[0].Groups) != 4 || len(back.Sections[0].Aggregated) != 2 {
		t.Errorf("%d runs, %d excluded, %+v", len(back.Runs), len(back.Left), back.Sections)
	}
	hrr := back.Sections[0].Groups[1].Scores
	if s := hrr["infom"]; s.N != 3 || len(s.Values) != 3 || !s.Bold[PaperRule] || !s.Published.Equivalent || s.Published.Why != "" {
		t.Errorf("%+v", s)
	}
	if s := hrr["psnr"]; s.N != 2 {
		t.Errorf("an infinite PSNR must be ignored: %+v", s)
	}
	if s := hrr["infoe_heldout"]; s.N != 0 || s.Mean.Defined() {
		t.Errorf("undefined values must be null: %+v", s)
	}
}

func TestSummaryAndCurves(t *testing.T) {
	r := reportOf(t, paperLike())
	lines, err := csv.NewReader(strings.NewReader(written(t, r.Summary))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range lines {
		if l[1] == "shapes3d" && l[2] == "hrr" && l[4] == "infom" {
			found = l[5] == "3" && strings.HasPrefix(l[6], "0.8") && l[13] == "0.85" && l[15] == "" && l[17] == "true" && l[18] == "" && l[19] == "0 1 2"
		}
	}
	if !found {
		t.Errorf("no line with the expected InfoM of HRR in %v", lines)
	}
	curves, err := csv.NewReader(strings.NewReader(written(t, r.Curves))).ReadAll()
	if err != nil || len(curves) != 1+14*100 {
		t.Fatalf("%d lines: %v", len(curves), err)
	}
	if got := strings.Join(curves[0], " "); got != "run dataset model seed step psnr/eval total" {
		t.Errorf("head %q", got)
	}
	if got := strings.Join(curves[1][1:], " "); got != "shapes3d vqvae 0 1 42 1" {
		t.Errorf("first line %q", got)
	}
	nan := 0
	for _, l := range curves {
		for _, v := range l[5:] {
			if v == "NaN" {
				nan++
			}
		}
	}
	if nan != 14 {
		t.Errorf("%d values are NaN, want 14", nan)
	}
}

// TestGolden compares the readable files with the golden files; -update rewrites them.
func TestGolden(t *testing.T) {
	r := reportOf(t, paperLike())
	for name, write := range map[string]func(io.Writer) error{"table.tex": r.TeX, "report.md": r.Markdown, "card.md": r.Card, "REPRODUCE.md": r.Reproduce, "summary.csv": r.Summary} {
		got, file := written(t, write), filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestTeXCompiles(t *testing.T) {
	if _, err := exec.LookPath("pdflatex"); err != nil {
		t.Skip("pdflatex is not installed")
	}
	w := paperLike()
	for seed := range int64(2) {
		w.add("hrr", "shapes3d", seed, 0.5, 30, func(c *model.Config) { c.NoDenoiser, c.LambdaCB = true, 0.1 })
		w.add("hrr", "shapes3d", seed, 0.5, 30, func(c *model.Config) { c.LambdaCB, c.Beta1 = 0.1, 0.5 })
		w.add("hrr", "shapes3d", seed, 0.5, 30, func(c *model.Config) { c.NoDenoiser, c.LambdaCB, c.Beta1 = true, 0.1, 0.5 })
	}
	r := reportOf(t, w)
	r.Title = "100% of $x_1 & #2 {~^\\} β ± “quoted”\n\n\\end{document} second line"
	r.Sections[0].Name = "a_b & c\n\n日本 ünï → ≤ \xff\x00 \\input{/etc/passwd}"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "table.tex"), []byte(written(t, r.TeX)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNoFormulas: a spreadsheet must not read a name in summary.csv as a formula.
func TestNoFormulas(t *testing.T) {
	r := reportOf(t, paperLike())
	for _, name := range []string{"=1+1", "+1", "-1", "@x", "\t=1"} {
		r.Sections[0].Name = name
		lines, err := csv.NewReader(strings.NewReader(written(t, r.Summary))).ReadAll()
		if err != nil || lines[1][0] != "'"+name {
			t.Errorf("%q is written %q, %v", name, lines[1][0], err)
		}
	}
}

// TestCardOfOddDataset: a selection by a value with bars and backticks stays in its cell.
func TestCardOfOddDataset(t *testing.T) {
	w := &world{}
	w.add("hrr", "mine[x=a|b`c]", 0, 0.5, 30, nil)
	card := written(t, reportOf(t, w).Card)
	if want := "| Data | mine\\[x=a\\|b\\`c\\] (`mine[x=a\\|b'c]`), all images |"; !strings.Contains(card, want) {
		t.Errorf("%s is not in\n%s", want, card)
	}
}

func TestAgain(t *testing.T) {
	const want = "slotscope report '$(rm x)' 'b c' a --out report"
	if got := AgainOf("b c", "a", "$(rm x)", "a"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestHTMLAsksForNothingElse(t *testing.T) {
	r := reportOf(t, paperLike())
	r.Title = "<b>bold</b>"
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(written(t, r.HTML)))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Find("script, link, iframe").Length() != 0 || doc.Find("h1").Text() != "<b>bold</b>" {
		t.Error("the page has external references, or text became markup")
	}
	doc.Find("[src], [href]").Each(func(_ int, s *goquery.Selection) {
		src := s.AttrOr("src", s.AttrOr("href", ""))
		if !strings.HasPrefix(src, "data:image/png;base64,") && !strings.HasPrefix(src, "#") {
			t.Errorf("the page loads %s", src)
		}
	})
	if n := doc.Find("figure svg").Length(); n != 12 { // scores and PSNR by seed, then PSNR, total and noise, and the correlation of metrics, on each dataset
		t.Errorf("%d figures", n)
	}
	if n := doc.Find("figure.sheet img").Length(); n != 4 {
		t.Errorf("%d sheets of reconstructions", n)
	}
	ids := map[string]bool{}
	doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
		id, _ := s.Attr("id")
		if ids[id] {
			t.Errorf("duplicate id %s", id)
		}
		ids[id] = true
	})
}

func TestZipIsTheSameForTheSameRuns(t *testing.T) {
	first, second := written(t, reportOf(t, paperLike()).Zip), written(t, reportOf(t, paperLike()).Zip)
	if first != second {
		t.Fatal("two archives of the same runs differ")
	}
	archive, err := zip.NewReader(strings.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	sums, found := "", map[string]string{}
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == SumsName {
			sums = string(b)
			continue
		}
		found[f.Name] = fmt.Sprintf("%x  %s\n", sha256.Sum256(b), f.Name)
	}
	all, err := reportOf(t, paperLike()).All()
	if err != nil || len(all) != 8+2*12+4 { // files, twelve figures twice, four sheets
		t.Fatalf("%d files, %v", len(all), err)
	}
	if len(found) != len(all) || strings.Count(sums, "\n") != len(found) {
		t.Errorf("files %v, sums\n%s", found, sums)
	}
	for name, line := range found {
		if !strings.Contains(sums, line) {
			t.Errorf("%s does not list %s", SumsName, name)
		}
	}
	if got := written(t, reportOf(t, paperLike()).Sums); got != sums {
		t.Error("the checksums differ from those in the archive")
	}
}

func TestUnscoredRunsStillReport(t *testing.T) {
	w := &world{}
	w.add("hrr", "shapes3d", 0, 0, 0, nil).Scores = nil
	r := reportOf(t, w)
	for _, f := range r.Files() {
		text := written(t, f.Write)
		if f.Name == "report.md" && !strings.Contains(text, "None of these runs has scores yet.") {
			t.Errorf("%s does not state that there are no scores:\n%s", f.Name, text)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	var invalid model.Invalid
	if _, err := New(Input{}); !errors.As(err, &invalid) || invalid["runs"] == "" {
		t.Errorf("no runs: %v", err)
	}
	if _, err := New(Input{Rule: "loud", Parts: []Part{{Entries: paperLike().entries}}}); !errors.As(err, &invalid) || invalid["rule"] == "" {
		t.Errorf("unknown rule: %v", err)
	}
	if _, err := reportOf(t, paperLike()).File("../x"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown file: %v", err)
	}
}

// TestUnseen: scores on images held out of training form a separate table in every format of the report.
func TestUnseen(t *testing.T) {
	const part, rest = "shapes3d[not(shape=cube;floor_hue=0.0)]", "shapes3d[shape=cube;floor_hue=0.0]"
	w := &world{}
	for seed, infom := range []float64{0.30, 0.40} {
		e := w.add("hrr", part, int64(seed), 0.8, 40, nil)
		e.Scores.HeldOut = &model.HeldOut{Dataset: rest, Images: 1000, PSNR: model.Interval{Value: model.Score(20 + seed)},
			Metrics: &model.Metrics{Discrete: true, InfoM: model.Score(infom), InfoE: 0.9, InfoC: 0.2}}
	}
	w.add("vqvae", "shapes3d", 0, 0.7, 41, nil)
	r := reportOf(t, w)
	tables := r.Sections[0].Tables(columns)
	var titles []string
	for _, table := range tables {
		titles = append(titles, table.Title)
	}
	if want := []string{"Shapes3D", part, rest + ", held out of training"}; !slices.Equal(titles, want) {
		t.Fatalf("tables %q, not %q", titles, want)
	}
	row := tables[2].Rows[0]
	if len(row.Cells) != 4 || row.Place != tables[1].Rows[0].Place || row.Cells[0].Text(2) != "0.35 ± 0.64" || row.Cells[3].Text(1) != "20 ± 6" { // t(0.975, 1) = 12.71; s/√2 = 0.05 and 0.5
		t.Errorf("unseen: %+v", row.Cells)
	}
	if g := r.Results().Sections[0].Groups[1].Scores; g["unseen_infom"].N != 2 || g["unseen_psnr"].Mean != 20.5 || g["infom"].Mean != 0.8 {
		t.Errorf("record: %+v", g)
	}
	for name, write := range map[string]func(io.Writer) error{"report.md": r.Markdown, "report.html": r.HTML, "tables": r.Tables, "card.md": r.Card} {
		if text := written(t, write); !strings.Contains(text, rest) && !strings.Contains(text, mdText(rest)) {
			t.Errorf("%s does not mention the held-out images", name)
		}
	}
	if text := written(t, r.Reproduce); !strings.Contains(text, "--dataset '"+part+"' --model hrr") {
		t.Errorf("REPRODUCE.md:\n%s", text)
	}
	if text := written(t, r.TeX); !strings.Contains(text, `Full results for shapes3d[shape=cube;floor\_hue=0.0], held out of training`) || !strings.Contains(text, `$0.35 \pm 0.64$`) {
		t.Errorf("table.tex:\n%s", text)
	}
	if text := written(t, r.Summary); !strings.Contains(text, ",unseen_infom,2,0.35,") {
		t.Errorf("summary.csv:\n%s", text)
	}
}

// TestSeedsArePoints: every chart of a section draws every seed of a mean as a point.
func TestSeedsArePoints(t *testing.T) {
	s := reportOf(t, paperLike()).Sections[0]
	figures, err := s.Figures("s1")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]int{}
	for _, f := range figures {
		open[f.Name] = strings.Count(string(f.SVG()), `r="2.6"`)
	}
	want := map[string]int{"s1-shapes3d-scores": 2 * 3 * 6, "s1-shapes3d-psnr": 2 * 3, "s1-shapes3d-noise": 2 * 3 * 2,
		"s1-shapes3d-total": 3 + 3 + 1} // the failed run contributes the steps it reached
	for name, n := range want {
		if open[name] != n {
			t.Errorf("%s has %d points, not %d", name, open[name], n)
		}
	}
}

// TestNoiseGrid: one row per model, from its best run, starting with an original image; a sheet that does not match the scores is omitted.
func TestNoiseGrid(t *testing.T) {
	w := &world{}
	for i, name := range []string{"hrr", "hrr", "vqvae", "qlae", "betavae"} {
		e := w.add(name, "shapes3d", int64(i), 0.5+float64(i)/10, 30, nil)
		e.Scores.Noise.Shown = []int{7, 8}
		e.Noisy = func() (image.Image, error) {
			switch i {
			case 0:
				return nil, errors.New("not the best run, so it must not be read")
			case 3:
				return image.NewGray(image.Rect(0, 0, 4*64+1, 2*64)), nil
			case 4:
				return nil, nil
			}
			return image.NewGray(image.Rect(0, 0, 4*64, 2*64)), nil // original, no noise, 20 and −20 dB
		}
	}
	figures, err := reportOf(t, w).Sections[0].NoiseFigures("s1", "shapes3d")
	if err != nil || len(figures) != 2 || figures[1].Name != "s1-shapes3d-degraded" {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	text := string(figures[1].SVG())
	for _, want := range []string{">HRR<", ">VQ-VAE<", ">no noise<", ">20 dB<", ">−20 dB<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the grid has no %s", want)
		}
	}
	if strings.Contains(text, "Showing the first") {
		t.Error("four models were treated as too many")
	}
	if strings.Contains(text, ">QLAE<") || strings.Contains(text, ">β-VAE<") || strings.Count(text, "<image") != 8 {
		t.Errorf("the grid has %d images: %s", strings.Count(text, "<image"), text)
	}
}

// TestManyModels: images of at most eight models are shown, with a note.
func TestManyModels(t *testing.T) {
	w := &world{}
	for i := range 9 {
		e := w.add("hrr", "shapes3d", 0, 0.5, 30, func(c *model.Config) { c.K = 32 + i })
		e.Scores.Noise.Shown = []int{7}
		e.Noisy = func() (image.Image, error) { return image.NewGray(image.Rect(0, 0, 4*64, 64)), nil }
	}
	s := reportOf(t, w).Sections[0]
	figures, err := s.NoiseFigures("s1", "shapes3d")
	if err != nil || len(figures) != 2 {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	n := strings.Count(string(figures[1].SVG()), "<image")
	if said := s.notShown("shapes3d"); n != 8*4 || said != " Showing the first 8 of 9 models." {
		t.Errorf("%d pictures; %q", n, said)
	}
}

// TestAblationsInOrder: the unmodified model comes first, then the ablations in the paper's order.
func TestAblationsInOrder(t *testing.T) {
	w := &world{}
	for i, change := range []func(*model.Config){
		func(c *model.Config) { c.FreeCodebook = true }, func(c *model.Config) { c.NoDenoiser = true }, nil,
		func(c *model.Config) { c.StaticCodebook = true }, func(c *model.Config) { c.LearnSymbols = true }, func(c *model.Config) { c.SymbolInit = "unit" },
	} {
		w.add("hrr", "shapes3d", int64(i), 0.5, 30, change)
	}
	want := []string{"HRR", "HRR, unit-magnitude symbols", "HRR, static codebook", "HRR, learnable symbols", "HRR, no denoiser", "HRR, free codebook"}
	if got := reportOf(t, w).Sections[0].Labels(); !slices.Equal(got, want) {
		t.Errorf("in the order %q", got)
	}
}

// TestLostPointsAreSaid: a report names the runs with damaged points.
func TestLostPointsAreSaid(t *testing.T) {
	in := paperLike()
	in.entries[0].Lost = 28
	r := reportOf(t, in)
	want := fmt.Sprintf("Run %s has 28 damaged lines of points", in.entries[0].Run.ID)
	for name, write := range map[string]func(io.Writer) error{"report.md": r.Markdown, "report.html": r.HTML, "results.json": r.JSON} {
		if text := written(t, write); !strings.Contains(text, want) && !strings.Contains(text, mdText(want)) {
			t.Errorf("%s does not mention them", name)
		}
	}
}

// walked reads a series through Points.
func (e Entry) walked(name string) (all []model.Sample, err error) {
	err = e.Points([]string{name}, func(p model.Point) error {
		if v, ok := p.Values[name]; ok {
			all = append(all, model.Sample{Step: p.Step, Value: v})
		}
		return nil
	})
	return all, err
}

// TestSlotGrid: m × d is a separate grid; for each dimension, the choice of slots by UDR is shown next to the choice by InfoM.
func TestSlotGrid(t *testing.T) {
	w := &world{}
	for i, m := range []int{4, 9} {
		for seed := range int64(2) {
			e := w.add("hrr", "shapes3d", seed, 0.8-0.1*float64(i), 40, func(c *model.Config) { c.M, c.D = m, 64 })
			e.Scores.Field = fieldOf(0.2)
			order := []int{0, 1}
			if i == 0 && seed == 1 {
				order = []int{0, 0} // seeds of four slots disagree
			}
			e.Agreement = latents(order...)
			w.add("hrr", "shapes3d", seed, 0.5, 40, func(c *model.Config) { c.M, c.D = m, 128 })
		}
	}
	r := reportOf(t, w)
	s := r.Sections[0]
	choices := s.SlotChoices()
	if len(choices) != 1 || choices[0].D != "64" || choices[0].ByUDR != "9" || choices[0].ByInfoM != "4" || choices[0].Redundancy.N != 2 {
		t.Fatalf("choices %+v", choices)
	}
	var names []string
	for _, f := range s.GridFigures("s1") {
		names = append(names, f.Name)
	}
	if want := []string{"s1-shapes3d-hrr-infom-grid", "s1-shapes3d-hrr-psnr-grid", "s1-shapes3d-hrr-redundancy-pairs-grid", "s1-shapes3d-hrr-udr-grid"}; !slices.Equal(names, want) {
		t.Errorf("figures %q, not %q", names, want)
	}
	if text := written(t, r.Markdown); !strings.Contains(text, "### How many slots?") || !strings.Contains(text, "Rows: slots m. Columns: latent dimension d.") {
		t.Errorf("report.md has no choice of m:\n%s", text)
	}
	if page := written(t, r.HTML); !strings.Contains(page, "m by UDR (no labels)") {
		t.Error("report.html has no choice of m")
	}
}

// TestSplitFigures: splits of one dataset are shown together, and recombinations that cannot be measured are omitted.
func TestSplitFigures(t *testing.T) {
	w := &world{}
	for _, kind := range []string{"random", "composition", "interpolation"} {
		for seed := range int64(2) {
			e := w.add("hrr", "shapes3d[split="+kind+"]", seed, 0.7, 40, nil)
			e.Scores.HeldOut = &model.HeldOut{Dataset: "shapes3d[not(split=" + kind + ")]", Images: 500, PSNR: model.Interval{Value: model.Score(20 + seed)}}
			if kind != "interpolation" {
				e.Scores.HeldOut.Recombination = &model.Recombination{Unseen: model.Recombined{Hits: model.Interval{Value: 0.4, Low: 0.3, High: 0.5}, PSNR: model.Interval{Value: 25}},
					Seen: model.Recombined{Hits: model.Interval{Value: 0.6}}}
			}
		}
	}
	w.add("vqvae", "shapes3d[split=random; shape=cube]", 0, 0.5, 30, nil) // a subset of a split is not a split of the dataset
	s := reportOf(t, w).Sections[0]
	figures := s.SplitFigures("s1")
	if len(figures) != 2 || figures[0].Name != "s1-shapes3d-splits-unseen-psnr" || figures[1].Name != "s1-shapes3d-splits-recombined" {
		t.Fatalf("%d figures", len(figures))
	}
	for _, kind := range []string{"random", "composition", "interpolation"} {
		if !strings.Contains(string(figures[0].SVG()), ">"+kind+"<") {
			t.Errorf("the figure lacks the split %s", kind)
		}
	}
	if strings.Contains(string(figures[0].SVG()), "VQ-VAE") {
		t.Error("the figure includes a model without any split")
	}
	table, ok := s.unseen("shapes3d[split=random]")
	if !ok || table.Title != "shapes3d[not(split=random)], held out of training" {
		t.Fatalf("table %q", table.Title)
	}
	at := map[string]string{}
	for _, c := range table.Rows[0].Cells {
		at[c.Metric.Key] = c.Text(c.Metric.Decimals)
	}
	if at["recombined"] != "0.40 ± 0" || at["recombined_seen"] != "0.60 ± 0" || at["recombined_psnr"] != "25.0 ± 0" {
		t.Errorf("table %v", at)
	}
}

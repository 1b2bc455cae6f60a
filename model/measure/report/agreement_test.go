package report

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/measure/metric"
)

// latents returns codes of 500 images by two independent slots, with the columns in the given order.
func latents(order ...int) func() (*Latents, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	columns := [][]int{make([]int, 500), make([]int, 500)}
	l := &Latents{}
	for r := range 500 {
		columns[0][r], columns[1][r] = rng.IntN(4), rng.IntN(5)
		l.Index = append(l.Index, r)
	}
	for _, j := range order {
		l.Codes = append(l.Codes, columns[j])
	}
	return func() (*Latents, error) { return l, nil }
}

// TestAgreement: seeds with the same slots in a different order agree fully; runs without latents, or with latents of other images, are ignored.
func TestAgreement(t *testing.T) {
	w := &world{}
	w.add("hrr", "shapes3d", 0, 0.5, 30, nil).Agreement = latents(0, 1)
	w.add("hrr", "shapes3d", 1, 0.5, 30, nil).Agreement = latents(1, 0)
	w.add("hrr", "shapes3d", 2, 0.5, 30, nil)
	w.add("hrr", "shapes3d", 3, 0.5, 30, nil).Agreement = func() (*Latents, error) {
		return &Latents{Index: []int{1, 2, 3}, Model: metric.Model{Codes: [][]int{{0, 1, 0}}}}, nil
	}
	w.add("hrr", "shapes3d", 4, 0.5, 30, nil).Agreement = func() (*Latents, error) { return nil, nil }
	g := reportOf(t, w).Sections[0].Groups[0]
	s := g.Score(UDRKey)
	if len(s.Seeds) != 2 || s.Seeds[0] != 0 || s.Seeds[1] != 1 || s.Mean < 0.97 || s.Chance.N != 2 || s.Chance.Mean > 0.1 || g.Problem != "" {
		t.Errorf("UDR %+v of seeds %v, chance %+v, %q", s.Values, s.Seeds, s.Chance, g.Problem)
	}
	w.entries[2].Agreement = func() (*Latents, error) { return nil, errors.New("agreement.npz is truncated") }
	r := reportOf(t, w)
	if g := r.Sections[0].Groups[0]; g.Score(UDRKey).N != 0 || !strings.Contains(g.Problem, "truncated") {
		t.Errorf("a damaged file: %+v, %q", g.Score(UDRKey).Values, g.Problem)
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "HRR on Shapes3D: UDR is missing") {
		t.Error("the notes do not mention the damaged file")
	}
}

// fieldOf returns field scores with one metric, its chance level and its interval.
func fieldOf(v model.Score) *model.FieldScores {
	return &model.FieldScores{
		Scores:    map[string]model.Score{"mig": v, "redundancy_pairs": 2 * v},
		Chance:    map[string]model.Spread{"mig": {Mean: 0.01}, "redundancy_pairs": {Mean: 0}},
		Intervals: map[string]model.Interval{"mig": {Value: v, Low: v - 0.02, High: v + 0.02}},
	}
}

// TestChanceRows: every row of the field tables is followed by its chance level, which is excluded from claims; a single seed shows the
// interval of its own value, and redundancy has no winner.
func TestChanceRows(t *testing.T) {
	w := &world{}
	w.add("hrr", "shapes3d", 0, 0.5, 30, nil).Scores.Field = fieldOf(0.4)
	for seed := range int64(3) {
		w.add("qlae", "shapes3d", seed, 0.5, 30, nil).Scores.Field = fieldOf(model.Score(0.3 + 0.01*float64(seed)))
		w.add("vqvae", "shapes3d", seed, 0.5, 30, nil).Scores.Field = fieldOf(model.Score(0.1 + 0.01*float64(seed)))
	}
	r := reportOf(t, w)
	tables := r.Sections[0].FieldTables()
	if len(tables) != 2 || tables[0].Title != "Shapes3D, other metrics" || tables[1].Title != "Shapes3D, without labels" {
		t.Fatalf("tables %+v", tables)
	}
	labels := []string{"VQ-VAE", "VQ-VAE, chance", "QLAE", "QLAE, chance", "HRR", "HRR, chance"}
	for i, row := range tables[0].Rows {
		if row.Label != labels[i] || row.Chance != (i%2 == 1) {
			t.Errorf("row %d is %q, chance %v", i, row.Label, row.Chance)
		}
	}
	single, chance := tables[0].Rows[4].Cells[0], tables[0].Rows[5].Cells[0]
	if single.Text(2) != "0.40 (0.38 to 0.42)" || chance.Text(2) != "0.01" || chance.Bold {
		t.Errorf("single seed: %q, chance %q", single.Text(2), chance.Text(2))
	}
	if several := tables[0].Rows[2].Cells[0]; several.Within != nil || !strings.Contains(several.Text(2), "±") {
		t.Errorf("several seeds: %q", several.Text(2))
	}
	for _, why := range append(tables[0].Withheld(), tables[1].Withheld()...) {
		if strings.Contains(why, ", chance") {
			t.Errorf("a claim about chance: %s", why)
		}
	}
	verdicts := tables[0].Verdicts()
	if len(verdicts) != 1 || strings.Contains(verdicts[0].First+verdicts[0].Next, "chance") {
		t.Errorf("verdicts %+v", verdicts)
	}
	if len(tables[1].Verdicts()) != 0 {
		t.Errorf("redundancy has a winner: %+v", tables[1].Verdicts())
	}
	text := written(t, r.Markdown)
	for _, want := range []string{"| HRR, chance | 1 | 0.01 |", "| Redundancy of pairs, nats |", "Chance: the same score"} {
		if !strings.Contains(text, want) {
			t.Errorf("report.md lacks %q", want)
		}
	}
	if page := written(t, r.HTML); !strings.Contains(page, `<tr class="quiet"><th scope="row">HRR, chance</th>`) {
		t.Error("report.html does not mark the chance row")
	}
	record := r.Results().Sections[0].Groups
	for _, g := range record {
		if s := g.Scores["field_mig"]; s.Chance == nil || math.Abs(float64(*s.Chance)-0.01) > 1e-12 || (s.Within != nil) != (g.Model == "hrr") {
			t.Errorf("results.json of %s: %+v", g.Label, s)
		}
	}
}

func TestUnlabelled(t *testing.T) {
	w := &world{}
	e := w.add("hrr", "shapes3d", 0, 0.5, 30, nil)
	e.Scores.Field = fieldOf(0.4)
	e.Scores.Field.Redundancy = &model.Redundancy{ChaoShen: model.Correlation{Redundancy: 1.5}}
	e.Scores.Usage = &model.Usage{Joint: &model.JointEntropy{Nats: 7.25, Coverage: 0.4}}
	e.Scores.Faithfulness = &model.Faithfulness{CosRetrieval: model.Score(1 / math.Sqrt(10))}
	g := reportOf(t, w).Sections[0].Groups[0]
	for key, want := range map[string]float64{"joint_entropy": 7.25, "joint_coverage": 0.4, "redundancy_pairs": 0.8, "redundancy": 1.5, "retrieval_snr": 1.0 / 9} {
		if got := g.Score(key).Mean; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	e.Scores.Field.Redundancy.Undetermined = "too few rows"
	e.Scores.Faithfulness.CosRetrieval = -0.2
	g = reportOf(t, w).Sections[0].Groups[0]
	if g.Score("redundancy").N != 0 || g.Score("retrieval_snr").Mean != 0 {
		t.Errorf("undetermined redundancy %v, SNR of opposed retrievals %v", g.Score("redundancy").Values, g.Score("retrieval_snr").Values)
	}
}

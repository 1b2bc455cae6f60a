package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	variables "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/google/go-cmp/cmp"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/measure/metric"
	"slotscope/model/measure/metric/input"
	"slotscope/model/paper/ae"
)

func engine(t *testing.T) *compute.Engine {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func dataset(t *testing.T) data.Set {
	t.Helper()
	set, err := data.Open(t.Context(), "shapes3d-synthetic", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// shipped returns a trained HRR of preset tiny, the first one shipped with the program: 20,000 steps of 32 images on the drawn shapes.
func shipped(t *testing.T) checkpoint.File {
	t.Helper()
	file, err := checkpoint.Read("testdata/tiny-20000.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// untrained returns a small model with initial weights.
func untrained(t *testing.T, name string) checkpoint.File {
	t.Helper()
	cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Widths, cfg.FC, cfg.D, cfg.K = [4]int{4, 8, 8, 16}, 32, min(cfg.D, 64), min(cfg.K, 32)
	built, err := ae.New(cfg, ae.Image{H: 64, W: 64, C: 3})
	if err != nil {
		t.Fatal(err)
	}
	scope := variables.New().Checked(false)
	if err := built.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	tensors, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.File{Config: cfg, Step: 1, Tensors: tensors}
}

var few = Options{Images: 64, Noise: 64, Pairs: 6, Probe: 30, Trees: 5, Seed: 3}

// staged runs an evaluation that only encodes, measures and runs the given stages.
func staged(ctx context.Context, t *testing.T, file checkpoint.File, set data.Set, o Options, stages ...stage) (Result, error) {
	t.Helper()
	n, err := newNet(ctx, engine(t), file, ae.Image{H: 64, W: 64, C: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer n.finalize()
	if o.Progress == nil {
		o.Progress = func(string, string, float64, float64) {}
	}
	e := &evaluation{net: n, set: set, info: set.Info(), o: o, file: file}
	defer e.finalize()
	err = inTurn(ctx, e.draw, e.represent, e.measure)
	for _, stage := range stages {
		if err == nil {
			err = stage(e, ctx)
		}
	}
	return e.result(), err
}

type stage = func(*evaluation, context.Context) error

// besideField lists the stages of an evaluation except the literature's scores, which take longer than all others here.
var besideField = []stage{(*evaluation).faithful, (*evaluation).learnProbe, (*evaluation).noise, (*evaluation).swap, (*evaluation).truth}

// withoutField runs an evaluation except those scores.
func withoutField(t *testing.T, file checkpoint.File, o Options) Result {
	t.Helper()
	r, err := staged(t.Context(), t, file, dataset(t), o, besideField...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reading runs the part of an evaluation in which a probe is trained and reads swaps, on every 997th image.
func reading(ctx context.Context, t *testing.T, file checkpoint.File, o Options) (model.Scores, error) {
	t.Helper()
	r, err := staged(ctx, t, file, partOf(t, "[every=997]"), o, (*evaluation).learnProbe, (*evaluation).swap)
	return r.Scores, err
}

func evaluated(t *testing.T, file checkpoint.File, o Options) Result {
	t.Helper()
	r, err := Run(t.Context(), engine(t), file, dataset(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShippedCheckpoint(t *testing.T) {
	r := evaluated(t, shipped(t), few)
	s := r.Scores
	if s.Version != model.ScoresVersion || s.Step != 20000 || s.Images != 64 || s.Seed != 3 || s.Engine != "cpu" || s.Seconds <= 0 {
		t.Errorf("scores of step %d on %d images by seed %d on %q in %v s", s.Step, s.Images, s.Seed, s.Engine, s.Seconds)
	}
	if s.PSNR < 26 || s.PSNR > 28.5 || float64(s.PSNRInterval.Low) > s.PSNR || float64(s.PSNRInterval.High) < s.PSNR {
		t.Errorf("PSNR is %v, %v; want 27.3, as in the checkpoint's card", s.PSNR, s.PSNRInterval)
	}
	checkUsage(t, s.Usage, r)
	checkNoise(t, s.Noise, s.PSNR)
	checkSwap(t, s.Swap)
	checkTruth(t, s.SwapTruth, s.Metrics.Ownership)
	if f := s.Faithfulness; f == nil || f.Images != 64 || f.CosBundle > 0 || f.CosDenoised < 0.99 {
		t.Errorf("faithfulness %+v", f)
	}
	if m := s.Metrics; m == nil || !m.Discrete || m.Rows != 64 || m.Latents != 9 || len(m.Factors) != 6 || m.Factors[0] != "floor_hue" {
		t.Fatalf("metrics %+v", m)
	}
}

func TestSameScoresAgain(t *testing.T) {
	o := few
	o.Images, o.Noise, o.Pairs, o.Probe = 70, 20, 2, 2
	if a, b := withoutField(t, untrained(t, "hrr"), o), withoutField(t, untrained(t, "hrr"), o); !sameScores(t, a.Scores, b.Scores) {
		t.Error("repeating the evaluation gave different scores")
	}
}

// scoresEqual treats undefined scores as equal.
var scoresEqual = cmp.Comparer(func(a, b model.Score) bool { return a == b || !a.Defined() && !b.Defined() })

// sameScores compares everything except the duration.
func sameScores(t *testing.T, a, b model.Scores) bool {
	a.Seconds, b.Seconds = 0, 0
	d := cmp.Diff(a, b, scoresEqual)
	t.Log(d)
	return d == ""
}

func checkUsage(t *testing.T, u *model.Usage, r Result) {
	for j, counts := range u.Counts {
		sum, used := 0, 0
		for _, c := range counts {
			if sum += c; c > 0 {
				used++
			}
		}
		if sum != 64 || used != u.Used[j] || len(counts) != 128 || u.Perplexity[j] > float64(used)+1e-9 {
			t.Errorf("slot %d: %d images of %d entries, %d used, perplexity %v", j, sum, len(counts), u.Used[j], u.Perplexity[j])
		}
		if first := counts[r.Codes[j]]; first == 0 {
			t.Errorf("slot %d: the first image's code was not counted", j)
		}
	}
	if u.Entries < 9 || u.Codebook > float64(u.Entries)+1e-9 {
		t.Errorf("%d entries with perplexity %v", u.Entries, u.Codebook)
	}
	if j := u.Joint; j == nil || j.Images != 64 || len(j.Slots) != 9 || j.Nats > j.Ceiling+1e-9 || j.Tuples < 1 || math.Abs(math.Exp(j.Slots[0])-u.Perplexity[0]) > 1e-9 {
		t.Errorf("joint entropy %+v", j)
	}
}

// checkNoise: weak noise costs little, strong noise everything, and more codes flip the stronger it is.
func checkNoise(t *testing.T, n *model.Noise, clean float64) {
	if n.Images != 64 || n.Power <= 0 || n.Components != 128 || math.Abs(128*n.BundlePower-38.5) > 2 || len(n.Curve) != len(strengths) || len(n.Accuracy) != 6 {
		t.Fatalf("noise %+v", n)
	}
	checkBundleNoise(t, n, clean)
	flips := func(p model.NoisePoint) (sum float64) {
		for _, f := range p.Flipped {
			sum += f
		}
		return sum
	}
	for i, p := range n.Curve {
		if p.SNR != strengths[i] || len(p.Flipped) != 9 || len(p.Accuracy) != 6 || math.Abs(p.EsN0-p.SNR-10*math.Log10(128)) > 1e-9 {
			t.Errorf("point %+v", p)
		}
		if i > 0 && (p.PSNR.Value > n.Curve[i-1].PSNR.Value+0.3 || flips(p) < flips(n.Curve[i-1])) {
			t.Errorf("at %v dB PSNR is %v and %v codes flip, at %v dB %v and %v", p.SNR, p.PSNR.Value, flips(p), n.Curve[i-1].SNR,
				n.Curve[i-1].PSNR.Value, flips(n.Curve[i-1]))
		}
	}
	if first, last := n.Curve[0], n.Curve[8]; float64(first.PSNR.Value) < clean-1.5 || last.PSNR.Value > 15 || flips(last) < 6 {
		t.Errorf("from %v to %v dB, %v codes flip", first.PSNR.Value, last.PSNR.Value, flips(last))
	}
}

// checkBundleNoise: when ẑ is decoded directly, no codes flip and weak noise costs little. Cleanup needs codes that plain unbinding can read from
// ẑ, which is not the case for this model.
func checkBundleNoise(t *testing.T, n *model.Noise, clean float64) {
	if len(n.BundleRaw) != len(strengths) || len(n.BundleClean) != len(strengths) {
		t.Fatalf("%d and %d strengths on bundles", len(n.BundleRaw), len(n.BundleClean))
	}
	first, last, cleaned := n.BundleRaw[0], n.BundleRaw[len(strengths)-1], n.BundleClean[0]
	if float64(first.PSNR.Value) < clean-1.5 || last.PSNR.Value > 15 || first.Flipped != nil {
		t.Errorf("decoded directly, bundles give %v to %v dB, flips %v", first.PSNR.Value, last.PSNR.Value, first.Flipped)
	}
	flips := 0.0
	for _, f := range cleaned.Flipped {
		flips += f / 9
	}
	if flips < 0.75 || float64(cleaned.PSNR.Value) > clean-5 {
		t.Errorf("cleaned up, %v of the codes flip at 20 dB and PSNR is %v; cleanup without noise is 0.12", flips, cleaned.PSNR.Value)
	}
}

func checkTruth(t *testing.T, s *model.SwapTruth, o *model.Ownership) {
	if s == nil || s.Pairs != 6 || s.Tolerance != 3 || len(s.Slots) != 9 || s.Coverage != o.Coverage {
		t.Fatalf("swaps against the truth %+v", s)
	}
	for j, slot := range s.Slots {
		if slot.Factor != o.Slots[j].Factor() || (slot.Factor >= 0) != slot.Hits.Value.Defined() || slot.Factor >= 0 && len(slot.Leak) != 6 {
			t.Errorf("slot %d: %+v", j, slot)
		}
	}
	for _, g := range s.Groups {
		if !g.Owned || len(g.Slots) == 0 || !g.PSNR.Defined() {
			t.Errorf("group %+v", g)
		}
	}
}

func checkSwap(t *testing.T, s *model.Swap) {
	if s.Pairs != 6 || len(s.Slots) != 9 || s.ProbeImages != 10000 || len(s.ProbeAccuracy) != 6 {
		t.Fatalf("swaps %+v", s)
	}
	for f, share := range s.ProbeAccuracy {
		if share < 0 || share > 1 {
			t.Errorf("probe accuracy is %v for factor %d", share, f)
		}
	}
	edits := 0
	for j, slot := range s.Slots {
		if slot.Factor >= 0 {
			edits += slot.Edits
		}
		if sum := slot.Exact.Value + slot.None.Value + slot.Others.Value; slot.Edits > 0 && (sum < 1-1e-9 || sum > 1+1e-9) {
			t.Errorf("slot %d: shares sum to %v", j, sum)
		}
		if len(slot.Leakage) != 6 {
			t.Errorf("slot %d: leakage %v", j, slot.Leakage)
		}
	}
	if edits != s.Edits || edits == 0 {
		t.Errorf("%d edits, the slots have %d", s.Edits, edits)
	}
}

// TestProbeReadsHues: eighty steps suffice for factors that fill half of each image.
func TestProbeReadsHues(t *testing.T) {
	o := few
	o.Images, o.Noise, o.Pairs, o.Probe = 64, 0, 1, 80
	r, err := staged(t.Context(), t, untrained(t, "hrr"), dataset(t), o, (*evaluation).learnProbe, (*evaluation).swap)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Scores.Swap.ProbeAccuracy; a[0] < 0.9 || a[1] < 0.9 {
		t.Errorf("the probe's accuracies are %v", a)
	}
}

// TestEveryModel runs every stage once, without training, with a model of each kind of latent: a bundle, codes with a shared codebook, codes
// with a codebook per slot, codes on a fixed grid, a mean with a variance, a plain number.
func TestEveryModel(t *testing.T) {
	o := few
	o.Pairs, o.Images, o.Noise, o.Probe = 2, 70, 66, 2
	names := []string{"hrr", "betavae"}
	if expect.All() {
		names = append(names, "vqvae", "qlae", "tripod", "bioae")
	}
	for _, name := range names {
		if name != "hrr" {
			o.Noise = 8 // HRR's fill more than one batch
		}
		file, evaluate := untrained(t, name), withoutField
		field := name == "betavae" || name == "hrr" && expect.All() // numbers; TestShippedCheckpoint also covers codes
		if field {
			evaluate = evaluated
		}
		r := evaluate(t, file, o)
		if (r.Scores.Field != nil) != field {
			t.Errorf("%s: scores of the literature %v", name, r.Scores.Field)
		}
		s, discrete := r.Scores, file.Config.Discrete()
		if s.Metrics.Discrete != discrete || (s.Usage != nil) != discrete || (r.Codes != nil) != discrete || (s.Noise.Curve[0].Flipped != nil) != discrete {
			t.Errorf("%s: scores %+v", name, s)
		}
		if raw, cleaned := len(s.Noise.BundleRaw), len(s.Noise.BundleClean); raw != len(strengths) || (cleaned > 0) != discrete || s.Noise.Components != r.components(file) {
			t.Errorf("%s: noise of %d components on bundles at %d and %d strengths", name, s.Noise.Components, raw, cleaned)
		}
		if (s.Faithfulness != nil) != (name == "hrr") || s.SwapTruth == nil || len(s.Swap.ProbeReconstructions) != 6 {
			t.Errorf("%s: faithfulness %v, truth %v", name, s.Faithfulness, s.SwapTruth)
		}
		if s.Usage != nil && len(s.Usage.Counts[0]) != file.Config.K {
			t.Errorf("%s: a slot has %d codes, want %d", name, len(s.Usage.Counts[0]), file.Config.K)
		}
		if m := file.Config.M; len(r.Codes)+len(r.Numbers) != 70*m || s.Metrics.Latents != m || len(s.Swap.Slots) != m || s.Noise.Images != o.Noise {
			t.Errorf("%s: %d slots, scores %+v", name, m, s)
		}
	}
}

// components returns the length of z.
func (r Result) components(file checkpoint.File) int {
	switch c := file.Config; c.Model {
	case "hrr":
		return c.D
	case "vqvae":
		return c.M * c.D
	default:
		return c.M
	}
}

// TestEntriesOfQLAE: the same code in two slots is two entries.
func TestEntriesOfQLAE(t *testing.T) {
	c := model.Config{Model: "qlae", M: 2, K: 10}
	u := usage([]int32{3, 3, 3, 4, 7, 3}, c)
	if u.Entries != 4 || len(u.Counts[0]) != 10 || u.Counts[0][3] != 2 || u.Counts[1][3] != 2 || u.Used[0] != 2 || u.Codebook <= 3 {
		t.Errorf("%+v", u)
	}
	if c.Model = "hrr"; usage([]int32{3, 3, 3, 4, 7, 3}, c).Entries != 3 {
		t.Error("HRR's slots must share entries")
	}
}

// TestSavedFiles: the saved representation reproduces the metrics, and the associations count every image.
func TestSavedFiles(t *testing.T) {
	o := few
	o.Pairs, o.Noise, o.Images = 0, 0, 100
	r, err := staged(t.Context(), t, untrained(t, "qlae"), dataset(t), o)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	var s model.Scores
	var a Associations
	readJSON(t, filepath.Join(path, ScoresFile), &s)
	readJSON(t, filepath.Join(path, AssociationsFile), &a)
	if !sameScores(t, s, r.Scores) {
		t.Error("scores.json differs from the scores")
	}
	if _, err := os.Stat(filepath.Join(path, AgreementFile)); !os.IsNotExist(err) {
		t.Errorf("latents for comparisons were saved although Agree is 0: %v", err)
	}
	table, err := input.Read(filepath.Join(path, RepresentationFile), input.Found)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metric.Measure(t.Context(), table, metric.Options{Seed: o.Seed, Trees: o.Trees})
	if err != nil || cmp.Diff(&m, s.Metrics, scoresEqual) != "" {
		t.Errorf("measured from the file: %v, %s", err, cmp.Diff(&m, s.Metrics, scoresEqual))
	}
	for j, slot := range a.Slots {
		images := 0
		for n, code := range slot.Codes {
			if s.Usage.Counts[j][code] == 0 || len(slot.Counts[n]) != 6 {
				t.Errorf("slot %d, code %d: %v", j, code, slot.Counts[n])
			}
			for _, c := range slot.Counts[n][0] {
				images += c
			}
		}
		if images != 100 || len(slot.Codes) != s.Usage.Used[j] {
			t.Errorf("slot %d: %d images, %d codes", j, images, len(slot.Codes))
		}
	}
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEvaluationEndsWhenAsked: cancelling works in each stage.
func TestEvaluationEndsWhenAsked(t *testing.T) {
	for _, at := range []string{"encoding", "measuring", "adding noise", "training the probe", "swapping slots", "comparing swaps with the truth"} {
		ctx, cancel := context.WithCancel(t.Context())
		o, reached := few, false
		o.Images, o.Noise, o.Probe = 128, 0, 2
		if at == "adding noise" {
			o.Noise = 128
		}
		o.Progress = func(stage, _ string, done, of float64) {
			if stage == at && done < of {
				reached = true
				cancel()
			}
		}
		_, err := staged(ctx, t, untrained(t, "hrr"), dataset(t), o, besideField...)
		cancel()
		if !reached || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while %s (%v): %v", at, reached, err)
		}
	}
}

func TestCheckpointForOtherImages(t *testing.T) {
	file := untrained(t, "hrr")
	delete(file.Tensors, "seeds")
	_, err := Run(t.Context(), engine(t), file, dataset(t), few)
	if err == nil || !strings.Contains(err.Error(), "shapes3d-synthetic") {
		t.Errorf("checkpoint without seeds: %v", err)
	}
}

// TestDamagedWeights: a non-finite weight or output ends an evaluation with an error that names it.
func TestDamagedWeights(t *testing.T) {
	for _, c := range []struct {
		tensor string
		value  float64
		want   string
	}{
		{"out.weight", math.NaN(), `tensor "out.weight" of the checkpoint contains NaN`},
		{"seeds", math.Inf(-1), `tensor "seeds" of the checkpoint contains -Inf`},
		{"fc2.weight", 3e38, "Inf for image 365413 of shapes3d-synthetic"},
		{"up.3.conv.weight", 3e38, "for image 365413 of shapes3d-synthetic"},
	} {
		file, o := untrained(t, "hrr"), few
		o.Images, o.Seed = 1, 5
		for i := range file.Tensors[c.tensor].Data {
			file.Tensors[c.tensor].Data[i] = float32(c.value)
		}
		_, err := Run(t.Context(), engine(t), file, dataset(t), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, want %q", c.tensor, c.value, err, c.want)
		}
	}
}

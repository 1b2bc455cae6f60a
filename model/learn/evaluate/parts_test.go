package evaluate

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/data"
	"slotscope/model/format/npz"
	"slotscope/model/measure/metric"
	"slotscope/model/measure/metric/input"
)

// partOf returns a part of the drawn shapes.
func partOf(t *testing.T, selection string) data.Set {
	t.Helper()
	set, err := data.Open(t.Context(), "shapes3d-synthetic"+selection, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// added packs n images of the drawn shapes, every 997th, with the labels returned by of, as a separate dataset.
func added(t *testing.T, n int, of func(classes []int) []int64, names ...string) data.Set {
	t.Helper()
	from := dataset(t)
	info := from.Info()
	index := make([]int, n)
	for i := range index {
		index[i] = i * 997
	}
	pixels, classes := make([]byte, n*info.H*info.W*info.C), make([]int, n*len(info.Factors))
	if err := from.Images(pixels, index); err != nil {
		t.Fatal(err)
	}
	if err := from.Classes(classes, index); err != nil {
		t.Fatal(err)
	}
	arrays := []npz.Data{{Name: "images", Shape: []int{n, info.H, info.W, info.C}, Values: pixels}}
	if len(names) > 0 {
		var labels []int64
		for i := range n {
			labels = append(labels, of(classes[i*len(info.Factors):(i+1)*len(info.Factors)])...)
		}
		arrays = append(arrays, npz.Data{Name: "labels", Shape: []int{n, len(names)}, Values: labels}, npz.Data{Name: "factor_names", Shape: []int{len(names)}, Values: names})
	}
	path, dir := filepath.Join(t.TempDir(), "own.npz"), t.TempDir()
	file, err := os.Create(path)
	if err == nil {
		err = npz.Write(file, arrays...)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := data.Catalogue{Dir: dir}.Add(t.Context(), data.Request{Name: "own", From: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Open(t.Context(), name, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// saved writes a result into a new folder.
func saved(t *testing.T, r Result) string {
	t.Helper()
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHeldOutPart: scores of the part left out equal those of evaluating it alone, and do not change the training part's scores.
func TestHeldOutPart(t *testing.T) {
	const left = "shape=cube;floor_hue=0.0,0.1"
	o := few
	o.Pairs, o.Noise, o.Probe = 0, 2, 0
	alone, err := staged(t.Context(), t, untrained(t, "hrr"), partOf(t, "["+left+"]"), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Rest = partOf(t, "["+left+"]")
	var stages []string
	o.Progress = func(stage, _ string, _, _ float64) { stages = append(stages, stage) }
	both, err := Run(t.Context(), engine(t), untrained(t, "hrr"), partOf(t, "[not("+left+")]"), o)
	if err != nil {
		t.Fatal(err)
	}
	h, s := both.Scores.HeldOut, alone.Scores
	if h == nil || h.Dataset != "shapes3d-synthetic["+left+"]" || h.Images != 64 || h.NoFactors != "" {
		t.Fatalf("held out: %+v", h)
	}
	if d := cmp.Diff(h.Metrics, s.Metrics, scoresEqual) + cmp.Diff(h.Usage, s.Usage) + cmp.Diff(h.PSNR, *s.PSNRInterval); d != "" {
		t.Errorf("held out differs from the part alone: %s", d)
	}
	if m := h.Metrics; !slices.Equal(m.KeptFactors, []int{0, 1, 2, 3, 5}) || m.Values[0] != 2 || m.Values[4] != 1 {
		t.Errorf("factors %v with values %v; the shape is always a cube in this part", m.KeptFactors, m.Values)
	}
	if !slices.Contains(stages, "encoding, held out") || !slices.Contains(stages, "measuring, held out") {
		t.Errorf("progress stages %v", slices.Compact(stages))
	}
	o.Rest = nil
	without, err := staged(t.Context(), t, untrained(t, "hrr"), partOf(t, "[not("+left+")]"), o, besideField...)
	if err != nil || without.Scores.HeldOut != nil || without.HeldOut != nil {
		t.Fatalf("left out: %v, %+v", err, without.Scores.HeldOut)
	}
	with := both.Scores
	with.HeldOut, with.Field, with.Engine = nil, nil, ""
	if !sameScores(t, with, without.Scores) {
		t.Error("the training part's scores depend on whether the rest is measured")
	}
	checkSavedHeldOut(t, both, o)
}

// checkSavedHeldOut: `slotscope metrics` reads the file of the part left out, and an evaluation without that part removes the file.
func checkSavedHeldOut(t *testing.T, r Result, o Options) {
	path := saved(t, r)
	table, err := input.Read(filepath.Join(path, HeldOutFile), input.Found)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metric.Measure(t.Context(), table, metric.Options{Seed: o.Seed, Trees: o.Trees})
	if err != nil || m.InfoM != r.Scores.HeldOut.Metrics.InfoM {
		t.Errorf("measured from the file: %v, InfoM %v, want %v", err, m.InfoM, r.Scores.HeldOut.Metrics.InfoM)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r.HeldOut, r.Noisy = nil, nil
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{HeldOutFile, NoiseFile} {
		if _, err := os.Stat(filepath.Join(path, name)); !os.IsNotExist(err) {
			t.Errorf("%s of an earlier evaluation: %v", name, err)
		}
	}
}

// TestSetWithoutFactors: scores that need no factors are measured, and a sentence explains why the others are not.
func TestSetWithoutFactors(t *testing.T) {
	for _, c := range []struct {
		set  data.Set
		want string
	}{
		{added(t, 90, nil), "InfoMEC, DCI and swaps compare slots with factors, but own has no known factors."},
		{partOf(t, "[floor_hue=0.0;wall_hue=0.0;object_hue=0.0;scale=#0;shape=cube;orientation=#0]"), "have the same value of every factor."},
	} {
		o := few
		o.Images, o.Noise = 80, 2
		r, err := Run(t.Context(), engine(t), shipped(t), c.set, o)
		if err != nil {
			t.Fatal(err)
		}
		s, n := r.Scores, min(80, c.set.Info().Len)
		if !strings.HasSuffix(s.NoFactors, c.want) || s.Metrics != nil || s.Swap != nil || !s.Evaluated() {
			t.Errorf("%q, metrics %v, swaps %v", s.NoFactors, s.Metrics, s.Swap)
		}
		if s.Images != n || s.PSNR < 20 || s.Usage == nil || s.Usage.Names != nil || len(s.Usage.Used) != 9 || s.Noise == nil || s.Noise.Images != min(2, n) {
			t.Errorf("%d images of %d, PSNR %v, usage %+v, noise %+v", s.Images, n, s.PSNR, s.Usage, s.Noise)
		}
		path := saved(t, r)
		if _, err := os.Stat(filepath.Join(path, RepresentationFile)); err != nil {
			t.Error(err)
		}
	}
}

// TestIncompleteGrid: missing combinations do not affect the others, with fewer images than a batch.
func TestIncompleteGrid(t *testing.T) {
	set := added(t, 61, func(c []int) []int64 { return []int64{int64(c[0]), int64(c[4])} }, "floor", "form")
	if set.Info().Complete {
		t.Fatal("61 images of 40 combinations hold each once")
	}
	o := few
	o.Noise = 0
	r, err := staged(t.Context(), t, shipped(t), set, o, besideField...)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Scores
	if m := s.Metrics; m == nil || m.Rows != 61 || !slices.Equal(m.Factors, []string{"floor", "form"}) || len(m.KeptFactors) != 2 || !m.InfoM.Defined() || !m.DCI.SlotSum.D.Defined() {
		t.Errorf("metrics %+v", m)
	}
	if s.NoFactors != "" || s.Noise != nil || s.Swap == nil || s.Swap.ProbeImages != 55 || len(s.Swap.ProbeAccuracy) != 2 {
		t.Errorf("%q, swaps %+v", s.NoFactors, s.Swap)
	}
}

// TestNoiseSheet: the sheet has the original images, then reconstructions that get worse with stronger noise.
func TestNoiseSheet(t *testing.T) {
	o := few
	o.Pairs, o.Probe = 0, 0
	r := withoutField(t, shipped(t), o)
	if want := r.Index[:shownImages]; !slices.Equal(r.Scores.Noise.Shown, want) {
		t.Errorf("images %v are shown, want %v", r.Scores.Noise.Shown, want)
	}
	file, err := os.Open(filepath.Join(saved(t, r), NoiseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil || img.Bounds().Dx() != 64*(2+len(strengths)) || img.Bounds().Dy() != 64*shownImages {
		t.Fatalf("%v, %v", img.Bounds(), err)
	}
	// distance returns the mean absolute difference of two columns, in bytes.
	distance := func(a, b int) (sum float64) {
		for y := range 64 * shownImages {
			for x := range 64 {
				p, _, _, _ := img.At(64*a+x, y).RGBA()
				q, _, _, _ := img.At(64*b+x, y).RGBA()
				sum += max(float64(p)-float64(q), float64(q)-float64(p)) / 257 / (64 * 64 * shownImages)
			}
		}
		return sum
	}
	if clean, faint, loud := distance(0, 1), distance(0, 2), distance(0, 1+len(strengths)); !(clean < 12 && faint < 1.5*clean+1 && loud > 2*clean) {
		t.Errorf("columns differ from the images by %v without noise, %v at +20 dB and %v at -20 dB", clean, faint, loud)
	}
	pixels := make([]byte, 64*64*3)
	if err := dataset(t).Images(pixels, r.Scores.Noise.Shown[3:]); err != nil {
		t.Fatal(err)
	}
	if p, _, _, _ := img.At(5, 3*64+7).RGBA(); byte(p>>8) != pixels[(7*64+5)*3] {
		t.Error(fmt.Sprint("the first column is not image ", r.Scores.Noise.Shown[3]))
	}
}

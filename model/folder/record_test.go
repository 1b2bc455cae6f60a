//go:build linux

package folder_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/folder"
)

// TestThin keeps the first and last step, every strideth step, and steps with additional measurements, with five digits.
func TestThin(t *testing.T) {
	const stride = 100
	f, err := folder.Create(filepath.Join(t.TempDir(), "a"), model.Config{Model: "hrr"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 2*stride+7; step++ {
		p := model.Point{Step: step, Values: map[string]float64{"total": math.Pi / 1000, "recon": math.Inf(1)}}
		if step%10 == 0 { // process values are measured by the clock
			p.Values["process/cpu"], p.Values["process/memory"] = 1, 0.2
		}
		if step == 30 {
			p.Values["psnr/eval"], p.Values["infom/eval"] = 20, 0.5
		}
		if err := points.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := points.Close(); err != nil {
		t.Fatal(err)
	}
	to, err := folder.Create(filepath.Join(t.TempDir(), "b"), f.Config(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := f.Thin(to, stride); err != nil {
		t.Fatal(err)
	}
	kept, _, err := to.Tail(0)
	if err != nil {
		t.Fatal(err)
	}
	var steps []int
	for _, p := range kept {
		steps = append(steps, p.Step)
	}
	if want := []int{1, 30, stride, 2 * stride, 2*stride + 7}; !slices.Equal(steps, want) {
		t.Errorf("kept steps %v, want %v", steps, want)
	}
	if v := kept[0].Values; v["total"] != 0.0031416 || !math.IsInf(v["recon"], 1) {
		t.Errorf("values %v", v)
	}
}

// TestThinWithDamage: damaged lines are left out, and the rest is copied.
func TestThinWithDamage(t *testing.T) {
	f, err := folder.Create(filepath.Join(t.TempDir(), "a"), model.Config{Model: "hrr"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 5; step++ {
		if err := points.Append(model.Point{Step: step, Values: map[string]float64{"total": 0.25}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := points.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), "points.jsonl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(content, []byte("\n")) // the first is the header
	lines[3][2] ^= 1
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	to, err := folder.Create(filepath.Join(t.TempDir(), "b"), f.Config(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := f.Thin(to, 1); err != nil {
		t.Fatal(err)
	}
	var steps []int
	if err := to.Each(func(p model.Point) error { steps = append(steps, p.Step); return nil }); err != nil {
		t.Fatal(err)
	}
	if lost, err := f.DamagedPoints(); err != nil || lost != 1 || !slices.Equal(steps, []int{1, 2, 4, 5}) {
		t.Errorf("%d damaged, copied steps %v, %v", lost, steps, err)
	}
}

// TestRecord: an adopted record is the run without its weights; an incomplete record is rewritten.
func TestRecord(t *testing.T) {
	here, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	f, err := here.CreateAs("a", model.Config{Model: "hrr", Seed: 7}, "seven", model.Status{State: model.Finished, Step: 9, Checkpoint: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	if err := f.Record(dir, 100); err == nil {
		t.Error("recorded a run without scores")
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	scores := model.Scores{Images: 12, PSNR: 33.5, Metrics: &model.Metrics{InfoM: 0.8}}
	if err := f.SetScores(scores); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, the record exists
		if err := f.Record(dir, 100); err != nil {
			t.Fatal(err)
		}
	}
	there, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := there.Adopt("a", os.DirFS(filepath.Join(dir, "a")), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	g, err := there.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	run, err := g.Run()
	if err != nil || run.Name != "seven" || run.Config != f.Config() || run.State != model.Finished || run.Step != 9 || run.Checkpoint != 0 {
		t.Errorf("%+v, %v", run, err)
	}
	if got, err := g.Scores(); err != nil || got.PSNR != scores.PSNR || got.Metrics.InfoM != 0.8 || got.Images != 12 {
		t.Errorf("%+v, %v", got, err)
	}
}

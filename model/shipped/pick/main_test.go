package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/shipped"
)

// run creates an evaluated run in a data folder.
func run(t *testing.T, root *folder.Data, id string, cfg model.Config, s model.Scores) {
	t.Helper()
	f, err := root.CreateAs(id, cfg, "", model.Status{State: model.Finished})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetScores(s); err != nil {
		t.Fatal(err)
	}
}

func dataFolder(t *testing.T) *folder.Data {
	t.Helper()
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestCandidates: a run is selected by InfoM from three seeds, and the sentence lists the other settings in which they differ.
func TestCandidates(t *testing.T) {
	root := dataFolder(t)
	scores := func(infoM float64, images int) model.Scores {
		return model.Scores{Images: images, PSNR: 40 - 10*infoM, Effort: model.Full, Metrics: &model.Metrics{InfoM: model.Score(infoM)}}
	}
	cfg := func(seed int64, lr float64) model.Config { return model.Config{Model: "hrr", Seed: seed, LR: lr} }
	run(t, root, "a", cfg(0, 0.1), scores(0.7, 10_000))
	run(t, root, "b", cfg(1, 0.1), scores(0.8, 10_000))
	run(t, root, "c", cfg(2, 0.1), scores(0.4, 10_000))
	run(t, root, "again", cfg(1, 0.1), scores(0.9, 10_000))
	run(t, root, "other", cfg(3, 0.3), scores(0.9, 10_000))
	run(t, root, "fewer", cfg(4, 0.1), scores(0.9, 2_000))
	elsewhere := cfg(6, 0.1)
	elsewhere.Dataset = "dsprites-synthetic"
	run(t, root, "elsewhere", elsewhere, scores(0.9, 10_000))
	quick := scores(0.9, 10_000)
	quick.Effort = model.Quick
	run(t, root, "quick", cfg(5, 0.1), quick)
	p := picker{root: root}
	all, err := p.candidates([]string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	best, rule, err := choose(all, 0)
	if want := "Selected from 3 seeds for the highest InfoM on 10,000 images (seed 0: 0.700; seed 1: 0.800; seed 2: 0.400)."; best.id != "b" || rule != want || err != nil {
		t.Errorf("selected %s: %q, want b: %q", best.id, rule, want)
	}
	all, err = p.candidates([]string{"a", "b", "other"})
	if err != nil {
		t.Fatal(err)
	}
	best, rule, err = choose(all, 0)
	if want := "Selected from 3 runs for the highest InfoM on 10,000 images (seed 0, η 0.1: 0.700; seed 1, η 0.1: 0.800; seed 3, η 0.3: 0.900)."; best.id != "other" || rule != want || err != nil {
		t.Errorf("selected %s: %q, want other: %q", best.id, rule, want)
	}
	best, rule, err = choose(all, 32)
	if want := "Selected from 3 runs for the highest InfoM on 10,000 images and a PSNR of at least 32 dB (seed 0, η 0.1: 0.700 at 33.0 dB; seed 1, η 0.1: 0.800 at 32.0 dB; seed 3, η 0.3: 0.900 at 31.0 dB)."; best.id != "b" || rule != want || err != nil {
		t.Errorf("selected %s: %q, %v, want b: %q", best.id, rule, err, want)
	}
	_, _, err = choose(all, 50)
	expect.Says(t, err, "no run has a PSNR of at least 50 dB")
	for ids, want := range map[string]string{
		"a b": "from at least 3", "a b c again": "b and again have the same configuration and seed 1", "a b elsewhere": "differ in their dataset", "a b fewer": "on 2000", "a b quick": "no full evaluation",
		"a b nobody": "no run",
	} {
		_, err := p.candidates(strings.Fields(ids))
		expect.Says(t, err, want)
	}
}

// TestShippedNow: the order is read from the folder; a missing file is not an error, but a damaged one is.
func TestShippedNow(t *testing.T) {
	dir := t.TempDir()
	if ids, err := shippedNow(dir); err != nil || len(ids) > 0 {
		t.Errorf("%v, %v", ids, err)
	}
	order := filepath.Join(dir, shipped.OrderFile)
	os.WriteFile(order, []byte(`["shipped-a","shipped-b"]`), 0o644)
	if ids, err := shippedNow(dir); err != nil || strings.Join(ids, " ") != "shipped-a shipped-b" {
		t.Errorf("%v, %v", ids, err)
	}
	os.WriteFile(order, []byte(`{`), 0o644)
	if _, err := shippedNow(dir); err == nil {
		t.Error("shippedNow accepts a damaged order")
	}
}

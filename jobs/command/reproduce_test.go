package command

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/measure/report"
)

// recorded returns the results and entries of a report on one group, with a seed for each given InfoM.
func recorded(infom ...float64) (report.Results, map[string]report.Entry) {
	part, entries := report.Part{}, map[string]report.Entry{}
	for seed, v := range infom {
		cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
		if err != nil {
			panic(err)
		}
		cfg.Seed = int64(seed)
		id := string(rune('a' + seed))
		e := report.Entry{Run: model.Run{ID: id, Config: cfg, Status: model.Status{State: model.Finished}},
			Scores: &model.Scores{Version: model.ScoresVersion, Images: 100, PSNR: 20, Effort: model.Full, Metrics: &model.Metrics{InfoM: model.Score(v)},
				Options: &model.EvalOptions{Images: 100, Noise: 50, Pairs: 10, Probe: 20, Trees: 30}}}
		part.Entries, entries[id] = append(part.Entries, e), e
	}
	r, err := report.New(report.Input{Title: "three seeds", Parts: []report.Part{part}})
	if err != nil {
		panic(err)
	}
	return r.Results(), entries
}

// TestReproducedMeansAreCompared checks that means agree if their intervals overlap, and that one seed has no verdict.
func TestReproducedMeansAreCompared(t *testing.T) {
	old, _ := recorded(0.70, 0.72, 0.74)
	for _, c := range []struct {
		name   string
		values []float64
		differ int
	}{
		{"the same", []float64{0.70, 0.72, 0.74}, 0},
		{"near", []float64{0.74, 0.75, 0.76}, 0},
		{"far", []float64{0.20, 0.22, 0.21}, 1},
	} {
		_, again := recorded(c.values...)
		verdicts, err := compareResults(old, again)
		if err != nil || differing(verdicts) != c.differ {
			t.Errorf("%s: %+v, %v", c.name, verdicts, err)
		}
		found := false
		for _, v := range verdicts {
			found = found || v.Metric == "infom" && v.N == 3 && v.Agrees != nil
		}
		if !found {
			t.Errorf("%s: InfoM was not compared: %+v", c.name, verdicts)
		}
	}
	one, again := recorded(0.5)
	verdicts, err := compareResults(one, again)
	if err != nil || len(verdicts) == 0 || verdicts[0].Agrees != nil {
		t.Errorf("one seed: %+v, %v", verdicts, err)
	}
}

// TestReadResults checks that an archive and a results.json can be read, and that other files are rejected with a reason.
func TestReadResults(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	old, _ := recorded(0.70, 0.72)
	body, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	archive := func(name, file string) string {
		out, err := os.Create(at(name))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		z := zip.NewWriter(out)
		defer z.Close()
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(body)
		return at(name)
	}
	plain := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	for _, path := range []string{archive("report.zip", "results.json"), plain("results.json", string(body))} {
		got, err := readResults(path)
		if err != nil || len(got.Runs) != 2 || strings.Join(got.Runs[0].Scores.EvalFlags(), " ") != "--effort full --images 100 --noise 50 --pairs 10 --probe 20 --trees 30 --heldout=false" {
			t.Errorf("%s: %+v, %v", path, got.Runs, err)
		}
	}
	for path, want := range map[string]string{archive("other.zip", "x.json"): "not a report.zip", at("none.zip"): "no such file: " + at("none.zip"),
		plain("text", "hello"): "not a report's results.json", plain("old.json", `{"schema":1}`): "format version 1", plain("empty.json", `{"schema":2}`): "nothing to compare"} {
		if _, err := readResults(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
)

// exporter gathers bundles as main does, without the page.
func exporter(ctx context.Context, o ExportOptions) (bundle.Bundle, func(), error) {
	engine, err := compute.Open("cpu")
	if err != nil {
		return bundle.Bundle{}, nil, err
	}
	library := play.NewLibrary(o.Data, engine, data.Catalogue{Dir: o.Data})
	b, err := bundle.Source{Library: library, Engine: engine, Data: o.Data}.Bundle(ctx, o.Name)
	return b, library.Close, err
}

// An evaluated run is exported and verified; a digit of a score that is changed afterwards is named.
func TestExportAndVerify(t *testing.T) {
	dataDir, _ := shippedRun(t)
	if code, _, stderr := called(t, "eval", "shipped", "--data", dataDir, "--images", "70", "--noise", "0", "--pairs", "0", "--probe", "0", "--trees", "2", "--engine", "cpu"); code != done {
		t.Fatal(stderr)
	}
	out := filepath.Join(t.TempDir(), "bundle")
	env := environment{export: exporter}
	if code, said, stderr := calledIn(t, env, "export", "shipped", "--data", dataDir, "--out", out); code != done || !strings.Contains(said, "slotscope verify "+out) || stderr != "" {
		t.Fatalf("exit code %d, said %q, %q", code, said, stderr)
	}
	verify := func() (int, string) {
		code, text, stderr := called(t, "verify", out, "--data", dataDir, "--engine", "cpu")
		return code, text + stderr
	}
	if code, text := verify(); code != done || !strings.Contains(text, "sums, examples and scores agree") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	report := filepath.Join(t.TempDir(), "report")
	if code, _, stderr := calledIn(t, env, "report", "shipped", "--data", dataDir, "--bundles", "--out", report); code != done {
		t.Fatal(stderr)
	}
	o, closer, err := bundle.Open(filepath.Join(report, "bundles", "shipped.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Problems) > 0 || o.Manifest.Run != "shipped" || o.Scores == nil {
		t.Errorf("the model of a report: %+v, %v", o.Manifest, o.Problems)
	}
	closer.Close()
	path := filepath.Join(out, bundle.ScoresFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte(`"infom": 0.`)) + len(`"infom": 0.`) + 3
	raw[at] = '0' + (raw[at]-'0'+1)%10
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, text := verify(); code != failed || !strings.Contains(text, "score metrics.infom: recorded 0.") || !strings.Contains(text, "scores.json: its SHA-256") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if code, _, stderr := calledIn(t, env, "export", "shipped", "--data", dataDir, "--out", out); code != usage || !strings.Contains(stderr, "not empty") {
		t.Errorf("into a folder with files: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := calledIn(t, env, "export", "a", "b"); code != usage {
		t.Errorf("two runs: exit code %d, %s", code, stderr)
	}
	if code, text, stderr := called(t, "verify"); code != usage {
		t.Errorf("no bundle: %d %s %s", code, text, stderr)
	}
}

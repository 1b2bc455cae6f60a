package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
	"slotscope/model/play"
)

// exporter collects bundles as main does, without the playground page.
func exporter(ctx context.Context, o ExportOptions) (bundle.Bundle, func(), error) {
	engine, err := compute.Open("cpu")
	if err != nil {
		return bundle.Bundle{}, nil, err
	}
	library := play.NewLibrary(o.Data, engine, data.Catalogue{Dir: o.Data})
	b, err := bundle.Source{Library: library, Engine: engine, Data: o.Data}.Bundle(ctx, o.Name)
	return b, library.Close, err
}

// TestVerifyWithAnotherProbe checks that a bundle contains the probe used for its scores: they can be reproduced in a data folder with a
// different probe, and a changed probe is reported.
func TestVerifyWithAnotherProbe(t *testing.T) {
	expect.Long(t)
	dataDir, _ := smallRun(t)
	if code, _, stderr := called(t, "eval", "small", "--data", dataDir, "--images", "64", "--noise", "4", "--pairs", "3", "--probe", "3", "--trees", "2", "--engine", "cpu"); code != done {
		t.Fatal(stderr)
	}
	dir := t.TempDir()
	out, plain, elsewhere := filepath.Join(dir, "bundle"), filepath.Join(dir, "without probe"), filepath.Join(dir, "data")
	b, free, err := exporter(t.Context(), ExportOptions{dataDir, "small"})
	if err != nil || b.Probe == nil {
		t.Fatalf("probe %v: %v", b.Probe, err)
	}
	defer free()
	if _, err := b.WriteDir(out); err != nil {
		t.Fatal(err)
	}
	kept := keepOtherProbe(t, dataDir, elsewhere)
	verify := func(bundle string, flags ...string) (int, string) {
		code, text, stderr := called(t, append([]string{"verify", bundle, "--data", elsewhere, "--engine", "cpu"}, flags...)...)
		return code, text + stderr
	}
	if code, text := verify(out); code != done || !strings.Contains(text, "checksums, examples and scores match") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if again, err := os.ReadFile(kept.path); err != nil || !bytes.Equal(again, kept.raw) {
		t.Errorf("the data folder's own probe changed: %v", err)
	}
	b.Probe = nil
	if _, err := b.WriteDir(plain); err != nil {
		t.Fatal(err)
	}
	if _, text := verify(plain); !strings.Contains(text, "does not contain the probe") || strings.Contains(text, "score metrics") {
		t.Errorf("without its probe: %s", text)
	}
	if code, _, stderr := called(t, "adopt", "--data", elsewhere, out); code != done {
		t.Fatal(stderr)
	}
	if _, err := evaluate.FindProbe(os.DirFS(filepath.Join(elsewhere, evaluate.ProbesDir)), b.Scores.Probe); err != nil {
		t.Errorf("the probe of an adopted bundle: %v", err)
	}
	path := filepath.Join(out, bundle.ProbeFile)
	file, err := checkpoint.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Tensors["conv0.weight"].Data[0] += 1e-3
	if err := checkpoint.Write(path, file); err != nil {
		t.Fatal(err)
	}
	if code, text := verify(out, "--scores=false"); code != failed || !strings.Contains(text, `tensor of the probe "conv0.weight": its SHA-256`) {
		t.Errorf("exit code %d: %s", code, text)
	}
}

type keptProbe struct {
	path string
	raw  []byte
}

// keepOtherProbe stores a probe with other weights in data folder to, under the name of the one in from.
func keepOtherProbe(t *testing.T, from, to string) keptProbe {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(from, evaluate.ProbesDir, "*.safetensors"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v: %v", names, err)
	}
	file, err := checkpoint.Read(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Tensors["fc2.weight"].Data {
		file.Tensors["fc2.weight"].Data[i] *= -1
	}
	path := filepath.Join(to, evaluate.ProbesDir, filepath.Base(names[0]))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), checkpoint.Write(path, file)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return keptProbe{path, raw}
}

// TestExportAndVerify checks that an exported run can be verified, and that a changed digit of a score is reported.
func TestExportAndVerify(t *testing.T) {
	dataDir, _ := smallRun(t)
	if code, _, stderr := called(t, "eval", "small", "--data", dataDir, "--images", "64", "--noise", "0", "--pairs", "0", "--probe", "0", "--trees", "2", "--engine", "cpu"); code != done {
		t.Fatal(stderr)
	}
	out := filepath.Join(t.TempDir(), "bundle")
	env := environment{export: exporter}
	if code, said, stderr := calledIn(t, env, "export", "small", "--data", dataDir, "--out", out); code != done || !strings.Contains(said, "slotscope verify "+out) || stderr != "" {
		t.Fatalf("exit code %d, said %q, %q", code, said, stderr)
	}
	verify := func() (int, string) {
		code, text, stderr := called(t, "verify", out, "--data", dataDir, "--engine", "cpu")
		return code, text + stderr
	}
	if code, text := verify(); code != done || !strings.Contains(text, "checksums, examples and scores match") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	report := filepath.Join(t.TempDir(), "report")
	if code, _, stderr := calledIn(t, env, "report", "small", "--data", dataDir, "--bundles", "--out", report); code != done {
		t.Fatal(stderr)
	}
	o, closer, err := bundle.Open(filepath.Join(report, "bundles", "small.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Problems) > 0 || o.Manifest.Run != "small" || o.Scores == nil {
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
	if code, _, stderr := calledIn(t, env, "export", "small", "--data", dataDir, "--out", out); code != usage || !strings.Contains(stderr, "not empty") {
		t.Errorf("export to a folder with files: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := calledIn(t, env, "export", "a", "b"); code != usage {
		t.Errorf("two runs: exit code %d, %s", code, stderr)
	}
	if code, text, stderr := called(t, "verify"); code != usage {
		t.Errorf("no bundle: %d %s %s", code, text, stderr)
	}
}

package handlertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	gomlx "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// RunID is the ID of the run that WriteRun writes.
const RunID = "20260101-000000-aaaaaaaa"

// WriteRun writes a finished run of an untrained HRR model into the data folder dir.
func WriteRun(t *testing.T, dir string) { WriteRunOf(t, dir, "hrr") }

// WriteRunOf writes a finished run of an untrained model: its configuration and one checkpoint.
func WriteRunOf(t *testing.T, dir, name string) {
	t.Helper()
	cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Widths, cfg.FC, cfg.M = [4]int{4, 4, 8, 8}, 16, 5
	if name == "hrr" {
		cfg.D, cfg.K = 32, 12
	}
	net, err := ae.New(cfg, ae.Image{H: 64, W: 64, C: 3})
	if err != nil {
		t.Fatal(err)
	}
	scope := gomlx.New().Checked(false)
	if err := net.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	tensors, err := net.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "runs", RunID)
	if err := os.MkdirAll(filepath.Join(folder, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{"config.json": cfg, "run.json": map[string]string{"id": RunID, "name": "First light"}} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := checkpoint.File{Config: cfg, Step: 250, Tensors: tensors}
	if err := checkpoint.Write(filepath.Join(folder, "checkpoints", "step-000000250.safetensors"), file); err != nil {
		t.Fatal(err)
	}
}

// TinyID is the ID of the run that WriteTiny writes.
const TinyID = "tiny"

// WriteTiny writes a run of a small trained model into the data folder dir: HRR with preset tiny after 20,000 steps, whose slots have
// factors. It returns the key of its checkpoint.
func WriteTiny(t *testing.T, dir string) (key string) {
	t.Helper()
	const trained = "../../model/play/testdata/tiny.safetensors"
	file, err := checkpoint.Read(trained)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "runs", TinyID)
	if err := os.MkdirAll(filepath.Join(folder, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(trained)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "checkpoints", "step-000020000.safetensors"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(file.Config); err == nil {
		err = os.WriteFile(filepath.Join(folder, "config.json"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, err := checkpoint.Hash(trained)
	if err != nil {
		t.Fatal(err)
	}
	return sum[:16]
}

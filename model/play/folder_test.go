package play_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"slotscope/model/format/checkpoint"
)

// writeRun writes the parts of a run's folder that the playground reads, and returns the checkpoint's path.
func writeRun(t testing.TB, dir, id string, file checkpoint.File) string {
	t.Helper()
	folder := filepath.Join(dir, "runs", id)
	if err := os.MkdirAll(filepath.Join(folder, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, filepath.Join(folder, "config.json"), file.Config)
	writeJSON(t, filepath.Join(folder, "run.json"), map[string]string{"id": id, "name": "A first run"})
	path := filepath.Join(folder, "checkpoints", fmt.Sprintf("step-%09d.safetensors", file.Step))
	if err := checkpoint.Write(path, file); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

func truncate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()/2)
}

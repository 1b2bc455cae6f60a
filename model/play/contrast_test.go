package play

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/shipped"
)

// shippedAs writes a folder like those of shipped runs, and reads it the same way.
func shippedAs(t *testing.T, name, dataset string, seed int64) Source {
	t.Helper()
	cfg, err := model.Default(name, "tiny", dataset)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Seed = seed
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := checkpoint.File{Config: cfg, Step: 9, Tensors: map[string]checkpoint.Tensor{"out.weight": {Shape: []int{1}, Data: []float32{float32(seed)}}}}
	if err := checkpoint.Write(filepath.Join(folder, "checkpoints", "step-000000009.safetensors"), file); err != nil {
		t.Fatal(err)
	}
	for file, v := range map[string]any{"run.json": map[string]string{"name": name}, "state.json": model.Status{Step: 9}, "scores.json": model.Scores{}} {
		raw, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	src, err := shippedSource(shipped.Run{ID: name, Files: os.DirFS(folder)})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// A shipped HRR model is initially compared to the first shipped β-VAE of its dataset; other models are compared to none.
func TestContrast(t *testing.T) {
	hrr := shippedAs(t, "hrr", "shapes3d-synthetic", 1)
	vae, later := shippedAs(t, "betavae", "shapes3d-synthetic", 2), shippedAs(t, "betavae", "shapes3d-synthetic", 3)
	elsewhere, vq := shippedAs(t, "betavae", "shapes3d", 4), shippedAs(t, "vqvae", "shapes3d-synthetic", 5)
	for _, c := range []struct {
		among []Source
		src   Source
		want  string
	}{
		{[]Source{hrr}, hrr, ""}, {[]Source{hrr, vq, elsewhere}, hrr, ""}, {[]Source{hrr, elsewhere, vae, later}, hrr, vae.Key},
		{[]Source{later, hrr, vae}, hrr, later.Key}, {[]Source{hrr, vae}, vae, ""}, {[]Source{hrr, vae, vq}, vq, ""}, {nil, hrr, ""},
	} {
		if got := Contrast(c.among, c.src); got != c.want {
			t.Errorf("beside %s of %d: %q, want %q", c.src.Title, len(c.among), got, c.want)
		}
	}
}

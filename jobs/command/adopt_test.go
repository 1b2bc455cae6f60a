package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
)

// TestAdoptWeights checks that a bundle and bare weights become finished runs with the same configuration.
func TestAdoptWeights(t *testing.T) {
	dataDir, _ := smallRun(t)
	out := filepath.Join(t.TempDir(), "bundle")
	if code, _, stderr := calledIn(t, environment{export: exporter}, "export", "small", "--data", dataDir, "--out", out); code != done {
		t.Fatal(stderr)
	}
	want, err := checkpoint.Read(filepath.Join(out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	if err := os.Mkdir(bare, 0o755); err != nil {
		t.Fatal(err)
	}
	nameless := want
	nameless.Config = model.Config{}
	if err := checkpoint.Write(filepath.Join(bare, "weights.safetensors"), nameless); err != nil {
		t.Fatal(err)
	}
	adoptRefused(t, dataDir, "has no configuration: put the run's config.json in the same folder", filepath.Join(bare, "weights.safetensors"))
	config, err := json.Marshal(want.Config)
	if err == nil {
		err = os.WriteFile(filepath.Join(bare, "config.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{out, filepath.Join(out, "model.safetensors"), filepath.Join(bare, "weights.safetensors")} {
		code, text, stderr := called(t, "adopt", "--data", dataDir, "--json", "--name", "mine", path)
		var said struct{ Run string }
		if err := json.Unmarshal([]byte(text), &said); code != done || err != nil {
			t.Fatalf("%s: exit code %d, %s, %s", path, code, text, stderr)
		}
		f, err := folder.Open(filepath.Join(dataDir, "runs", said.Run))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		steps := f.Checkpoints()
		if status, err := f.Status(); err != nil || status.State != model.Finished || f.Config() != want.Config || len(steps) != 1 {
			t.Errorf("%s: %+v, %v, checkpoints %v", path, status, err, steps)
		}
	}
	broken := strings.Replace(string(config), `"m":`, `"m":-`, 1)
	if err := os.WriteFile(filepath.Join(bare, "config.json"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	adoptRefused(t, dataDir, "m: ", filepath.Join(bare, "weights.safetensors"))
	if err := os.WriteFile(filepath.Join(out, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	adoptRefused(t, dataDir, "config.json has format 0", out)
}

func TestAdoptRefuses(t *testing.T) {
	dataDir, _ := smallRun(t)
	t.Setenv(adopt.Variable, filepath.Join(t.TempDir(), "models.json"))
	adoptRefused(t, dataDir, "slotscope adopt <model> ... [flags]")
	adoptRefused(t, dataDir, "name the model's dataset", "true")
	adoptRefused(t, dataDir, `"no-such-program" is not an executable program`, "--dataset", "shapes3d-synthetic", "no-such-program")
	adoptRefused(t, dataDir, `opening dataset "none"`, "--dataset", "none", "true")
	adoptRefused(t, dataDir, "message 1 (hello): the process exited (exit status 0)", "--dataset", "shapes3d-synthetic", "true")
	adoptRefused(t, dataDir, `expected a line of JSON, got "hello"`, "--dataset", "shapes3d-synthetic", "echo", "hello")
	adoptRefused(t, dataDir, "--timeout 0 is out of range", "--timeout", "0", "true")
	adoptRefused(t, dataDir, "--run and --dataset are for commands", "--dataset", "shapes3d-synthetic", t.TempDir())
	adoptRefused(t, dataDir, "run small is not an adopted model", "--run", "small", "true")
	if runs, err := os.ReadDir(filepath.Join(dataDir, "runs")); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
}

func adoptRefused(t *testing.T, dataDir, want string, args ...string) {
	t.Helper()
	code, out, stderr := called(t, append([]string{"adopt", "--data", dataDir}, args...)...)
	if code == done || out != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("adopt %q: exit code %d, %q, %q; want %q", args, code, out, stderr, want)
	}
}

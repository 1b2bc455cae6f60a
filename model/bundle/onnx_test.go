package bundle_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model/bundle"
	"slotscope/model/format/checkpoint"
)

// withONNX writes bundles of the demo model and of every variant, with the examples as raw arrays.
func withONNX(t *testing.T) (names, dirs []string) {
	t.Helper()
	write := func(name string, file checkpoint.File, n int) {
		dir := filepath.Join(t.TempDir(), "bundle")
		b := represented(t, file, n)
		if _, err := b.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		e, c := b.Examples, file.Config
		slots := e.Numbers
		for _, code := range e.Codes {
			slots = append(slots, float32(code))
		}
		images := make([]float32, len(e.Images)) // [n, C, H, W]
		for i, v := range e.Images {
			images[i] = float32(v) / 255
		}
		for name, values := range map[string][]float32{"images": channelsFirst(images, n), "slots": slots, "decoded": channelsFirst(e.Decoded, n)} {
			var raw []byte
			for _, v := range values {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			if err := os.WriteFile(filepath.Join(dir, name+".raw"), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		shape := fmt.Sprintf(`{"n":%d,"m":%d,"discrete":%v}`, n, c.M, c.Discrete())
		if err := os.WriteFile(filepath.Join(dir, "shape.json"), []byte(shape), 0o644); err != nil {
			t.Fatal(err)
		}
		names, dirs = append(names, name), append(dirs, dir)
	}
	write("the demo model", demo(t), 64)
	for name, c := range variants() {
		write(name, untrained(t, c), 8)
	}
	return names, dirs
}

// channelsFirst converts [n, 64, 64, 3] to [n, 3, 64, 64].
func channelsFirst(x []float32, n int) []float32 {
	out := make([]float32, 0, len(x))
	for b := range n {
		for c := range 3 {
			for p := range 64 * 64 {
				out = append(out, x[(b*64*64+p)*3+c])
			}
		}
	}
	return out
}

// The reference checker accepts every model and infers the declared shapes.
func TestONNXChecker(t *testing.T) {
	python := pythonWith(t, "onnx")
	_, dirs := withONNX(t)
	script := `
import sys, glob, onnx
for folder in sys.argv[1:]:
    files = glob.glob(folder + "/onnx/*.onnx")
    assert len(files) >= 2, files
    for file in files:
        model = onnx.load(file)
        onnx.checker.check_model(model, full_check=True)
        assert model.opset_import[0].version >= 13
print("ok")`
	if said, err := exec.Command(python, append([]string{"-c", script}, dirs...)...).CombinedOutput(); err != nil || strings.TrimSpace(string(said)) != "ok" {
		t.Errorf("%v\n%s", err, said)
	}
}

// onnxruntime gives a trained model's codes exactly and its images within 1 of 255. With random weights, up to one slot in 50 may differ, because
// of near ties.
func TestONNXRuntime(t *testing.T) {
	if os.Getenv("SLOTSCOPE_ONNXRUNTIME") == "" {
		t.Skip("$SLOTSCOPE_ONNXRUNTIME is not a node_modules folder with onnxruntime-node (npm install --ignore-scripts onnxruntime-node)")
	}
	names, dirs := withONNX(t)
	said, err := exec.Command("node", append([]string{"testdata/onnx.cjs"}, dirs...)...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if err != nil || len(lines) != len(dirs) {
		t.Fatalf("%v\n%s", err, said)
	}
	for i, line := range lines {
		var got struct {
			Slots, Other, Apart int
			Same                bool
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		allowed := got.Slots / 50
		if i == 0 {
			allowed = 0
		}
		if !got.Same || got.Other > allowed || got.Apart > 1 {
			t.Errorf("%s: %s", names[i], line)
		}
	}
}

// An archive has three networks, or two for a VAE.
func TestONNXFiles(t *testing.T) {
	for model, want := range map[string]int{"hrr": 3, "vqvae": 3, "qlae": 3, "betavae": 2, "bioae": 2, "factorvae": 2, "tripod": 3} {
		dir, _ := written(t, bundle.Bundle{Name: "x", File: untrained(t, tiny(model))})
		if files, err := filepath.Glob(filepath.Join(dir, "onnx", "*.onnx")); err != nil || len(files) != want {
			t.Errorf("%s: %v, %v", model, files, err)
		}
	}
}

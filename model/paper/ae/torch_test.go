package ae

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// A checkpoint that we write opens in PyTorch, which draws the same codes exactly (the means of a VAE within 1e-4) and the same
// logits within 1e-4. The script is testdata/reference.py, or the one that $SLOTSCOPE_TORCH_REFERENCE names, with the same command line.
func TestPyTorchReadsOurCheckpoints(t *testing.T) {
	for _, name := range baselines {
		t.Run(name, func(t *testing.T) {
			cfg, err := model.Default(name, "tiny", "isaac3d")
			if err != nil {
				t.Fatal(err)
			}
			inPyTorch(t, cfg, "testdata/reference.py")
		})
	}
	for name, c := range map[string]struct {
		preset string
		change func(*model.Config)
		ours   bool // needs our own script: the other knows HRR alone
	}{
		"tiny":                             {"tiny", func(*model.Config) {}, false},
		"small":                            {"small", func(c *model.Config) { c.Seed = 3 }, false},
		"symbols of unit magnitude":        {"tiny", func(c *model.Config) { c.SymbolInit = "unit" }, false},
		"static codebook, learned symbols": {"tiny", func(c *model.Config) { c.StaticCodebook, c.LearnSymbols = true, true }, false},
		"no denoiser":                      {"tiny", func(c *model.Config) { c.NoDenoiser = true }, true},
		"free codebook":                    {"tiny", func(c *model.Config) { c.FreeCodebook = true }, true},
		"random binding":                   {"tiny", func(c *model.Config) { c.Binding = "random" }, true},
		"permutation binding":              {"tiny", func(c *model.Config) { c.Binding = "permutation" }, true},
		"concat binding":                   {"tiny", func(c *model.Config) { c.Binding = "concat" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			script := cmp.Or(os.Getenv("SLOTSCOPE_TORCH_REFERENCE"), "testdata/reference.py")
			if c.ours {
				script = "testdata/reference.py"
			}
			cfg := config(t, c.preset, c.change)
			inPyTorch(t, cfg, script)
		})
	}
}

func inPyTorch(t *testing.T, cfg model.Config, script string) {
	python := pythonWithTorch()
	if python == "" {
		t.Skip("no python3 with torch and numpy is installed (Debian: apt-get install python3-torch python3-numpy)")
	}
	const n = 8
	built, scope := initialised(t, cfg, Image{64, 64, 3})
	dir := t.TempDir()
	images := array{shape: []int{n, 64, 64, 3}, data: make([]float32, n*64*64*3)}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range images.data {
		images.data[i] = rng.Float32()
	}
	writeNPY(t, filepath.Join(dir, "images.npy"), images.shape, images.data)
	exported, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	for i := range exported["fc2.weight"].Data { // an untrained encoder sends every image to nearly one code
		exported["fc2.weight"].Data[i] *= 50
	}
	path := filepath.Join(dir, "step-000000000.safetensors")
	if err := checkpoint.Write(path, checkpoint.File{Config: cfg, Tensors: exported}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.npz")
	if said, err := exec.Command(python, script, "infer", path, filepath.Join(dir, "images.npy"), out).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, said)
	}
	compareWithPyTorch(t, built, reopened(t, path), images, readNPZ(t, out))
}

// reopened imports a checkpoint into a new scope, as the playground does.
func reopened(t *testing.T, path string) *context.Context {
	t.Helper()
	file, err := checkpoint.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	built, err := New(file.Config, Image{64, 64, 3})
	if err != nil {
		t.Fatal(err)
	}
	scope := context.New()
	if err := built.Import(scope, file.Tensors); err != nil {
		t.Fatal(err)
	}
	return scope
}

func compareWithPyTorch(t *testing.T, built Model, scope *context.Context, images array, want map[string]array) {
	t.Helper()
	got, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x *Node) []*Node {
		codes := built.Encode(scope, x)
		return []*Node{codes, TransposeAllAxes(built.Decode(scope, codes), 0, 3, 1, 2)}
	}, tensors.FromFlatDataAndDimensions(images.data, images.shape...))
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	if built.Discrete() {
		said = sameCodes(t, tensors.MustCopyFlatData[int32](got[0]), want["codes"])
	} else if err := relativeError(tensors.MustCopyFlatData[float32](got[0]), want["codes"].data); !(err <= 1e-4) {
		t.Errorf("the means differ by %.1e", err)
	}
	var worst float64
	for i, logit := range tensors.MustCopyFlatData[float32](got[1]) {
		worst = math.Max(worst, math.Abs(float64(logit-want["logits"].data[i])))
	}
	if !(worst <= 1e-4) {
		t.Errorf("a logit differs by %v, at most 1e-4 is allowed", worst)
	}
	t.Logf("%s largest difference of a logit %.1e", said, worst)
}

func sameCodes(t *testing.T, codes []int32, want array) string {
	t.Helper()
	if len(codes) != len(want.data) {
		t.Fatalf("%d codes, PyTorch has %d", len(codes), len(want.data))
	}
	type taken struct{ slot, code int }
	used := map[taken]bool{}
	for i, code := range codes {
		used[taken{i % want.shape[1], int(code)}] = true
		if float32(code) != want.data[i] {
			t.Errorf("code %d is %d, PyTorch's is %v", i, code, want.data[i])
		}
	}
	if len(used) < 20 {
		t.Errorf("only %v occur: the comparison says little", used)
	}
	return fmt.Sprintf("%d codes equal, %d of them different by slot or number;", len(codes), len(used))
}

// pythonWithTorch finds an interpreter that has PyTorch and NumPy; Debian's own is tried where another shadows it.
var pythonWithTorch = sync.OnceValue(func() string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import torch, numpy").Run() == nil {
			return python
		}
	}
	return ""
})

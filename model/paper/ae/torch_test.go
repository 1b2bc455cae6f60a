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

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// reference is the PyTorch implementation.
const reference = "testdata/reference.py"

// A checkpoint written by Go opens in PyTorch, which computes the same codes except for ties (see nearTie; for a VAE the same means within
// 1e-4) and the same logits from them within 1e-4. The script is testdata/reference.py, or $SLOTSCOPE_TORCH_REFERENCE with the same command line.
func TestPyTorchReadsOurCheckpoints(t *testing.T) {
	type exchange struct {
		name   string
		script string
		file   inferred
	}
	var all []exchange
	for _, name := range baselines {
		cfg, err := model.Default(name, "tiny", "isaac3d")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, exchange{name, reference, written(t, cfg)})
	}
	for name, c := range map[string]struct {
		preset string
		change func(*model.Config)
		ours   bool // needs our own script; the other supports only HRR
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
		script := cmp.Or(os.Getenv("SLOTSCOPE_TORCH_REFERENCE"), reference)
		if c.ours {
			script = reference
		}
		all = append(all, exchange{name, script, written(t, config(t, c.preset, c.change))})
	}
	args := map[string][]string{} // by script; each is started once, because PyTorch takes seconds to load
	for _, e := range all {
		args[e.script] = append(args[e.script], e.file.checkpoint, e.file.images, e.file.out)
	}
	for script, files := range args {
		inPyTorch(t, script, append([]string{"infer"}, files...)...)
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			compareWithPyTorch(t, e.file.built, reopened(t, e.file.checkpoint), e.file.pixels, readNPZ(t, e.file.out))
		})
	}
}

// inferred holds a model and the files that PyTorch reads and writes.
type inferred struct {
	built                   Model
	pixels                  array
	checkpoint, images, out string
}

// written writes a model with random weights, and images.
func written(t *testing.T, cfg model.Config) inferred {
	t.Helper()
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
	for i := range exported["fc2.weight"].Data { // an untrained encoder maps all images to almost the same code
		exported["fc2.weight"].Data[i] *= 50
	}
	path := filepath.Join(dir, "step-000000000.safetensors")
	if err := checkpoint.Write(path, checkpoint.File{Config: cfg, Tensors: exported}); err != nil {
		t.Fatal(err)
	}
	return inferred{built, images, path, filepath.Join(dir, "images.npy"), filepath.Join(dir, "out.npz")}
}

// inPyTorch runs a script, or skips the test if PyTorch is not installed.
func inPyTorch(t *testing.T, script string, args ...string) {
	t.Helper()
	python := pythonWithTorch()
	if python == "" {
		t.Skip("no python3 with torch and numpy found (Debian: apt-get install python3-torch python3-numpy)")
	}
	run := exec.Command(python, append([]string{script}, args...)...)
	run.Env = append(os.Environ(), "OMP_NUM_THREADS=1") // threads that wait for each other are slower on busy cores
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, said)
	}
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
	x := tensors.FromFlatDataAndDimensions(images.data, images.shape...)
	got := run(t, scope, built.Encode, x)
	said, slots := "", tensors.FromFlatDataAndDimensions(want["codes"].data, want["codes"].shape...)
	if built.Discrete() {
		said = sameCodes(t, tensors.MustCopyFlatData[int32](got), want)
	} else if err := relativeError(tensors.MustCopyFlatData[float32](got), want["codes"].data); !(err <= 1e-4) {
		t.Errorf("the means differ by %.1e", err)
	}
	logits := run(t, scope, func(scope *context.Context, slots *Node) *Node { // from PyTorch's slots, so that a tie does not change an image
		if built.Discrete() {
			slots = ConvertDType(slots, dtypes.Int32)
		}
		return TransposeAllAxes(built.Decode(scope, slots), 0, 3, 1, 2)
	}, slots)
	var worst float64
	for i, logit := range tensors.MustCopyFlatData[float32](logits) {
		worst = math.Max(worst, math.Abs(float64(logit-want["logits"].data[i])))
	}
	if !(worst <= 1e-4) {
		t.Errorf("a logit differs by %v, at most 1e-4 is allowed", worst)
	}
	t.Logf("%s largest difference of a logit %.1e", said, worst)
}

func run(t *testing.T, scope *context.Context, graph func(*context.Context, *Node) *Node, in *tensors.Tensor) *tensors.Tensor {
	t.Helper()
	out, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x *Node) []*Node { return []*Node{graph(scope, x)} }, in)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// sameCodes fails if a code differs from PyTorch's and the two entries are not tied.
func sameCodes(t *testing.T, codes []int32, want map[string]array) string {
	t.Helper()
	theirs, m := want["codes"], want["codes"].shape[1]
	if len(codes) != len(theirs.data) {
		t.Fatalf("%d codes, PyTorch has %d", len(codes), len(theirs.data))
	}
	type taken struct{ slot, code int }
	used, ties := map[taken]bool{}, 0
	for i, code := range codes {
		used[taken{i % m, int(code)}] = true
		if float32(code) == theirs.data[i] {
			continue
		}
		ties++
		if apart, allowed := nearTie(want, i, int(code)); !(apart <= allowed) {
			t.Errorf("code %d is %d, PyTorch's is %v; the squared distances differ by %.3g, rounding explains %.3g", i, code, theirs.data[i], apart, allowed)
		}
	}
	if ties > len(codes)/20 {
		t.Errorf("%d of %d codes differ, more than ties explain", ties, len(codes))
	}
	if len(used) < 20 {
		t.Errorf("only codes %v occur, so the comparison proves little", used)
	}
	return fmt.Sprintf("%d of %d codes equal, %d of them different by slot or number;", len(codes)-ties, len(codes), len(used))
}

// nearTie returns the difference between the squared distances of value i to our entry and to PyTorch's, in float64, and the difference
// that float32 rounding explains. Each engine sums d terms in its own order, as ‖v−c‖² or as ‖c‖²−2v·c; either sum, with its products
// and the root that PyTorch takes, has an error of at most γ·(‖v‖+‖c‖)², γ = (d+4)·2⁻²⁴ (Higham 2002, section 3.1).
// In addition, the two encoders' values differ by up to 10⁻⁵·‖v‖:
//
//	|D_a − D_b| ≤ γ·((‖v‖+‖a‖)² + (‖v‖+‖b‖)²) + 2·10⁻⁵·‖v‖·‖a−b‖
//
// If a script writes neither values nor entries, no difference is allowed.
func nearTie(want map[string]array, i, code int) (apart, allowed float64) {
	values, entries := want["values"], want["entries"]
	if len(values.shape) != 3 || len(entries.shape) != 2 {
		return math.Inf(1), 0
	}
	m, d := values.shape[1], values.shape[2]
	entry := func(j int) []float32 {
		if entries.shape[1] == d && entries.shape[0] != m {
			return entries.data[j*d : (j+1)*d] // [k, d], shared by all slots
		}
		return entries.data[i%m*entries.shape[1]+j:][:1] // QLAE's [m, k], d = 1
	}
	v, a, b := values.data[i*d:(i+1)*d], entry(code), entry(int(want["codes"].data[i]))
	var vv, aa, bb, ab, da, db float64
	for n := range v {
		x, p, q := float64(v[n]), float64(a[n]), float64(b[n])
		vv, aa, bb, ab = vv+x*x, aa+p*p, bb+q*q, ab+(p-q)*(p-q)
		da, db = da+(x-p)*(x-p), db+(x-q)*(x-q)
	}
	norm := math.Sqrt(vv)
	reach := func(cc float64) float64 { return (norm + math.Sqrt(cc)) * (norm + math.Sqrt(cc)) }
	γ := float64(d+4) * 0x1p-24
	return math.Abs(da - db), γ*(reach(aa)+reach(bb)) + 2e-5*norm*math.Sqrt(ab)
}

// TestNearTie: nearTie distinguishes a tie in PyTorch's float32 from distinct entries.
func TestNearTie(t *testing.T) {
	want := map[string]array{
		"codes":   {shape: []int{1, 1}, data: []float32{0}},
		"values":  {shape: []int{1, 1, 2}, data: []float32{65, 0}},
		"entries": {shape: []int{3, 2}, data: []float32{0.2, 0.1, 0.2000001, -0.1, 0.3, 0}},
	}
	if apart, allowed := nearTie(want, 0, 1); !(apart > 0 && apart <= allowed) {
		t.Errorf("a tie: %g apart, %g allowed", apart, allowed)
	}
	if apart, allowed := nearTie(want, 0, 2); apart <= allowed {
		t.Errorf("another entry: %g apart, %g allowed", apart, allowed)
	}
}

// pythonWithTorch returns an interpreter that has PyTorch and NumPy; it also tries Debian's own in case another shadows it.
var pythonWithTorch = sync.OnceValue(func() string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, ['torch', 'numpy'])))").Run() == nil {
			return python
		}
	}
	return ""
})

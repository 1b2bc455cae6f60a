package ae

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/layer"
)

// TestParity compares HRR and the literature's models with PyTorch: given parameters, a batch and random draws, every intermediate, term
// and gradient in each .npz of $SLOTSCOPE_PARITY (default testdata/parity) must match. The first word of a file's name is its model.
func TestParity(t *testing.T) {
	if rounds() { // most of Tripod's second differences away
		holdToPyTorch(t, "tripod")
		return
	}
	holdToPyTorch(t)
}

// holdToPyTorch runs the comparison, except for some models.
func holdToPyTorch(t *testing.T, without ...string) {
	t.Helper()
	folder := cmp.Or(os.Getenv("SLOTSCOPE_PARITY"), "testdata/parity")
	files, err := filepath.Glob(filepath.Join(folder, "*.npz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .npz files in %s (%v)", folder, err)
	}
	for _, path := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".npz"), "_")
		if slices.Contains(without, name) {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			if name == "hrr" {
				parity(t, readNPZ(t, path))
			} else {
				fieldParity(t, name, readNPZ(t, path))
			}
		})
	}
}

func parity(t *testing.T, golden map[string]array) {
	cfg, image := goldenConfig(t, golden)
	built, err := New(cfg, image)
	if err != nil {
		t.Fatal(err)
	}
	h, scope := built.(*HRR), context.New()
	if err := h.Import(scope, goldenParams(golden)); err != nil {
		t.Fatal(err)
	}
	got := evaluate(t, h, scope, golden["x"])
	for name, want := range golden {
		kind, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"total", "loss", "out", "grad"}, kind) {
			continue
		}
		if err := relativeError(got[name], want.data); !(err <= tolerance()) {
			t.Errorf("%s: relative error %.2g, at most %.0e is allowed", name, err, tolerance())
		} else if testing.Verbose() {
			t.Logf("%-28s relative error %.1e", name, err)
		}
	}
	for _, p := range h.params {
		if _, ok := golden["grad/"+p.Name]; !ok && p.Rate != layer.Frozen {
			t.Errorf("file has no gradient for %s", p.Name)
		}
	}
}

// evaluate runs the model on PyTorch's images, [B, C, H, W], and returns everything under the golden file's names and layouts.
func evaluate(t *testing.T, h *HRR, scope *context.Context, x array) map[string][]float32 {
	t.Helper()
	var names []string
	exec, err := context.NewExec(engine(t), scope, func(scope *context.Context, x *Node) []*Node {
		var nodes []*Node
		names = nil
		add := func(name string, n *Node) { names, nodes = append(names, name), append(nodes, n) }
		x = TransposeAllAxes(x, 0, 2, 3, 1)
		f, o := h.forward(scope, x), h.Losses(scope, Batch{Images: x})
		add("out/z", f.z)
		add("out/unbound", f.slots.Retrieved)
		add("out/v", f.slots.Denoised)
		add("out/codes", ConvertDType(o.Codes, x.DType()))
		add("out/codebook", f.slots.Codebook)
		add("out/z_hat", f.slots.Bundle)
		add("out/logits", TransposeAllAxes(o.Logits, 0, 3, 1, 2))
		add("total", o.Total)
		for _, term := range o.Terms {
			add("loss/"+term.Name, term.Value)
		}
		learned, where := trainable(scope, h, x.Graph())
		for i, gradient := range Gradient(o.Total, where...) {
			add("grad/"+learned[i], gradient)
		}
		return nodes
	})
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := exec.Exec(tensors.FromFlatDataAndDimensions(x.data, x.shape...))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float32{}
	for i, name := range names {
		got[name] = tensors.MustCopyFlatData[float32](outputs[i])
	}
	for _, p := range h.params {
		if grad, ok := got["grad/"+p.Name]; ok {
			got["grad/"+p.Name] = p.ToTorch(grad)
		}
	}
	return got
}

// trainable returns the learned variables, by name and as nodes.
func trainable(scope *context.Context, h *HRR, g *Graph) (names []string, nodes []*Node) {
	for _, p := range h.params {
		if v := scope.GetVariable(p.Name); h.LRScale(v) > 0 {
			names, nodes = append(names, p.Name), append(nodes, v.ValueGraph(g))
		}
	}
	return names, nodes
}

func relativeError(got, want []float32) float64 {
	if len(got) != len(want) || len(want) == 0 {
		return math.Inf(1)
	}
	var worst, scale float64
	for i := range want {
		scale = math.Max(scale, math.Abs(float64(want[i])))
		worst = math.Max(worst, math.Abs(float64(got[i])-float64(want[i])))
		if got[i] != got[i] {
			return math.NaN()
		}
	}
	if scale == 0 {
		return worst
	}
	return worst / scale
}

// goldenConfig derives dimensions from the parameters' shapes, and reads the weights from the file.
func goldenConfig(t *testing.T, golden map[string]array) (model.Config, Image) {
	t.Helper()
	c, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	for i, number := range []string{"0", "3", "6", "9"} {
		c.Widths[i] = golden["param/encoder."+number+".weight"].shape[0]
	}
	c.M, c.D = golden["param/symbols"].shape[0], golden["param/symbols"].shape[1]
	c.K, c.FC = golden["param/seeds"].shape[0], golden["param/fc1.weight"].shape[0]
	var λ map[string]float64
	if err := json.Unmarshal([]byte(golden["lambdas"].text), &λ); err != nil {
		t.Fatal(err)
	}
	c.LambdaRec, c.LambdaVQ, c.LambdaCommit = λ["recon"], λ["vq"], λ["commit"]
	c.LambdaLat, c.LambdaVal, c.LambdaCB = λ["latent"], λ["value"], λ["codebook"]
	x := golden["x"].shape
	return c, Image{H: x[2], W: x[3], C: x[1]}
}

func goldenParams(golden map[string]array) map[string]checkpoint.Tensor {
	params := map[string]checkpoint.Tensor{}
	for name, a := range golden {
		if name, ok := strings.CutPrefix(name, "param/"); ok {
			params[name] = checkpoint.Tensor{Shape: a.shape, Data: a.data}
		}
	}
	return params
}

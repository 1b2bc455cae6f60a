package ae

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/layer"
)

var baselines = []string{"vqvae", "qlae", "betavae", "betatcvae", "annealedvae", "dipvae1", "dipvae2"}

// TestBaselineParity compares every baseline with PyTorch: given parameters, a batch and noise, all intermediates between encoder and
// decoder, all terms and all gradients must match testdata/baseline.
func TestBaselineParity(t *testing.T) {
	for _, name := range baselines {
		t.Run(name, func(t *testing.T) { baselineParity(t, filepath.Join("testdata/baseline", name+".npz")) })
	}
}

// The same for parameters that PyTorch draws now, to rule out that the stored ones match by luck.
func TestBaselineParityOfAFreshDraw(t *testing.T) {
	dir, args := t.TempDir(), []string{"golden", "7"}
	for _, name := range baselines {
		args = append(args, name, filepath.Join(dir, name+".npz"))
	}
	inPyTorch(t, reference, args...)
	for _, name := range baselines {
		t.Run(name, func(t *testing.T) { baselineParity(t, filepath.Join(dir, name+".npz")) })
	}
}

func baselineParity(t *testing.T, path string) {
	golden := readNPZ(t, path)
	x := golden["x"].shape
	built, err := New(baselineConfig(t, golden["config"].text), Image{H: x[2], W: x[3], C: x[1]})
	if err != nil {
		t.Fatal(err)
	}
	scope := context.New()
	if err := built.Import(scope, goldenParams(golden)); err != nil {
		t.Fatal(err)
	}
	got, compared := baselineEvaluate(t, built, scope, golden), map[string]int{}
	for name, want := range golden {
		kind, _, _ := strings.Cut(name, "/")
		if kind != "total" && kind != "loss" && kind != "out" && kind != "grad" {
			continue
		}
		compared[kind]++
		if err := relativeError(got[name], want.data); !(err <= tolerance()) {
			t.Errorf("%s: relative error %.2g, at most %.0e is allowed", name, err, tolerance())
		} else if testing.Verbose() {
			t.Logf("%-28s relative error %.1e", name, err)
		}
	}
	if learns := len(goldenParams(golden)); compared["grad"] != learns || compared["total"] != 1 || compared["loss"] < 1 || compared["out"] < 5 {
		t.Errorf("compared %v, for %d parameters", compared, learns)
	}
}

// baselineConfig returns the configuration written by reference.py, on top of a model's defaults.
func baselineConfig(t *testing.T, text string) model.Config {
	t.Helper()
	var named struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal([]byte(text), &named); err != nil {
		t.Fatal(err)
	}
	c, err := model.Default(named.Model, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// baselineEvaluate runs the five stages and the objective, and returns everything under the golden file's names and layouts.
func baselineEvaluate(t *testing.T, built Model, scope *context.Context, golden map[string]array) map[string][]float32 {
	t.Helper()
	var names []string
	inputs := []any{tensors.FromFlatDataAndDimensions(golden["x"].data, golden["x"].shape...)}
	if built.Noise() > 0 {
		inputs = append(inputs, tensors.FromFlatDataAndDimensions(golden["noise"].data, golden["noise"].shape...))
	}
	outputs, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, in []*Node) []*Node {
		var nodes []*Node
		names = nil
		add := func(name string, n *Node) {
			names, nodes = append(names, name), append(nodes, ConvertDType(n, dtypes.Float32))
		}
		x, noise := TransposeAllAxes(in[0], 0, 2, 3, 1), (*Node)(nil)
		if len(in) > 1 {
			noise = in[1]
		}
		z := built.Latent(scope, x)
		retrieved := built.Retrieve(scope, z)
		slots := built.Represent(scope, retrieved)
		add("out/z", z)
		add("out/retrieved", retrieved)
		add("out/slots", slots)
		add("out/bundle", built.Bundle(scope, slots))
		if v, ok := built.(interface {
			sample(*context.Context, Batch) sample
		}); ok {
			s := v.sample(scope, Batch{Images: x, Draws: noise})
			add("out/log_var", s.logVar)
			add("out/sample", s.z)
		}
		o := built.Losses(scope, Batch{Images: x, Draws: noise})
		add("out/logits", TransposeAllAxes(o.Logits, 0, 3, 1, 2))
		add("total", o.Total)
		for _, term := range o.Terms {
			add("loss/"+term.Name, term.Value)
		}
		var learned []*Node
		params := paramsOf(built)
		for _, p := range params {
			learned = append(learned, scope.GetVariable(p.Name).ValueGraph(x.Graph()))
		}
		for i, gradient := range Gradient(o.Total, learned...) {
			add("grad/"+params[i].Name, gradient)
		}
		return nodes
	}, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float32{}
	for i, name := range names {
		got[name] = tensors.MustCopyFlatData[float32](outputs[i])
	}
	for _, p := range paramsOf(built) {
		got["grad/"+p.Name] = p.ToTorch(got["grad/"+p.Name])
	}
	return got
}

func paramsOf(built Model) []layer.Param {
	return built.(interface{ layers() []layer.Param }).layers()
}

func (s store) layers() []layer.Param { return s.params }

// For every model the stages compose: Encode, Decode and FromLatent agree with the single stages; images of a code differ.
func TestStagesCompose(t *testing.T) {
	for _, name := range model.ModelNames() {
		t.Run(name, func(t *testing.T) {
			built, scope := initialised(t, narrowOf(t, name), Image{32, 48, 1})
			x := pictures(3, 32, 48, 1)
			noise := make([]float32, 3*max(1, built.Noise()))
			var wants []string
			out, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x, noise *Node) []*Node {
				x = TransposeAllAxes(x, 0, 2, 3, 1)
				z := built.Latent(scope, x)
				z.AssertDims(3, built.Size())
				slots, logits := built.FromLatent(scope, z)
				if slots.DType().IsInt() != built.Discrete() {
					t.Errorf("slots are %s, but Discrete is %v", slots.DType(), built.Discrete())
				}
				if built.Noise() == 0 {
					noise = nil
				}
				o := built.Losses(scope, Batch{Images: x, Draws: noise})
				if (o.Codes != nil) != built.Discrete() {
					t.Errorf("the objective has codes: %v", o.Codes != nil)
				}
				wants = []string{"slots", "logits"}
				pairs := []*Node{slots, built.Encode(scope, x), logits, built.Decode(scope, built.Encode(scope, x))}
				if built.Discrete() {
					wants, pairs = append(wants, "codes"), append(pairs, o.Codes, slots)
					wants, pairs = append(wants, "reconstruction"), append(pairs, o.Logits, logits)
				}
				for i, n := range pairs {
					pairs[i] = ConvertDType(n, dtypes.Float32)
				}
				return pairs
			}, tensors.FromFlatDataAndDimensions(x.data, x.shape...), tensors.FromFlatDataAndDimensions(noise, 3, max(1, built.Noise())))
			if err != nil {
				t.Fatal(err)
			}
			for i, what := range wants {
				a, b := tensors.MustCopyFlatData[float32](out[2*i]), tensors.MustCopyFlatData[float32](out[2*i+1])
				// The straight-through sum v + (v̂ − v) rounds; the decoder slightly magnifies the error.
				if err := relativeError(a, b); !(err < 1e-4) {
					t.Errorf("%s differ by %.1e", what, err)
				}
			}
		})
	}
}

// A VAE samples: different noise gives a different reconstruction; zero noise gives the reconstruction from the mean.
func TestVAEDraws(t *testing.T) {
	for _, name := range []string{"betavae", "betatcvae", "annealedvae", "dipvae1", "dipvae2"} {
		built, scope := initialised(t, narrowOf(t, name), Image{32, 32, 3})
		x := pictures(2, 32, 32, 3)
		out, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x, noise *Node) []*Node {
			x = TransposeAllAxes(x, 0, 2, 3, 1)
			still := built.Losses(scope, Batch{Images: x, Draws: ZerosLike(noise)})
			return []*Node{built.Losses(scope, Batch{Images: x, Draws: noise}).Logits, still.Logits, built.Decode(scope, built.Encode(scope, x))}
		}, tensors.FromFlatDataAndDimensions(x.data, x.shape...), tensors.FromFlatDataAndDimensions([]float32{1, -1, 2, 0.5, 1, -2}, 2, 3))
		if err != nil {
			t.Fatal(err)
		}
		drawn, still, mean := tensors.MustCopyFlatData[float32](out[0]), tensors.MustCopyFlatData[float32](out[1]), tensors.MustCopyFlatData[float32](out[2])
		if err := relativeError(still, mean); err > 1e-6 {
			t.Errorf("%s: the reconstruction without noise differs from the mean's by %v", name, err)
		}
		if err := relativeError(drawn, mean); err < 1e-2 {
			t.Errorf("%s: noise changes nothing", name)
		}
	}
}

// Weight decay applies to encoder and decoder; codebooks learn at their own rate.
func TestDecays(t *testing.T) {
	for _, name := range model.ModelNames() {
		cfg := narrowOf(t, name)
		if f, _ := model.FieldByName("codebook_lr"); f.Of(name) {
			cfg.CodebookLR = 3
		}
		cfg.NoBiasDecay = false
		built, scope := initialised(t, cfg, Image{32, 32, 3})
		bottleneck := map[string]bool{"codebook": true, "seeds": true, "symbols": true, "generator1.weight": true, "generator1.bias": true,
			"generator2.weight": true, "generator2.bias": true, "denoise1.weight": true, "denoise1.bias": true, "denoise2.weight": true, "denoise2.bias": true}
		for _, p := range paramsOf(built) {
			v := scope.GetVariable(p.Name)
			if built.Discriminates(v) {
				if built.Decays(v) || built.LRScale(v) != cfg.DiscLR {
					t.Errorf("%s: %s decays: %v, and learns at %v times the rate", name, p.Name, built.Decays(v), built.LRScale(v))
				}
				bottleneck[p.Name] = true
			}
			if built.Decays(v) == bottleneck[p.Name] {
				t.Errorf("%s: %s decays: %v", name, p.Name, built.Decays(v))
			}
			if p.Name == "codebook" && built.LRScale(v) != 3 {
				t.Errorf("%s: the codebook learns at %v times the rate", name, built.LRScale(v))
			}
		}
		cfg.NoBiasDecay = true
		unbiased, err := New(cfg, Image{32, 32, 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paramsOf(built) {
			if want := !bottleneck[p.Name] && len(p.Shape) > 1; unbiased.Decays(scope.GetVariable(p.Name)) != want {
				t.Errorf("%s without decay of biases: %s decays: %v", name, p.Name, !want)
			}
		}
	}
}

// TestVQDistance: the VQ and commitment terms are summed or averaged over d; each model's default is one of the two.
func TestVQDistance(t *testing.T) {
	for name, own := range map[string]string{"hrr": "sum", "vqvae": "mean"} {
		value := map[string][]float32{}
		var d float64
		for _, distance := range []string{"", "sum", "mean"} {
			cfg := narrowOf(t, name)
			cfg.VQDistance, d = distance, float64(cfg.D)
			built, scope := initialised(t, cfg, Image{32, 32, 3})
			images := pictures(2, 32, 32, 3)
			out, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, in []*Node) []*Node {
				terms := built.Losses(scope, Batch{Images: in[0]}).Terms
				return []*Node{terms[1].Value, terms[2].Value}
			}, tensors.FromFlatDataAndDimensions(images.data, 2, 32, 32, 3))
			if err != nil {
				t.Fatal(err)
			}
			value[distance] = []float32{tensors.ToScalar[float32](out[0]), tensors.ToScalar[float32](out[1])}
		}
		for i, term := range []string{"vq", "commit"} {
			if ratio := float64(value["sum"][i] / value["mean"][i]); math.Abs(ratio/d-1) > 1e-4 || value[""][i] != value[own][i] {
				t.Errorf("%s, %s: sum/mean is %v at d = %v; the model's default is %v", name, term, ratio, d, value[""][i])
			}
		}
	}
}

// narrowOf returns a configuration of any model that is small enough to differentiate quickly.
func narrowOf(t *testing.T, name string) model.Config {
	t.Helper()
	if name == "hrr" {
		return narrow(t)
	}
	c, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	c.Widths, c.FC, c.M = [4]int{4, 4, 8, 8}, 16, 3
	if name == "factorvae" {
		c.DiscWidth, c.DiscLayers = 6, 2
	}
	return c
}

// The capacity of AnnealedVAE grows linearly to its final value and stays there; without a step it has the final value.
func TestCapacityGrows(t *testing.T) {
	cfg := narrowOf(t, "annealedvae")
	cfg.Capacity, cfg.AnnealSteps = 20, 100
	built, scope := initialised(t, cfg, Image{32, 32, 1})
	x := tensors.FromFlatDataAndDimensions(make([]float32, 32*32), 1, 32, 32, 1)
	for step, want := range map[float32]float32{1: 0.2, 50: 10, 100: 20, 101: 20, 5000: 20, 0: 20} {
		got, err := context.ExecOnceN(engine(t), scope, func(_ *context.Context, x, step *Node) []*Node {
			batch := Batch{Images: x, Step: step}
			if step.Shape().Rank() > 0 {
				batch.Step = nil
			}
			return []*Node{built.(*AnnealedVAE).capacity(batch)}
		}, x, map[bool]any{false: step, true: []float32{0}}[step == 0])
		if err != nil {
			t.Fatal(err)
		}
		if c := tensors.ToScalar[float32](got[0]); math.Abs(float64(c-want)) > 1e-5 {
			t.Errorf("at step %v the capacity is %v, want %v", step, c, want)
		}
	}
}

// FactorVAE draws a separate permutation for every latent; the second half of the rows has none.
func TestFactorVAEDraws(t *testing.T) {
	built, _ := initialised(t, narrowOf(t, "factorvae"), Image{32, 32, 1})
	const batch, m = 12, 3
	out := make([]float32, batch*built.Noise())
	built.Draw(rand.New(rand.NewPCG(1, 2)), out)
	var orders [m][]float32
	for i := range batch {
		for j := range m {
			if v := out[i*2*m+m+j]; i < batch/2 {
				orders[j] = append(orders[j], v)
			} else if v != 0 {
				t.Errorf("row %d of the second half contains a permutation index: %v", i, v)
			}
		}
	}
	for j := range m {
		if j > 0 && slices.Equal(orders[j], orders[0]) {
			t.Errorf("latents 0 and %d share the permutation %v", j, orders[0])
		}
		sorted := slices.Sorted(slices.Values(orders[j]))
		if !slices.Equal(sorted, []float32{0, 1, 2, 3, 4, 5}) {
			t.Errorf("latent %d: %v is not a permutation", j, orders[j])
		}
	}
}

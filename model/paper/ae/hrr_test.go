package ae

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// The paper's counts: around 15.4 M for HRR and around 14.9 M for baselines. The latter holds if a latent is a number; VQ-VAE's z is m
// vectors of 64, which widens the encoder's last layer and the decoder's first. HRR's denoiser, seeds and generator add
// (512+1)·1024 + (1024+1)·512 + 512·512 + 2·(512+1)·512.
func TestParameterCounts(t *testing.T) {
	for name, want := range map[string][2]int{ // encoder and decoder, codebook
		"hrr":       {15_419_328, 1_837_568},
		"qlae":      {14_903_753, 9 * 10},
		"betavae":   {14_908_370, 0},
		"betatcvae": {14_908_370, 0},
		"vqvae":     {15_484_928, 512 * 64},
	} {
		c, err := model.Default(name, "paper", "shapes3d")
		if err != nil {
			t.Fatal(err)
		}
		built, err := New(c, Image{64, 64, 3})
		if err != nil {
			t.Fatal(err)
		}
		if all, networks := built.Parameters(); all != want[0]+want[1] || networks != want[0] {
			t.Errorf("%s learns %d numbers, %d of them in encoder and decoder; want %d more than %d", name, all, networks, want[1], want[0])
		}
	}
}

// All tensor names of the paper's model in PyTorch.
func TestExportNames(t *testing.T) {
	built, scope := initialised(t, config(t, "tiny"), Image{64, 64, 3})
	exported, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{
		"symbols": {9, 128}, "seeds": {128, 128}, "canvas": {1, 64, 4, 4}, "out.weight": {3, 8, 3, 3},
		"fc1.weight": {64, 1024}, "fc1.bias": {64}, "fc2.weight": {128, 64}, "fc2.bias": {128}, "style.weight": {64, 128}, "style.bias": {64},
		"denoise1.weight": {256, 128}, "denoise1.bias": {256}, "denoise2.weight": {128, 256}, "denoise2.bias": {128},
		"generator1.weight": {128, 128}, "generator1.bias": {128}, "generator2.weight": {128, 128}, "generator2.bias": {128},
		"encoder.0.weight": {8, 3, 4, 4}, "encoder.1.weight": {8}, "encoder.1.bias": {8},
		"encoder.3.weight": {16, 8, 4, 4}, "encoder.4.weight": {16}, "encoder.4.bias": {16},
		"encoder.6.weight": {32, 16, 4, 4}, "encoder.7.weight": {32}, "encoder.7.bias": {32},
		"encoder.9.weight": {64, 32, 4, 4}, "encoder.10.weight": {64}, "encoder.10.bias": {64},
		"up.0.conv.weight": {64, 64, 4, 4}, "up.0.affine.weight": {128, 64}, "up.0.affine.bias": {128},
		"up.1.conv.weight": {64, 32, 4, 4}, "up.1.affine.weight": {64, 64}, "up.1.affine.bias": {64},
		"up.2.conv.weight": {32, 16, 4, 4}, "up.2.affine.weight": {32, 64}, "up.2.affine.bias": {32},
		"up.3.conv.weight": {16, 8, 4, 4}, "up.3.affine.weight": {16, 64}, "up.3.affine.bias": {16},
	}
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(exported))) {
		t.Fatalf("exported %v", slices.Sorted(maps.Keys(exported)))
	}
	for name, shape := range want {
		if got := exported[name]; !slices.Equal(got.Shape, shape) {
			t.Errorf("%s has shape %v, want %v", name, got.Shape, shape)
		}
	}
}

func TestImportIsTheInverseOfExport(t *testing.T) {
	built, scope := initialised(t, config(t, "tiny"), Image{64, 64, 3})
	first, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	for name := range first { // a distinct number for every element
		for i := range first[name].Data {
			first[name].Data[i] = float32(i) + float32(len(name))/64
		}
	}
	for what, scope := range map[string]*context.Context{"an empty scope": context.New(), "a scope with other values": scope} {
		if err := built.Import(scope, first); err != nil {
			t.Fatal(err)
		}
		second, err := built.Export(scope)
		if err != nil {
			t.Fatal(err)
		}
		for name := range first {
			if !slices.Equal(first[name].Data, second[name].Data) || !slices.Equal(first[name].Shape, second[name].Shape) {
				t.Errorf("%s exported to %s and imported again is different", name, what)
			}
		}
	}
}

// A checkpoint of another configuration is rejected with an error per tensor, and changes nothing.
func TestImportNamesWhatDoesNotFit(t *testing.T) {
	built, scope := initialised(t, config(t, "tiny"), Image{64, 64, 3})
	before, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	other, otherScope := initialised(t, config(t, "tiny", func(c *model.Config) {
		c.Widths[0], c.FreeCodebook = 12, true
	}), Image{64, 64, 3})
	tensors, err := other.Export(otherScope)
	if err != nil {
		t.Fatal(err)
	}
	tensors["fc2.bias"] = checkpoint.Tensor{Shape: []int{128}, Data: []float32{1}}
	var bad model.Invalid
	if err := built.Import(scope, tensors); !errors.As(err, &bad) {
		t.Fatalf("a checkpoint of another model: %v", err)
	}
	for name, want := range map[string]string{
		"encoder.0.weight": "has shape [12 3 4 4]; the configuration requires [8 3 4 4]",
		"out.weight":       "has shape [3 12 3 3]; the configuration requires [3 8 3 3]",
		"seeds":            "is missing",
		"codebook":         "is not a tensor of this model",
		"fc2.bias":         "has 1 elements for shape [128]",
	} {
		if bad[name] != want {
			t.Errorf("%s: %q, want %q", name, bad[name], want)
		}
	}
	if _, ok := bad["symbols"]; ok {
		t.Error("symbols match but are reported")
	}
	after, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	for name := range before {
		if !slices.Equal(before[name].Data, after[name].Data) {
			t.Errorf("%s changed by an import that failed", name)
		}
	}
}

// The seed determines the variables; an option that adds or removes a tensor does not change the others.
func TestInit(t *testing.T) {
	export := func(change func(*model.Config)) map[string]checkpoint.Tensor {
		built, scope := initialised(t, config(t, "tiny", change), Image{64, 64, 3})
		out, err := built.Export(scope)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	base := export(func(*model.Config) {})
	again := export(func(*model.Config) {})
	other := export(func(c *model.Config) { c.Seed = 2 })
	ablated := export(func(c *model.Config) { c.NoDenoiser, c.FreeCodebook = true, true })
	for name := range base {
		if !slices.Equal(base[name].Data, again[name].Data) {
			t.Errorf("%s differs between two runs of one seed", name)
		}
		constant := strings.HasPrefix(name, "encoder.") && len(base[name].Shape) == 1 // gains 1, biases 0
		if !constant && slices.Equal(base[name].Data, other[name].Data) {
			t.Errorf("%s is the same for two seeds", name)
		}
		if kept, ok := ablated[name]; ok && !slices.Equal(base[name].Data, kept.Data) {
			t.Errorf("%s depends on whether there are denoiser and generator", name)
		}
	}
	built, scope := initialised(t, config(t, "tiny"), Image{64, 64, 3})
	if err := built.Init(scope, nil); err == nil {
		t.Error("a scope was initialised twice")
	}
}

// Every option trains: the objective is finite, learned variables have a gradient, and frozen variables are marked so and have none.
func TestAblations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Config)
		frozen []string // in addition to those that the paper freezes
		thawed []string
		absent []string
		added  []string
	}{
		"paper":                            {change: func(*model.Config) {}},
		"exact inverse":                    {change: func(c *model.Config) { c.Inverse = "exact" }},
		"unit symbols":                     {change: func(c *model.Config) { c.SymbolInit = "unit" }},
		"learnable symbols":                {change: func(c *model.Config) { c.LearnSymbols = true }, thawed: []string{"symbols"}},
		"learnable symbols, exact inverse": {change: func(c *model.Config) { c.LearnSymbols, c.Inverse = true, "exact" }, thawed: []string{"symbols"}},
		"static codebook": {change: func(c *model.Config) { c.StaticCodebook = true },
			frozen: []string{"seeds", "generator1.weight", "generator1.bias", "generator2.weight", "generator2.bias"}},
		"tied":                {change: func(c *model.Config) { c.LambdaTie = 0.1 }},
		"coherent":            {change: func(c *model.Config) { c.LambdaCoherence = 0.1 }},
		"random binding":      {change: func(c *model.Config) { c.Binding = "random" }, absent: []string{"symbols"}, frozen: []string{"binding"}},
		"permutation binding": {change: func(c *model.Config) { c.Binding = "permutation" }, absent: []string{"symbols"}, frozen: []string{"binding"}},
		"concat binding":      {change: func(c *model.Config) { c.Binding = "concat" }, absent: []string{"symbols", "binding"}},
		"no denoiser": {change: func(c *model.Config) { c.NoDenoiser = true },
			absent: []string{"denoise1.weight", "denoise1.bias", "denoise2.weight", "denoise2.bias"}},
		"free codebook": {change: func(c *model.Config) { c.FreeCodebook = true }, added: []string{"codebook"},
			absent: []string{"seeds", "generator1.weight", "generator1.bias", "generator2.weight", "generator2.bias"}},
	} {
		t.Run(name, func(t *testing.T) {
			built, scope := initialised(t, narrow(t, c.change), Image{64, 64, 3})
			h := built.(*HRR)
			got := evaluate(t, h, scope, pictures(4, 64, 64, 3))
			for what, values := range got {
				if slices.ContainsFunc(values, func(v float32) bool { return v-v != 0 }) {
					t.Errorf("%s is not finite", what)
				}
			}
			for _, name := range append(c.added, c.thawed...) {
				if norm(got["grad/"+name]) == 0 {
					t.Errorf("%s receives no gradient", name)
				}
			}
			for _, name := range append([]string{"symbols"}, c.frozen...) {
				if slices.Contains(c.absent, name) {
					continue
				}
				v := scope.GetVariable(name)
				if frozen := !slices.Contains(c.thawed, name); frozen != (h.LRScale(v) == 0) || frozen == v.Trainable {
					t.Errorf("%s: rate %v, trainable %v", name, h.LRScale(v), v.Trainable)
				}
			}
			for _, name := range c.absent {
				if scope.GetVariable(name) != nil {
					t.Errorf("%s exists", name)
				}
			}
		})
	}
}

func TestLRScale(t *testing.T) {
	built, scope := initialised(t, config(t, "tiny", func(c *model.Config) { c.CodebookLR = 3 }), Image{64, 64, 3})
	for name, want := range map[string]float64{"fc1.weight": 1, "canvas": 1, "denoise1.bias": 1, "symbols": 0,
		"seeds": 3, "generator1.weight": 3, "generator1.bias": 3, "generator2.weight": 3, "generator2.bias": 3} {
		if got := built.LRScale(scope.GetVariable(name)); got != want {
			t.Errorf("%s learns at %v times the rate, want %v", name, got, want)
		}
	}
	if got := built.LRScale(scope.VariableWithValue("stranger", float32(1))); got != 0 {
		t.Errorf("a variable outside the model has learning rate factor %v", got)
	}
}

// The objective is the weighted sum of its terms; a term of weight 0 is excluded even if it is NaN.
func TestTotalIsTheWeightedSum(t *testing.T) {
	g := NewGraph(engine(t), "weighted")
	terms := []Term{{"a", 2, Const(g, float32(3))}, {"b", 0, Const(g, float32(math.NaN()))}, {"c", 0.5, Const(g, float32(4))}}
	g.Compile(weighted(terms))
	if got := tensors.ToScalar[float32](g.Run()[0]); got != 8 {
		t.Errorf("total %v, want 8", got)
	}
}

// The monitored series match the tensors.
func TestWatch(t *testing.T) {
	cfg := narrow(t)
	built, scope := initialised(t, cfg, Image{64, 64, 3})
	h, x := built.(*HRR), pictures(4, 64, 64, 3)
	var names []string
	outputs, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x *Node) []*Node {
		x = TransposeAllAxes(x, 0, 2, 3, 1)
		f := h.forward(scope, x)
		nodes := []*Node{f.z, f.slots.Codebook}
		names = nil
		for _, s := range h.Losses(scope, Batch{Images: x}).Watch {
			names, nodes = append(names, s.Name), append(nodes, s.Value)
		}
		return nodes
	}, tensors.FromFlatDataAndDimensions(x.data, x.shape...))
	if err != nil {
		t.Fatal(err)
	}
	z, entries := tensors.MustCopyFlatData[float32](outputs[0]), tensors.MustCopyFlatData[float32](outputs[1])
	want := map[string]float64{}
	var latentVar float64
	for row := range slices.Chunk(z, cfg.D) {
		_, v := meanVar(row)
		latentVar += v / 4
	}
	want["latent/mean"], _ = meanVar(z)
	want["latent/var"], want["latent/norm2"] = latentVar, norm(z)*norm(z)/4
	want["codebook/mean"], want["codebook/var"] = meanVar(entries)
	want["codebook/norm2"] = norm(entries) * norm(entries) / float64(cfg.K)
	if len(names) != len(want) {
		t.Errorf("monitored series: %v", names)
	}
	for i, name := range names {
		if got := float64(tensors.ToScalar[float32](outputs[2+i])); math.Abs(got-want[name]) > 1e-5*math.Max(1e-2, math.Abs(want[name])) {
			t.Errorf("%s is %v, want %v", name, got, want[name])
		}
	}
}

// Decoding a batch's codes gives the reconstruction in its objective, for images of any supported shape.
func TestDecodeOfEncode(t *testing.T) {
	for _, image := range []Image{{64, 64, 3}, {32, 48, 1}, {128, 128, 3}} {
		built, scope := initialised(t, narrow(t), image)
		h, x := built.(*HRR), pictures(2, image.H, image.W, image.C)
		outputs, err := context.ExecOnceN(engine(t), scope, func(scope *context.Context, x *Node) []*Node {
			x = TransposeAllAxes(x, 0, 2, 3, 1)
			o, codes := h.Losses(scope, Batch{Images: x}), h.Encode(scope, x)
			codes.AssertDims(2, h.cfg.M)
			return []*Node{o.Logits, h.Decode(scope, codes)}
		}, tensors.FromFlatDataAndDimensions(x.data, x.shape...))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(outputs[0].Shape().Dimensions, []int{2, image.H, image.W, image.C}) {
			t.Errorf("%v: logits of shape %v", image, outputs[0].Shape())
		}
		// The straight-through sum v̄ + (v̂ - v̄) rounds; the decoder slightly magnifies the error.
		if err := relativeError(tensors.MustCopyFlatData[float32](outputs[1]), tensors.MustCopyFlatData[float32](outputs[0])); !(err < 1e-4) {
			t.Errorf("%v: decoding the codes differs by %v", image, err)
		}
	}
}

// TestDecoder checks that every model's Decoder computes Decode, for batches of several sizes and also if too many codes would be bound.
func TestDecoder(t *testing.T) {
	many := narrow(t)
	many.D, many.K = 128, 1<<16
	cases := map[string]model.Config{"many codes": many}
	for _, name := range model.ModelNames() {
		cases[name] = narrowOf(t, name)
	}
	image := Image{32, 48, 3}
	for name, cfg := range cases {
		t.Run(name, func(t *testing.T) {
			built, scope := initialised(t, cfg, image)
			d, err := NewDecoder(engine(t), scope, built)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Finalize()
			for _, batch := range []int{1, 3} {
				slots := slotsFor(cfg, batch)
				want, err := context.ExecOnce(engine(t), scope, built.Decode, slots)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := d.Decode(slots)
					if err != nil {
						t.Fatal(err)
					}
					if err := relativeError(tensors.MustCopyFlatData[float32](got), tensors.MustCopyFlatData[float32](want)); !(err < 1e-5*looser) {
						t.Errorf("%d images differ by %v", batch, err)
					}
				}
			}
		})
	}
}

// slotsFor returns slots that all differ, [batch, m].
func slotsFor(cfg model.Config, batch int) *tensors.Tensor {
	codes, numbers := make([]int32, batch*cfg.M), make([]float32, batch*cfg.M)
	for i := range codes {
		codes[i], numbers[i] = int32(5*i%max(cfg.K, 1)), float32(i)/4-1
	}
	if cfg.Discrete() {
		return tensors.FromFlatDataAndDimensions(codes, batch, cfg.M)
	}
	return tensors.FromFlatDataAndDimensions(numbers, batch, cfg.M)
}

func TestNewRefuses(t *testing.T) {
	for field, c := range map[string]struct {
		change func(*model.Config)
		image  Image
	}{
		"model":       {func(c *model.Config) { c.Model = "gan" }, Image{64, 64, 3}},
		"d":           {func(c *model.Config) { c.D = 1 }, Image{64, 64, 3}},
		"m":           {func(c *model.Config) { c.M = 0 }, Image{64, 64, 3}},
		"k":           {func(c *model.Config) { c.K = 1 }, Image{64, 64, 3}},
		"fc":          {func(c *model.Config) { c.FC = -1 }, Image{64, 64, 3}},
		"widths":      {func(c *model.Config) { c.Widths[2] = 0 }, Image{64, 64, 3}},
		"inverse":     {func(c *model.Config) { c.Inverse = "pseudo" }, Image{64, 64, 3}},
		"symbol_init": {func(c *model.Config) { c.SymbolInit = "" }, Image{64, 64, 3}},
		"image":       {func(*model.Config) {}, Image{60, 64, 3}},
	} {
		_, err := New(config(t, "tiny", c.change), c.image)
		var bad model.Invalid
		if !errors.As(err, &bad) || len(bad) != 1 || bad[field] == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	// Invalid fields that do not shape the model do not prevent opening a checkpoint.
	if _, err := New(config(t, "tiny", func(c *model.Config) { c.Steps, c.Dataset, c.LR = 0, "lost", -1 }), Image{64, 64, 3}); err != nil {
		t.Errorf("model with an invalid field that does not shape it: %v", err)
	}
}

func config(t *testing.T, preset string, changes ...func(*model.Config)) model.Config {
	t.Helper()
	c, err := model.Default("hrr", preset, "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

// narrow returns a configuration that is small enough to differentiate quickly, with every term of its objective active.
func narrow(t *testing.T, changes ...func(*model.Config)) model.Config {
	t.Helper()
	return config(t, "tiny", append(changes, func(c *model.Config) {
		c.Widths, c.FC, c.D, c.M, c.K = [4]int{4, 4, 8, 8}, 16, 32, 3, 12
		c.LambdaLat, c.LambdaVal = 1e-3, 1e-3
	})...)
}

func initialised(t *testing.T, cfg model.Config, image Image) (Model, *context.Context) {
	t.Helper()
	built, err := New(cfg, image)
	if err != nil {
		t.Fatal(err)
	}
	scope := context.New()
	if err := built.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	return built, scope
}

// pictures returns noise images in [0, 1], in PyTorch's order [n, c, h, w].
func pictures(n, h, w, c int) array {
	a := array{shape: []int{n, c, h, w}, data: make([]float32, n*c*h*w)}
	rng := rand.New(rand.NewPCG(2, 3))
	for i := range a.data {
		a.data[i] = rng.Float32()
	}
	return a
}

func meanVar(x []float32) (mean, variance float64) {
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	return mean, variance
}

func norm(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

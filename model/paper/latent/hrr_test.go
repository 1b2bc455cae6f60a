package latent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
	"slotscope/model/paper/hrr"
	"slotscope/model/paper/hrr/hrrtest"
	"slotscope/model/paper/layer"
)

const batch, m, k, d = 3, 4, 6, 16

// Compares Algorithm 1 on slices, slot by slot, with the graph, for every option that changes the computation.
func TestAlgorithm1(t *testing.T) {
	base := HRR{M: m, K: k, D: d}
	for name, change := range map[string]func(*HRR){
		"paper":                    func(*HRR) {},
		"exact inverse":            func(h *HRR) { h.Exact = true },
		"unit symbols":             func(h *HRR) { h.UnitSymbols = true },
		"learned symbols":          func(h *HRR) { h.LearnSymbols = true },
		"learned, exact inverse":   func(h *HRR) { h.LearnSymbols, h.Exact = true, true },
		"static codebook":          func(h *HRR) { h.StaticCodebook = true },
		"free codebook":            func(h *HRR) { h.FreeCodebook = true },
		"no denoiser":              func(h *HRR) { h.NoDenoiser = true },
		"random binding":           func(h *HRR) { h.Binding = Random },
		"permutation binding":      func(h *HRR) { h.Binding = Permutation },
		"concat binding":           func(h *HRR) { h.Binding = Concat },
		"free, static, undenoised": func(h *HRR) { h.FreeCodebook, h.StaticCodebook, h.NoDenoiser = true, true, true },
	} {
		t.Run(name, func(t *testing.T) {
			h := base
			change(&h)
			scope := initialised(h, 5)
			z := noise(batch*d, 6)
			got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
				s := h.Apply(scope, z)
				codes := ConvertDType(s.Codes, z.DType())
				return []*Node{s.Retrieved, s.Denoised, s.Quantized, codes, s.Codebook, s.Bundle, h.Bundle(scope, s.Codes),
					h.BundleBound(h.Bound(scope, z.Graph()), s.Codes)}
			}, tensors.FromFlatDataAndDimensions(z, batch, d))
			want := algorithm1(t, h, scope, z)
			for i, what := range []string{"retrieved", "denoised", "quantized", "codes", "codebook", "bundle", "bundle of codes", "bundle of bound codes"} {
				same(t, what, got[i], want[i])
			}
		})
	}
}

// algorithm1 is the paper's Algorithm 1 in plain Go, in the order of Slots, the bundle three times.
func algorithm1(t *testing.T, h HRR, scope *context.Context, z []float32) (out [8][]float32) {
	slotsOf := bindings(t, h, scope)
	entries := codebook(h, scope)
	for zb := range slices.Chunk(z, d) {
		var pairs [][]float32
		for _, slot := range slotsOf {
			retrieved := slot.unbind(zb)
			denoised := retrieved
			if !h.NoDenoiser {
				denoised = dense(scope, "denoise2", leaky(dense(scope, "denoise1", retrieved)))
			}
			code := nearest(denoised, entries)
			pairs = append(pairs, slot.bind(entries[code]))
			out[0], out[1] = append(out[0], retrieved...), append(out[1], denoised...)
			out[2], out[3] = append(out[2], entries[code]...), append(out[3], float32(code))
		}
		out[5] = append(out[5], hrrtest.Bundle(pairs...)...)
	}
	out[4], out[6], out[7] = slices.Concat(entries...), out[5], out[5]
	return out
}

// binding holds one slot's M and its transpose or inverse.
type binding struct{ bind, unbind func(v []float32) []float32 }

// bindings returns the binding of every slot, in plain Go.
func bindings(t *testing.T, h HRR, scope *context.Context) (all []binding) {
	matrix := func(at func(n, j int) float32) binding {
		return binding{
			func(v []float32) []float32 {
				out := make([]float32, d)
				for n := range d {
					for j := range d {
						out[n] += at(n, j) * v[j]
					}
				}
				return out
			},
			func(z []float32) []float32 {
				out := make([]float32, d)
				for n := range d {
					for j := range d {
						out[j] += at(n, j) * z[n]
					}
				}
				return out
			},
		}
	}
	for i := range m {
		switch h.Binding {
		case Random:
			of := layer.Read(scope, "binding")[i*d*d:]
			all = append(all, matrix(func(n, j int) float32 { return of[n*d+j] }))
		case Permutation:
			from := layer.Read(scope, "binding")[i*d : (i+1)*d]
			all = append(all, binding{
				func(v []float32) []float32 {
					out := make([]float32, d)
					for n, j := range from {
						out[n] = v[int(j)]
					}
					return out
				},
				func(z []float32) []float32 {
					out := make([]float32, d)
					for n, j := range from {
						out[int(j)] = z[n]
					}
					return out
				},
			})
		case Concat:
			w, gain := d/m, float32(math.Sqrt(m))
			all = append(all, matrix(func(n, j int) float32 {
				if j < w && n == i*w+j {
					return gain
				}
				return 0
			}))
		default:
			s := layer.Read(scope, "symbols")[i*d : (i+1)*d]
			inverse := hrr.Involution(s)
			if h.Exact {
				var err error
				if inverse, err = hrr.ExactInverse(s); err != nil {
					t.Fatal(err)
				}
			}
			all = append(all, binding{func(v []float32) []float32 { return hrrtest.Bind(s, v) }, func(z []float32) []float32 { return hrrtest.Bind(inverse, z) }})
		}
	}
	return all
}

func opened(t *testing.T, engine string) backends.Backend {
	t.Helper()
	e, err := compute.Open(engine)
	if err != nil {
		t.Fatal(err)
	}
	return e.Backend
}

// Every binding preserves energy: a bundle of unit values has norm² m on average, and so does a retrieval from it.
func TestBindingsKeepEnergy(t *testing.T) {
	for _, name := range []string{Circular, Random, Permutation, Concat} {
		var bundles, retrievals float64
		const draws = 40
		for seed := range int64(draws) {
			h := HRR{M: m, K: k, D: d, Binding: name, FreeCodebook: true, NoDenoiser: true}
			slotsOf := bindings(t, h, initialised(h, seed))
			sum := make([]float32, d)
			for i, slot := range slotsOf {
				v := noise(d, uint64(100*seed)+uint64(i))
				norm := float32(math.Sqrt(squared(v)))
				for n := range v {
					v[n] /= norm
				}
				for n, x := range slot.bind(v) {
					sum[n] += x
				}
			}
			bundles += squared(sum) / draws
			for _, slot := range slotsOf {
				retrievals += squared(slot.unbind(sum)) / squared(sum) / m / draws
			}
		}
		if math.Abs(bundles-m) > 0.2*m || (name != Circular && name != Random && math.Abs(retrievals-1) > 1e-4) || math.Abs(retrievals-1) > 0.9 {
			t.Errorf("%q binding: bundles of norm² %.2f, want %d; retrievals of norm² %.2f of the bundle's, want about 1", name, bundles, m, retrievals)
		}
	}
}

func squared(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

func codebook(h HRR, scope *context.Context) (entries [][]float32) {
	if h.FreeCodebook {
		return slices.Collect(slices.Chunk(layer.Read(scope, "codebook"), d))
	}
	for seed := range slices.Chunk(layer.Read(scope, "seeds"), d) {
		entry := dense(scope, "generator2", leaky(dense(scope, "generator1", seed)))
		for n := range entry {
			entry[n] *= float32(math.Sqrt(1.0 / d))
		}
		entries = append(entries, entry)
	}
	return entries
}

func dense(scope *context.Context, name string, x []float32) []float32 {
	w, y := layer.Read(scope, name+".weight"), layer.Read(scope, name+".bias")
	for i := range x {
		for o := range y {
			y[o] += x[i] * w[i*len(y)+o]
		}
	}
	return y
}

func leaky(x []float32) []float32 {
	for i := range x {
		x[i] = max(x[i], 0.01*x[i])
	}
	return x
}

func nearest(v []float32, entries [][]float32) (code int) {
	best := math.Inf(1)
	for j, c := range entries {
		var distance float64
		for n := range v {
			distance += float64(v[n]-c[n]) * float64(v[n]-c[n])
		}
		if distance < best {
			best, code = distance, j
		}
	}
	return code
}

// The first of equally near entries is selected, as in torch.argmin.
func TestNearestTakesTheFirstOfEquals(t *testing.T) {
	entries := tensors.FromFlatDataAndDimensions([]float32{9, 9, 1, 0, 0, 1, 1, 0, -1, 0, 1, 0}, 6, 2)
	values := tensors.FromFlatDataAndDimensions([]float32{1, 0, 0.5, 0.5, 0, 0, 8, 8}, 1, 4, 2)
	got := run2(t, context.New(), func(_ *context.Context, values, entries *Node) []*Node {
		return []*Node{ConvertDType(Nearest(values, entries), values.DType())}
	}, values, entries)
	if want := []float32{1, 1, 1, 0}; !slices.Equal(got[0], want) {
		t.Errorf("codes %v, want %v", got[0], want)
	}
}

// Through the quantizer, z receives the gradient of ẑ as if v̂ were v̄; the codebook receives none.
func TestStraightThrough(t *testing.T) {
	h := HRR{M: m, K: k, D: d, NoDenoiser: true, FreeCodebook: true}
	scope := initialised(h, 7)
	weight := noise(batch*d, 8)
	got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
		by := ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(weight, batch, d))
		binding := h.binding(scope, z.Graph())
		open := binding.bindAll(binding.unbindAll(z))
		entries := layer.Value(scope, z.Graph(), "codebook")
		through := Gradient(ReduceAllSum(Mul(by, h.Apply(scope, z).Bundle)), z, entries)
		return []*Node{through[0], Gradient(ReduceAllSum(Mul(by, open)), z)[0], through[1]}
	}, tensors.FromFlatDataAndDimensions(noise(batch*d, 9), batch, d))
	same(t, "gradient of z", got[0], got[1])
	same(t, "gradient of the codebook", got[2], make([]float32, k*d))
}

// A static codebook receives no gradient from any term; free and generated codebooks do.
func TestStaticCodebookReceivesNothing(t *testing.T) {
	for _, h := range []HRR{{M: m, K: k, D: d}, {M: m, K: k, D: d, StaticCodebook: true}, {M: m, K: k, D: d, FreeCodebook: true},
		{M: m, K: k, D: d, FreeCodebook: true, StaticCodebook: true}} {
		t.Run(fmt.Sprintf("static %v, free %v", h.StaticCodebook, h.FreeCodebook), func(t *testing.T) {
			name := "seeds"
			if h.FreeCodebook {
				name = "codebook"
			}
			got := run(t, initialised(h, 10), func(scope *context.Context, z *Node) []*Node {
				quantized := h.Apply(scope, z).Quantized
				return Gradient(ReduceAllSum(Square(quantized)), layer.Value(scope, z.Graph(), name))
			}, tensors.FromFlatDataAndDimensions(noise(batch*d, 11), batch, d))
			moved := slices.ContainsFunc(got[0], func(g float32) bool { return g != 0 })
			if moved == h.StaticCodebook {
				t.Errorf("codebook receives a gradient: %v", moved)
			}
		})
	}
}

// With one pair and the exact inverse, retrieval returns the value.
func TestExactInverseOfOneSlot(t *testing.T) {
	h := HRR{M: 1, K: k, D: d, Exact: true, NoDenoiser: true, FreeCodebook: true}
	scope := initialised(h, 12)
	value := noise(d, 13)
	z := hrrtest.Bind(layer.Read(scope, "symbols"), value)
	got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
		return []*Node{h.Apply(scope, z).Retrieved}
	}, tensors.FromFlatDataAndDimensions(z, 1, d))
	same(t, "retrieved", got[0], value)
}

// The learning rate of every tensor, for each option.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		h    HRR
		want map[string]layer.Rate
	}{
		{HRR{M: m, K: k, D: d}, map[string]layer.Rate{"symbols": layer.Frozen, "denoise1.weight": layer.Shared,
			"denoise1.bias": layer.Shared, "denoise2.weight": layer.Shared, "denoise2.bias": layer.Shared, "seeds": layer.Codebook,
			"generator1.weight": layer.Codebook, "generator1.bias": layer.Codebook, "generator2.weight": layer.Codebook,
			"generator2.bias": layer.Codebook}},
		{HRR{M: m, K: k, D: d, LearnSymbols: true, NoDenoiser: true, FreeCodebook: true},
			map[string]layer.Rate{"symbols": layer.Shared, "codebook": layer.Codebook}},
		{HRR{M: m, K: k, D: d, StaticCodebook: true, NoDenoiser: true, FreeCodebook: true},
			map[string]layer.Rate{"symbols": layer.Frozen, "codebook": layer.Frozen}},
	} {
		params := c.h.Params()
		if len(params) != len(c.want) {
			t.Errorf("%+v has %d tensors, want %d", c.h, len(params), len(c.want))
		}
		for _, p := range params {
			if want, ok := c.want[p.Name]; !ok || p.Rate != want {
				t.Errorf("%+v: %s at rate %v, want %v (%v)", c.h, p.Name, p.Rate, want, ok)
			}
		}
	}
}

// Unit symbols have magnitude 1 at every frequency, hence norm 1 exactly.
func TestUnitSymbols(t *testing.T) {
	for s := range slices.Chunk(layer.Read(initialised(HRR{M: m, K: k, D: d, UnitSymbols: true}, 14), "symbols"), d) {
		var norm float64
		for _, v := range s {
			norm += float64(v) * float64(v)
		}
		if math.Abs(norm-1) > 1e-6 {
			t.Errorf("norm² %v, want 1", norm)
		}
	}
}

func initialised(h HRR, seed int64) *context.Context {
	scope := context.New()
	for _, p := range h.Params() {
		scope.VariableWithValue(p.Name, p.Tensor(nil, seed))
	}
	return scope
}

func noise(n int, seed uint64) []float32 {
	rng, out := rand.New(rand.NewPCG(seed, 0)), make([]float32, n)
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
	return out
}

func run(t *testing.T, scope *context.Context, f func(*context.Context, *Node) []*Node, x *tensors.Tensor) [][]float32 {
	t.Helper()
	return run2(t, scope, func(scope *context.Context, x, _ *Node) []*Node { return f(scope, x) }, x, tensors.FromValue(float32(0)))
}

func run2(t *testing.T, scope *context.Context, f func(_ *context.Context, x, y *Node) []*Node, x, y *tensors.Tensor) (flat [][]float32) {
	t.Helper()
	outputs, err := context.ExecOnceN(opened(t, "cpu"), scope, f, x, y)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		flat = append(flat, tensors.MustCopyFlatData[float32](o))
	}
	return flat
}

// same allows for the rounding of float32 sums, and of exact inverses, which magnify it.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 2e-5*math.Max(1, math.Abs(float64(want[i])))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

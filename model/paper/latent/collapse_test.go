package latent

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/paper/layer"
)

// The rotation trick keeps the entry's value and rotates its gradient back: for a value e of norm 2 on the first axis and an entry
// q of norm 3 on the second, a gradient along q arrives along e, one along e arrives along −q, and both are scaled by 3/2.
func TestRotationTrick(t *testing.T) {
	entry := []float32{0, 3, 0}
	for _, c := range []struct{ gradient, want []float32 }{
		{[]float32{0, 1, 0}, []float32{1.5, 0, 0}},
		{[]float32{1, 0, 0}, []float32{0, -1.5, 0}},
		{[]float32{0, 0, 1}, []float32{0, 0, 1.5}},
	} {
		got := run(t, context.New(), func(_ *context.Context, e *Node) []*Node {
			y := rotated(e, Const(e.Graph(), [][][]float32{{entry}}))
			sum := ReduceAllSum(Mul(y, Const(e.Graph(), [][][]float32{{c.gradient}})))
			return []*Node{y, Gradient(sum, e)[0]}
		}, tensors.FromValue([][][]float32{{{2, 0, 0}}}))
		same(t, "value", got[0], entry)
		same(t, "gradient", got[1], c.want)
	}
	for _, e := range [][]float32{{0, 0, 0}, {0, -1, 0}} { // zero vector and opposite direction
		got := run(t, context.New(), func(_ *context.Context, e *Node) []*Node {
			y := rotated(e, Const(e.Graph(), [][][]float32{{entry}}))
			return []*Node{y, Gradient(ReduceAllSum(y), e)[0]}
		}, tensors.FromValue([][][]float32{{e}}))
		same(t, "value", got[0], entry)
		for _, g := range got[1] {
			if math.IsNaN(float64(g)) || math.IsInf(float64(g), 0) {
				t.Errorf("the gradient of %v is %v", e, got[1])
			}
		}
	}
}

// A step of the moving codebook with decay ½, by hand: two of four parts are assigned to entry 0, two to entry 1, none to entry 2.
func TestMovingCodebook(t *testing.T) {
	v := VQ{M: 2, K: 3, D: 1, Following: Following{Decay: 0.5}}
	codebook, usage := followed(t, v, [][]float32{{0}, {10}, {99}}, []float32{1, 1, 1}, [][]float32{{1, 2}, {9, 15}})
	// u = ½·1 + ½·2·3/4 = 1.25 for the first two; c = (½·c + ½·¾·Σ)/u
	same(t, "usage", usage, []float32{1.25, 1.25, 0.5})
	same(t, "codebook", codebook, []float32{(0 + 0.375*3) / 1.25, (5 + 0.375*24) / 1.25, 99})
	if params := v.Params(); params[0].Rate != layer.Frozen || params[1].Name != "usage" {
		t.Errorf("moving codebook has rate %v; second tensor is %s", params[0].Rate, params[1].Name)
	}
}

// An entry used less than the limit is replaced by a part of the batch, and its usage restarts at 1; the others are unchanged.
func TestResetOfUnusedEntries(t *testing.T) {
	v := VQ{M: 2, K: 3, D: 1, Following: Following{ResetBelow: 0.1}}
	codebook, usage := followed(t, v, [][]float32{{0}, {10}, {99}}, []float32{1, 0.5, 0.1}, [][]float32{{1, 2}, {9, 15}})
	same(t, "codebook", codebook, []float32{0, 10, 9}) // entry 2 is replaced by part 2
	same(t, "usage", usage, []float32{0.99 + 0.015, 0.495 + 0.015, 1})
	if (VQ{M: 2, K: 3, D: 1}).Follows() || len((VQ{M: 2, K: 3, D: 1}).Params()) != 1 {
		t.Error("Follows is true without options")
	}
}

// HRR's free codebook follows denoised values by the same step; without these options, or with a generator, there is no usage tensor.
func TestFreeCodebookFollows(t *testing.T) {
	h := HRR{M: 2, K: 3, D: 4, FreeCodebook: true, Following: Following{Decay: 0.5, ResetBelow: 0.6}}
	names := func(h HRR) (all []string) {
		for _, p := range h.Params() {
			if p.Name == "codebook" || p.Name == "usage" {
				all = append(all, p.Name)
				if (p.Rate == layer.Frozen) != (h.Decay > 0 || p.Name == "usage") {
					t.Errorf("%s learns at rate %v", p.Name, p.Rate)
				}
			}
		}
		return all
	}
	if got := names(h); !slices.Equal(got, []string{"codebook", "usage"}) {
		t.Errorf("tensors %v", got)
	}
	if got := names(HRR{M: 2, K: 3, D: 4, FreeCodebook: true}); !slices.Equal(got, []string{"codebook"}) {
		t.Errorf("tensors of a codebook that learns by gradient: %v", got)
	}
	if got := names(HRR{M: 2, K: 3, D: 4}); got != nil {
		t.Errorf("tensors of generated entries: %v", got)
	}
	scope := scopeWith(map[string]*tensors.Tensor{"codebook": tensors.FromValue([][]float32{{0, 0, 0, 0}, {8, 8, 8, 8}, {99, 99, 99, 99}}), "usage": tensors.FromValue([]float32{1, 1, 1})})
	got := run(t, scope, func(scope *context.Context, values *Node) []*Node {
		h.Follow(scope, values, Nearest(values, layer.Value(scope, values.Graph(), "codebook")))
		return []*Node{layer.Value(scope, values.Graph(), "codebook"), layer.Value(scope, values.Graph(), "usage")}
	}, tensors.FromValue([][][]float32{{{1, 1, 1, 1}, {2, 2, 2, 2}}, {{9, 9, 9, 9}, {7, 7, 7, 7}}}))
	// entries 0 and 1 as in TestMovingCodebook; entry 2, with usage ½, is replaced by value 2 of the batch
	var want []float32
	for _, v := range []float32{0.375 * 3 / 1.25, (4 + 0.375*16) / 1.25, 9} {
		want = append(want, v, v, v, v)
	}
	same(t, "codebook", got[0], want)
	same(t, "usage", got[1], []float32{1.25, 1.25, 1})
}

// followed returns codebook and usage after one step on latents z, [B, m·d].
func followed(t *testing.T, v VQ, codebook [][]float32, usage []float32, z [][]float32) (entries, used []float32) {
	t.Helper()
	scope := scopeWith(map[string]*tensors.Tensor{"codebook": tensors.FromValue(codebook), "usage": tensors.FromValue(usage)})
	got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
		s := v.Apply(scope, z)
		v.Follow(scope, s.Retrieved, s.Codes)
		return []*Node{layer.Value(scope, z.Graph(), "codebook"), layer.Value(scope, z.Graph(), "usage")}
	}, tensors.FromValue(z))
	return got[0], got[1]
}

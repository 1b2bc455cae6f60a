//go:build cgo

package latent

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute/lower"
	"slotscope/model/paper/hrr"
	"slotscope/model/paper/layer"
)

// At larger d, circular convolution uses halves of circulants, and FFTs, which give the same slots, bundle and gradients.
func TestFormsAtLargeD(t *testing.T) {
	t.Run("halves", func(t *testing.T) {
		checkForm(t, halvesFrom, func(f hrr.Form) bool { _, ok := f.(hrr.Halves); return ok }, func(h HRR, scope *context.Context, g *Graph) operator {
			symbols := layer.Value(scope, g, "symbols")
			whole := hrr.Matrices{All: hrr.CirculantsOf(symbols)}
			if h.Exact {
				return operator{whole, hrr.Matrices{All: hrr.CirculantsOf(hrr.ExactOf(symbols))}}
			}
			return operator{whole, whole}
		})
	})
	t.Run("FFTs", func(t *testing.T) {
		checkForm(t, fftFrom, func(f hrr.Form) bool { _, ok := f.(hrr.Spectra); return ok }, HRR.circulants)
	})
	if !prefersHalves(halvesFrom) || prefersHalves(halvesFrom-2) || prefersHalves(halvesFrom+1) {
		t.Errorf("circulants are not divided from d = %d, for even d only", halvesFrom)
	}
}

// checkForm compares the chosen form, which must be the expected one, with another operator.
func checkForm(t *testing.T, d int, expected func(hrr.Form) bool, other func(HRR, *context.Context, *Graph) operator) {
	const m = 2
	for name, h := range map[string]HRR{
		"paper": {}, "exact inverse": {UnitSymbols: true, Exact: true}, "learned symbols": {LearnSymbols: true},
		"learned, exact inverse": {UnitSymbols: true, LearnSymbols: true, Exact: true},
	} {
		h.M, h.K, h.D, h.FreeCodebook, h.NoDenoiser = m, k, d, true, true
		scope := initialised(h, 21)
		weight, z := noise(batch*d, 22), tensors.FromFlatDataAndDimensions(noise(batch*d, 23), batch, d)
		of := func(binding operator, scope *context.Context, z *Node) []*Node {
			by := ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(weight, batch, d))
			retrieved := binding.unbindAll(z)
			bundle := binding.bindAll(Tanh(retrieved))
			loss := ReduceAllSum(Mul(by, bundle))
			inputs := []*Node{z}
			if h.LearnSymbols {
				inputs = append(inputs, layer.Value(scope, z.Graph(), "symbols"))
			}
			return append([]*Node{retrieved, bundle}, Gradient(loss, inputs...)...)
		}
		got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
			chosen := h.binding(scope, z.Graph())
			codes := Const(z.Graph(), [][]int32{{1, 5}, {0, 2}})
			if !expected(chosen.bind) || !expected(chosen.unbind) {
				t.Errorf("%s: d = %d is bound in another form", name, d)
			}
			return slices.Concat(of(chosen, scope, z), of(other(h, scope, z.Graph()), scope, z), []*Node{h.Retrieve(scope, z),
				h.BundleBound(h.Bound(scope, z.Graph()), codes), h.Bundle(scope, codes)})
		}, z)
		n := len(got)/2 - 1
		for i, what := range []string{"retrieved", "bundle", "gradient of z", "gradient of the symbols"}[:n] {
			var largest float32
			for _, v := range got[n+i] {
				largest = max(largest, v, -v)
			}
			for j, want := range got[n+i] {
				if diff := got[i][j] - want; !(max(diff, -diff) <= 1e-5*largest) {
					t.Fatalf("%s: %s[%d] is %v, or %v in the other form", name, what, j, got[i][j], want)
				}
			}
		}
		same(t, name+": Retrieve", got[2*n], got[0])
		same(t, name+": BundleBound", got[2*n+1], got[2*n+2])
	}
}

func TestWhenFFTsArePreferred(t *testing.T) {
	ours, gomlx := opened(t, "cpu"), opened(t, "go")
	for _, c := range []struct {
		engine backends.Backend
		d      int
		want   bool
	}{
		{ours, 512, false}, {ours, fftFrom - 1, false}, {ours, fftFrom, true}, {ours, 5 * 1024, true}, {ours, 10_000, true},
		{ours, 4099, false}, {ours, 7 * 1024, false}, {lower.New(1), 4096, true}, {gomlx, 4096, false}, // GoMLX's Go backend has no FFT
	} {
		if got := prefersFFT(c.engine, c.d); got != c.want {
			t.Errorf("%s at d = %d: %v, want %v", c.engine.Name(), c.d, got, c.want)
		}
	}
}

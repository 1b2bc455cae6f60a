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

// QLAE's values start evenly from −½ to ½ in every latent.
func TestQLAEBegins(t *testing.T) {
	values := QLAE{M: 2, K: 10}.Params()[0].Initial(7)
	for i, v := range values {
		if want := float64(i%10)/9 - 0.5; math.Abs(float64(v)-want) > 1e-7 {
			t.Errorf("value %d of latent %d is %v, want %v", i%10, i/10, v, want)
		}
	}
}

// Every latent uses its own codebook; a tie goes to the lower code; the gradient is straight-through.
func TestQLAEQuantizes(t *testing.T) {
	q := QLAE{M: 2, K: 3}
	scope := scopeWith(map[string]*tensors.Tensor{"codebook": tensors.FromValue([][]float32{{-1, 0, 1}, {10, 20, 30}})})
	got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
		s := q.Apply(scope, z)
		gradient := Gradient(ReduceAllSum(Mul(s.Bundle, Const(z.Graph(), [][]float32{{1, 2}, {3, 4}}))), z)[0]
		return []*Node{ConvertDType(s.Codes, z.DType()), s.Bundle, q.Bundle(scope, s.Codes), gradient}
	}, tensors.FromValue([][]float32{{0.5, 24}, {-7, 26}}))
	for i, want := range [][]float32{{1, 1, 0, 2}, {0, 20, -1, 30}, {0, 20, -1, 30}, {1, 2, 3, 4}} {
		same(t, []string{"codes", "bundle", "bundle of codes", "gradient"}[i], got[i], want)
	}
}

// VQ-VAE's slots share one codebook; parts are joined in order.
func TestVQQuantizes(t *testing.T) {
	v := VQ{M: 2, K: 3, D: 2}
	scope := scopeWith(map[string]*tensors.Tensor{"codebook": tensors.FromValue([][]float32{{0, 0}, {1, 0}, {5, 5}})})
	got := run(t, scope, func(scope *context.Context, z *Node) []*Node {
		s := v.Apply(scope, z)
		return []*Node{ConvertDType(s.Codes, z.DType()), s.Bundle, v.Bundle(scope, s.Codes)}
	}, tensors.FromValue([][]float32{{4, 4, 0.9, 0.2}}))
	for i, want := range [][]float32{{2, 1}, {5, 5, 1, 0}, {5, 5, 1, 0}} {
		same(t, []string{"codes", "bundle", "bundle of codes"}[i], got[i], want)
	}
	first := v.Params()[0]
	if values := first.Initial(3); first.Rate != layer.Codebook || slices.Max(values) > 1.0/3 || slices.Min(values) < -1.0/3 {
		t.Errorf("rate %v, values %v", first.Rate, values)
	}
	v = VQ{M: 2, K: 500, D: 64, UnitNorm: true}
	values, bound, sum := v.Params()[0].Initial(3), math.Sqrt(3.0/64), 0.0
	for _, x := range values {
		sum += float64(x) * float64(x)
		if math.Abs(float64(x)) > bound+1e-6 {
			t.Fatalf("%v is beyond ±%v", x, bound)
		}
	}
	if norm2 := sum / 500; math.Abs(norm2-1) > 0.03 { // 500 norms² of standard deviation 0.11: the mean is known to 0.005
		t.Errorf("the mean squared norm of entries is %v", norm2)
	}
}

// A VAE's outputs are means, then log variances; a draw is the mean plus ε standard deviations.
func TestGaussianDraws(t *testing.T) {
	n := Gaussian{Plain{M: 2}}
	got := run(t, context.New(), func(_ *context.Context, outputs *Node) []*Node {
		mean, logVar := n.Posterior(outputs)
		return []*Node{mean, logVar, n.Sample(mean, logVar, Const(outputs.Graph(), [][]float32{{1, -2}}))}
	}, tensors.FromValue([][]float32{{3, 4, 0, float32(math.Log(9))}}))
	for i, want := range [][]float32{{3, 4}, {0, float32(math.Log(9))}, {4, -2}} {
		same(t, []string{"mean", "log variance", "draw"}[i], got[i], want)
	}
}

func scopeWith(variables map[string]*tensors.Tensor) *context.Context {
	scope := context.New().Checked(false)
	for name, value := range variables {
		scope.VariableWithValue(name, value)
	}
	return scope
}

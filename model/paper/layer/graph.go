package layer

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
)

// Value returns the graph node of a variable created by Init or Import. It panics if the variable does not exist.
func Value(scope *context.Context, g *Graph, name string) *Node {
	v := scope.GetVariable(name)
	if v == nil {
		panic(missing(scope, name))
	}
	return v.ValueGraph(g)
}

// Dense applies the named linear layer: y = x W + b; x is [B, in], y is [B, out].
func Dense(scope *context.Context, name string, x *Node) *Node {
	return Exact.Dense(scope, name, x)
}

// Products selects the precision in which float32 operands are multiplied.
type Products int

const (
	Exact Products = iota // float32, or the engine's configured precision
	Mixed                 // bfloat16: 7-bit mantissa, the range of float32
)

// Of multiplies a by b in this precision, as do its gradients; all results are float32.
func (p Products) Of(a, b *Node, multiply func(a, b *Node) *Node) *Node {
	if p == Exact {
		return multiply(a, b)
	}
	return ConvertDType(multiply(ConvertDType(a, dtypes.BFloat16), ConvertDType(b, dtypes.BFloat16)), dtypes.Float32)
}

// Dense applies the named linear layer; the bias is added in float32.
func (p Products) Dense(scope *context.Context, name string, x *Node) *Node {
	weight, bias := Value(scope, x.Graph(), name+".weight"), Value(scope, x.Graph(), name+".bias")
	x.AssertDims(-1, weight.Shape().Dim(0))
	return Add(p.Of(x, weight, Multiply), InsertAxes(bias, 0))
}

// Multiply returns a b for [n, k] and [k, m]. Its gradients are matrix products too: GoMLX 0.26 writes the gradients of Dot as sums over
// n·k·m multiplications, which XLA runs as loops.
func Multiply(a, b *Node) *Node {
	return WithGradient(Dot(a, b), []*Node{a, b},
		func(v *Node) *Node { return DotGeneral(v, []int{1}, nil, b, []int{1}, nil) }, // v bᵀ
		func(v *Node) *Node { return DotGeneral(a, []int{0}, nil, v, []int{0}, nil) }) // aᵀ v
}

// MultiplyTransposed returns a bᵀ for [n, k] and [m, k].
func MultiplyTransposed(a, b *Node) *Node {
	y := DotGeneral(a, []int{1}, nil, b, []int{1}, nil)
	return WithGradient(y, []*Node{a, b},
		func(v *Node) *Node { return Dot(v, b) },
		func(v *Node) *Node { return DotGeneral(v, []int{0}, nil, a, []int{0}, nil) }) // vᵀ a
}

// LeakyReLU returns x where x > 0 and slope·x elsewhere, for slopes from 0 (ReLU) to 1; at 0 its derivative is slope, as in PyTorch.
// Its gradient takes the sign from the result, so x need not be stored.
func LeakyReLU(x *Node, slope float64) *Node {
	zero, one, low := ScalarZero(x.Graph(), x.DType()), ScalarOne(x.Graph(), x.DType()), Scalar(x.Graph(), x.DType(), slope)
	negative := zero // 0·∞ would not be a number
	if slope > 0 {
		negative = Mul(x, low)
	}
	y := StopGradient(Max(x, negative))
	return WithGradient(y, []*Node{x}, func(v *Node) *Node { return Mul(v, Where(GreaterThan(y, zero), one, low)) })
}

// Read copies a variable's current value to the host.
func Read(scope *context.Context, name string) []float32 {
	v := scope.GetVariable(name)
	if v == nil {
		panic(missing(scope, name))
	}
	return tensors.MustCopyFlatData[float32](v.MustValue())
}

func missing(scope *context.Context, name string) error {
	return fmt.Errorf("layer: scope %q has no variable %q; initialise or import the model first", scope.Scope(), name)
}

// WithGradient returns y, computed from inputs, with custom gradients: gradient i maps the adjoint of y to that of input i. GoMLX
// supports such rules only for functions of one input, so y is detached and linked to its inputs by zeros, and the rules replace the
// gradients along those links.
func WithGradient(y *Node, inputs []*Node, gradients ...func(adjoint *Node) *Node) *Node {
	var adjoint *Node // set by the output's rule, which runs before those of the inputs
	y = StopGradient(y)
	for i, in := range inputs {
		link := IdentityWithCustomGradient(in, func(_, _ *Node) *Node { return gradients[i](adjoint) })
		y = Sub(y, nothing(link))
	}
	return IdentityWithCustomGradient(y, func(_, v *Node) *Node {
		adjoint = v
		return v
	})
}

// nothing returns a scalar 0 that depends on x, even if x contains NaN or infinities.
func nothing(x *Node) *Node {
	first := make([]SliceAxisSpec, x.Rank())
	for axis := range first {
		first[axis] = AxisRange(0, 1)
	}
	zero := ScalarZero(x.Graph(), x.DType())
	return Where(Const(x.Graph(), false), Reshape(Slice(x, first...)), zero)
}

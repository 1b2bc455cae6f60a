package layer

import (
	"fmt"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
)

// Value is the graph's node of a variable that Init or Import has made; a missing one is a programming mistake.
func Value(scope *context.Context, g *Graph, name string) *Node {
	v := scope.GetVariable(name)
	if v == nil {
		panic(missing(scope, name))
	}
	return v.ValueGraph(g)
}

// Dense applies the linear layer of a name: y = x W + b; x is [B, in], y [B, out].
func Dense(scope *context.Context, name string, x *Node) *Node {
	weight, bias := Value(scope, x.Graph(), name+".weight"), Value(scope, x.Graph(), name+".bias")
	x.AssertDims(-1, weight.Shape().Dim(0))
	return Add(Dot(x, weight), InsertAxes(bias, 0))
}

// LeakyReLU is x where x > 0, else slope·x, for slopes from 0 (ReLU) to 1; at 0 its derivative is slope, as PyTorch's. Its
// gradient takes the sign from the result, so that x need not be kept.
func LeakyReLU(x *Node, slope float64) *Node {
	zero, one, low := ScalarZero(x.Graph(), x.DType()), ScalarOne(x.Graph(), x.DType()), Scalar(x.Graph(), x.DType(), slope)
	negative := zero // 0·∞ would not be a number
	if slope > 0 {
		negative = Mul(x, low)
	}
	y := StopGradient(Max(x, negative))
	return WithGradient(y, []*Node{x}, func(v *Node) *Node { return Mul(v, Where(GreaterThan(y, zero), one, low)) })
}

// Read copies a variable's present value to the host.
func Read(scope *context.Context, name string) []float32 {
	v := scope.GetVariable(name)
	if v == nil {
		panic(missing(scope, name))
	}
	return tensors.MustCopyFlatData[float32](v.MustValue())
}

func missing(scope *context.Context, name string) error {
	return fmt.Errorf("layer: scope %q holds no variable %q; initialise or import the model first", scope.Scope(), name)
}

// WithGradient gives y, computed from inputs, a gradient of our own: gradient i maps the adjoint of y to that of input i. GoMLX
// takes such a rule for functions of one input only, so y is cut off and linked to its inputs by zeros; what differentiation
// would send along those links, the rules replace.
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

// nothing is a scalar 0 that depends on x, whatever x holds.
func nothing(x *Node) *Node {
	first := make([]SliceAxisSpec, x.Rank())
	for axis := range first {
		first[axis] = AxisRange(0, 1)
	}
	zero := ScalarZero(x.Graph(), x.DType())
	return Where(Const(x.Graph(), false), Reshape(Slice(x, first...)), zero)
}

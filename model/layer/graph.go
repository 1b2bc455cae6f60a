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

// LeakyReLU is x where x > 0, else slope·x; at 0 its derivative is slope, as PyTorch's. Slope 0 gives ReLU.
func LeakyReLU(x *Node, slope float64) *Node {
	one, low := ScalarOne(x.Graph(), x.DType()), Scalar(x.Graph(), x.DType(), slope)
	factor := Where(GreaterThan(x, ScalarZero(x.Graph(), x.DType())), one, low)
	return Mul(x, StopGradient(factor))
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

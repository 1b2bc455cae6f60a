//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// floatOps maps operations on float32 to kernel operations.
var floatOps = map[backends.OpType]kernel.Op{
	backends.OpTypeNeg: kernel.Neg, backends.OpTypeAbs: kernel.Abs, backends.OpTypeSign: kernel.Sign,
	backends.OpTypeExp: kernel.Exp, backends.OpTypeExpm1: kernel.Expm1, backends.OpTypeLog: kernel.Log, backends.OpTypeLog1p: kernel.Log1p,
	backends.OpTypeSqrt: kernel.Sqrt, backends.OpTypeRsqrt: kernel.Rsqrt, backends.OpTypeTanh: kernel.Tanh,
	backends.OpTypeLogistic: kernel.Logistic, backends.OpTypeErf: kernel.Erf, backends.OpTypeSin: kernel.Sin, backends.OpTypeCos: kernel.Cos,
	backends.OpTypeFloor: kernel.Floor, backends.OpTypeCeil: kernel.Ceil, backends.OpTypeRound: kernel.Round,
	backends.OpTypeIsFinite: kernel.IsFinite,
	backends.OpTypeAdd:      kernel.Add, backends.OpTypeSub: kernel.Sub, backends.OpTypeMul: kernel.Mul, backends.OpTypeDiv: kernel.Div,
	backends.OpTypeMax: kernel.Max, backends.OpTypeMin: kernel.Min, backends.OpTypePow: kernel.Pow, backends.OpTypeRem: kernel.Rem,
	backends.OpTypeEqual: kernel.Equal, backends.OpTypeNotEqual: kernel.NotEqual, backends.OpTypeGreaterThan: kernel.Greater,
	backends.OpTypeGreaterOrEqual: kernel.GreaterEqual, backends.OpTypeLessThan: kernel.Less, backends.OpTypeLessOrEqual: kernel.LessEqual,
	backends.OpTypeClamp: kernel.Clamp,
}

// boolOps maps operations on booleans to kernel operations.
var boolOps = map[backends.OpType]kernel.Op{
	backends.OpTypeLogicalNot: kernel.Not, backends.OpTypeLogicalAnd: kernel.And, backends.OpTypeLogicalOr: kernel.Or,
	backends.OpTypeLogicalXor: kernel.Xor, backends.OpTypeNotEqual: kernel.Xor, backends.OpTypeMax: kernel.Or, backends.OpTypeMin: kernel.And,
}

// loaded has the types that are converted to float32 when they are read.
var loaded = map[dtypes.DType]kernel.Type{
	dtypes.Float32: kernel.Float32, dtypes.Bool: kernel.Bool, dtypes.Uint8: kernel.Uint8, dtypes.Int32: kernel.Int32,
}

// fastOp returns the kernel operation of an element-wise node, or false if there is none.
func fastOp(n *node) (kernel.Op, bool) {
	from := n.in[0].shape.DType
	switch n.op {
	case backends.OpTypeWhere:
		return kernel.Select, n.shape.DType == dtypes.Float32 || n.shape.DType == dtypes.Bool
	case backends.OpTypeConvertDType:
		switch {
		case roundsToBF16(n):
			return kernel.RoundBF16, true
		case n.shape.DType == dtypes.Bool:
			return kernel.ToMask, from == dtypes.Float32
		case n.shape.DType != dtypes.Float32:
			return 0, false
		case from == dtypes.Bool:
			return kernel.ToFloat, true
		}
		return kernel.Copy, from == dtypes.Uint8 || from == dtypes.Int32
	}
	ops := boolOps
	if from == dtypes.Float32 {
		ops = floatOps
	} else if from != dtypes.Bool {
		return 0, false
	}
	op, ok := ops[n.op]
	return op, ok
}

func isFast(n *node) bool {
	_, ok := fastOp(n)
	return ok
}

// fastStep compiles a group for the kernels, or returns an error with the reason if they do not support it.
func (g *group) fastStep() (*step, error) {
	spec := kernel.ProgramSpec{Dims: g.dims, ReduceAxes: [2]int{g.lo, g.hi}}
	s := &step{group: g, nodes: g.members(), out: slices.Concat(g.outs, g.reductions)}
	values := make([]kernel.Value, len(g.reads))
	for i, r := range g.reads {
		if c, ok := r.node.args.(constant); ok && r.node.shape.Size() == 1 && r.node.shape.DType == dtypes.Float32 {
			values[i] = kernel.ConstantValue(len(spec.Constants))
			spec.Constants = append(spec.Constants, move.Of[float32](c)[0])
			continue
		}
		values[i] = kernel.Value(len(spec.Inputs))
		in := kernel.Input{Type: loaded[r.node.shape.DType], Strides: r.strides}
		if r.node.narrow {
			in.Type = kernel.BFloat16
		}
		spec.Inputs = append(spec.Inputs, in)
		s.in = append(s.in, r.node)
	}
	g.encode(&spec, values)
	prog, err := kernel.NewProgram(spec)
	if err != nil {
		return nil, err
	}
	s.run = func(pool *kernel.Pool, out, in [][]byte) { prog.Run(pool, in, out) }
	s.shared = inPlace(s, prog, len(g.outs))
	s.division = g.divide(&spec, s.in, prog)
	return s, nil
}

// encode writes instructions, outputs and reductions. values are the program values of the group's reads.
func (g *group) encode(spec *kernel.ProgramSpec, values []kernel.Value) {
	known := map[*node]kernel.Value{}
	value := func(e edge) kernel.Value {
		if e.node != nil {
			return known[e.node]
		}
		return values[e.read]
	}
	emit := func(op kernel.Op, args ...kernel.Value) kernel.Value {
		in := kernel.Instruction{Op: op}
		copy(in.Args[:], args)
		spec.Code = append(spec.Code, in)
		return kernel.Value(len(spec.Inputs) + len(spec.Code) - 1)
	}
	for i, n := range g.nodes {
		var args []kernel.Value
		for _, e := range g.edges[i] {
			args = append(args, value(e))
		}
		op, _ := fastOp(n)
		known[n] = emit(op, args...)
	}
	for _, n := range g.outs {
		o := kernel.Output{Value: known[n], Type: loaded[n.shape.DType]}
		if n.narrow {
			o.Type = kernel.BFloat16
		}
		spec.Outputs = append(spec.Outputs, o)
	}
	for i, n := range g.reductions {
		x := value(g.edges[len(g.nodes)+i][0])
		spec.Reductions = append(spec.Reductions, kernel.Reduction{Value: x, Kind: reductionKinds[n.op]})
	}
}

// inPlace lists which outputs may use the memory of which inputs: pairs that the program allows, for inputs that it reads once.
func inPlace(s *step, prog *kernel.Program, outs int) (pairs [][2]int) {
	times := map[*node]int{}
	for _, n := range s.in {
		times[n]++
	}
	for o := range outs {
		for i, n := range s.in {
			if times[n] == 1 && n.shape.Size() == s.out[o].shape.Size() && prog.InPlace(o, i) {
				pairs = append(pairs, [2]int{o, i})
			}
		}
	}
	return pairs
}

//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// rounded is the args of a ConvertDType from float32 to float32 that rounds to the nearest bfloat16, ties to even.
type rounded struct{}

func roundsToBF16(n *node) bool { _, ok := n.args.(rounded); return ok }

// widener replaces products of bfloat16 with products of float32 that have rounded operands: the kernels support these, the product of
// two bfloat16 values is exact in float32, and sums are float32 in both cases. A product that is only converted to float32 afterwards
// is rounded in between only if it is then stored in less memory. Operands are not rounded if the product takes less time without.
type widener struct {
	stays func(n *node, in []*node) bool // whether a product takes less time with in, operands that are not rounded
	list  []*node
	wide  map[*node]*node // by bfloat16 node: the same value as float32
	exact map[*node]*node // by bfloat16 node of wide: its value if nothing is rounded
	sums  map[*node]*node // by bfloat16 product: its value before rounding
}

// widen returns the nodes with products of bfloat16 replaced, and false if there are none.
func widen(nodes []*node, stays func(n *node, in []*node) bool) ([]*node, bool) {
	if !slices.ContainsFunc(nodes, isHalfProduct) {
		return nodes, false
	}
	w := widener{stays: stays, wide: map[*node]*node{}, exact: map[*node]*node{}, sums: map[*node]*node{}}
	for _, n := range nodes {
		w.replace(n)
		w.list = append(w.list, n)
	}
	for i, n := range w.list {
		n.id = i
	}
	return w.list, true
}

func isHalfProduct(n *node) bool {
	return n.shape.DType == dtypes.BFloat16 && (n.op == backends.OpTypeConvGeneral || n.op == backends.OpTypeDotGeneral)
}

// movesOnly has the operations whose result elements are all operand elements.
var movesOnly = map[backends.OpType]bool{
	backends.OpTypeReshape: true, backends.OpTypeTranspose: true, backends.OpTypeBroadcastInDim: true, backends.OpTypeReverse: true,
	backends.OpTypeSlice: true, backends.OpTypeConcatenate: true, backends.OpTypeIdentity: true, backends.OpTypePad: true,
}

// holdsBF16 reports whether every value of a float32 node is exactly a bfloat16 value.
func holdsBF16(n *node) bool {
	switch c, constant := n.args.(constant); {
	case roundsToBF16(n):
		return true
	case constant:
		return n.shape.DType == dtypes.Float32 && !slices.ContainsFunc(move.Of[uint32](c), func(bits uint32) bool { return bits&0xffff != 0 })
	case movesOnly[n.op]:
		return !slices.ContainsFunc(n.in, func(x *node) bool { return !holdsBF16(x) })
	}
	return false
}

// narrows returns which operands may be stored as bfloat16: those that the kernels allow and that hold such values.
func narrows(n *node, kernels kernel.Stored) kernel.Stored {
	if operands(n) != kernel.Halves {
		return kernel.Stored{}
	}
	return kernels
}

// narrow stores as bfloat16 the rounded values, and the results of convolutions of bfloat16, that only products and the kernels' programs read.
func (p *plan) narrow() {
	wide := map[*node]bool{}
	for _, n := range p.outs {
		wide[p.root(n)] = true
	}
	for _, s := range p.steps {
		for i, x := range s.in {
			if s.group == nil && (s.narrow == nil || !s.narrows[i]) {
				wide[x] = true
			}
		}
	}
	for _, s := range p.steps {
		for _, n := range s.out {
			n.narrow = !wide[n] && (s.rounds || s.group != nil && roundsToBF16(n))
		}
	}
	isNarrow := func(n *node) bool { return n.narrow }
	for i, s := range p.steps {
		switch {
		case !slices.ContainsFunc(s.in, isNarrow) && !slices.ContainsFunc(s.out, isNarrow):
		case s.group != nil:
			narrow, err := s.group.fastStep()
			if err != nil {
				panic("values of type bfloat16 prevent a program that is possible with float32: " + err.Error())
			}
			p.steps[i] = narrow
		default:
			s.task = s.task.narrow(kernel.Stored{s.in[0].narrow, s.in[1].narrow}, s.out[0].narrow)
		}
	}
}

// operands returns how the kernels may multiply the operands of a product.
func operands(n *node) kernel.Operands {
	_, disguised := n.args.(sumArgs)
	switch {
	case n.shape.DType != dtypes.Float32:
		return kernel.Exact
	case !disguised && holdsBF16(n.in[0]) && holdsBF16(n.in[1]):
		return kernel.Halves
	case n.split:
		return kernel.Split
	}
	return kernel.Exact
}

// split marks the products whose operands may be split into parts: those that would also take less time if their operands were rounded, since splitting them
// takes at least as long.
func split(nodes []*node) {
	for _, n := range nodes {
		product := n.op == backends.OpTypeConvGeneral || n.op == backends.OpTypeDotGeneral
		n.split = product && n.shape.DType == dtypes.Float32 && !staysFloat(n, n.in)
	}
}

// replace adds the float32 form of a bfloat16 node.
func (w *widener) replace(n *node) {
	switch {
	case n.op == backends.OpTypeConvertDType:
		w.convert(n)
	case n.op == backends.OpTypeIdentity && w.sums[n.in[0]] != nil:
		w.sums[n] = w.sums[n.in[0]]
	case isHalfProduct(n):
		if in := w.widened(n.in); in != nil {
			if exact := w.exactOf(n.in); exact != nil && w.stays(n, exact) {
				in = exact
			}
			w.sums[n] = w.add(n.op, n.shape, n.args, in...)
			w.sums[n].halves = true
			n.op, n.args, n.in = backends.OpTypeConvertDType, nil, []*node{w.sums[n]} // for readers of the bfloat16 value
		}
	case n.shape.DType == dtypes.BFloat16 && movesOnly[n.op]:
		if in := w.widened(n.in); in != nil {
			w.wide[n] = w.add(n.op, n.shape, n.args, in...)
			if exact := w.exactOf(n.in); exact != nil {
				w.exact[n] = w.add(n.op, n.shape, n.args, exact...)
			}
		}
	}
}

// staysFloat reports whether a product takes less time if its operands are not rounded.
func staysFloat(n *node, in []*node) bool {
	product := &node{op: n.op, shape: shapes.Make(dtypes.Float32, n.shape.Dimensions...), args: n.args, in: in}
	if n.op == backends.OpTypeConvGeneral {
		spec, _ := newConv(product).spec(product, kernel.Stored{})
		return spec.StaysFloat()
	}
	d := newDot(product)
	return kernel.Gemm{Batch: d.batch, M: d.rows, N: d.cols, K: d.sum}.StaysFloat()
}

// add appends a float32 node, which comes before the node being replaced.
func (w *widener) add(op backends.OpType, like shapes.Shape, args any, in ...*node) *node {
	n := &node{op: op, shape: shapes.Make(dtypes.Float32, like.Dimensions...), args: args, in: in}
	w.list = append(w.list, n)
	return n
}

// convert rounds float32 that becomes bfloat16, and reads a conversion to float32 from the float32 form if there is one.
func (w *widener) convert(n *node) {
	x := n.in[0]
	if n.shape.DType == dtypes.BFloat16 && x.shape.DType == dtypes.Float32 {
		w.wide[n], w.exact[n] = w.add(n.op, n.shape, rounded{}, x), x
	}
	if n.shape.DType != dtypes.Float32 {
		return
	}
	for _, known := range []*node{w.sums[x], w.wide[x]} {
		if known != nil {
			n.op, n.in = backends.OpTypeIdentity, []*node{known}
			return
		}
	}
}

// exactOf returns the values of bfloat16 nodes if nothing is rounded, or nil if one is not known.
func (w *widener) exactOf(in []*node) []*node {
	out := make([]*node, len(in))
	for i, x := range in {
		if out[i] = w.exact[x]; out[i] == nil {
			return nil
		}
	}
	return out
}

// widened returns the float32 forms of bfloat16 nodes, or nil if one has none.
func (w *widener) widened(in []*node) []*node {
	out := make([]*node, len(in))
	for i, x := range in {
		c, constant := x.args.(constant)
		switch {
		case w.wide[x] != nil:
		case w.sums[x] != nil:
			w.wide[x], w.exact[x] = w.add(backends.OpTypeConvertDType, x.shape, rounded{}, w.sums[x]), w.sums[x]
		case constant:
			w.wide[x] = w.add(backends.OpTypeConstant, x.shape, wideConstant(c))
		default:
			return nil
		}
		out[i] = w.wide[x]
	}
	return out
}

func wideConstant(c constant) constant {
	n := len(c) / dtypes.BFloat16.Size()
	mem := newMemory(4 * n)
	convertFn(dtypes.BFloat16, dtypes.Float32)(pointer(mem), sources(c), n)
	return constant(mem[:4*n])
}

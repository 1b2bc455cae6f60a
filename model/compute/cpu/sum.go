//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/move"
)

// sumArgs is a sum of products of two broadcast operands that is equivalent to a matrix product: GoMLX 0.26 writes the
// gradient of Dot in this form. It replaces dotArgs as the args of a DotGeneral.
type sumArgs struct {
	dims                                 []int
	left, right                          read
	batch, leftOuter, rightOuter, summed []int // axes of dims
}

func (s sumArgs) dot() *dot {
	size := func(axes []int) int { return move.Size(pick(s.dims, axes)) }
	return &dot{
		batch: size(s.batch), rows: size(s.leftOuter), cols: size(s.rightOuter), sum: size(s.summed),
		left:  newSide(s.left.node, s.dims, s.left.strides, s.batch, s.leftOuter, s.summed),
		right: newSide(s.right.node, s.dims, s.right.strides, s.batch, s.rightOuter, s.summed),
	}
}

// leastOuter is the minimum number of rows and of columns for which a product is worth packing.
const leastOuter = 2

// findProducts replaces sums of products that are matrix products.
func (p *plan) findProducts() {
	for _, n := range p.nodes {
		if !p.live[n.id] || p.alias[n.id] != nil || n.op != backends.OpTypeReduceSum || n.in[0].op != backends.OpTypeMul {
			continue
		}
		if s, ok := p.product(n); ok {
			n.op, n.args, n.in = backends.OpTypeDotGeneral, s, []*node{s.left.node, s.right.node}
		}
	}
}

// product sorts the axes of a sum of products. It returns false if it is not a matrix product or its result would have another order.
func (p *plan) product(n *node) (sumArgs, bool) {
	m := n.in[0]
	s := sumArgs{dims: m.shape.Dimensions}
	s.left, s.right = p.view(m.in[0], s.dims), p.view(m.in[1], s.dims)
	var kept []int
	for a, d := range s.dims {
		l, r := s.left.strides[a] != 0, s.right.strides[a] != 0
		switch summed := slices.Contains(n.args.(reduceArgs), a); {
		case d == 1:
		case summed && l && r:
			s.summed = append(s.summed, a)
		case summed || !l && !r:
			return s, false
		case l && r:
			s.batch = append(s.batch, a)
		case l:
			s.leftOuter = append(s.leftOuter, a)
		default:
			s.rightOuter = append(s.rightOuter, a)
		}
		if d > 1 && !slices.Contains(n.args.(reduceArgs), a) {
			kept = append(kept, a)
		}
	}
	if slices.Equal(kept, slices.Concat(s.batch, s.rightOuter, s.leftOuter)) {
		s.left, s.right, s.leftOuter, s.rightOuter = s.right, s.left, s.rightOuter, s.leftOuter
	}
	rows, cols := move.Size(pick(s.dims, s.leftOuter)), move.Size(pick(s.dims, s.rightOuter))
	return s, rows >= leastOuter && cols >= leastOuter && slices.Equal(kept, slices.Concat(s.batch, s.leftOuter, s.rightOuter))
}

//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
)

// edge is an operand of a node of a group: another node of the group, or a read.
type edge struct {
	node *node // nil for a read
	read int
}

// read is a value from outside a group, with the strides (in elements) of the group's axes in it.
type read struct {
	node    *node
	strides []int
}

// isElement reports whether a node is element-wise and not empty.
func isElement(n *node) bool {
	return n.parent == nil && n.results == nil && n.shape.Size() > 0 && nodeFn(n) != nil
}

// link finds the operands of a group's nodes and reductions.
func (g *group) link(p *plan) {
	inside := map[*node]bool{}
	for _, n := range slices.Concat(g.nodes, g.reductions) {
		edges := make([]edge, len(n.in))
		for k, x := range n.in {
			if v := p.view(x, g.dims); inside[v.node] { // has the group's size, and therefore its order
				edges[k].node = v.node
			} else {
				edges[k].read = g.read(v)
			}
		}
		g.edges = append(g.edges, edges)
		inside[n] = true
	}
}

// read returns the index of a read and adds it if it is new.
func (g *group) read(r read) int {
	for i, known := range g.reads {
		if known.node == r.node && slices.Equal(known.strides, r.strides) {
			return i
		}
	}
	g.reads = append(g.reads, r)
	return len(g.reads) - 1
}

// view returns how the memory of operand x is read for a node of the given dimensions, skipping broadcasts.
func (p *plan) view(x *node, dims []int) read {
	axis := make([]int, len(dims)) // axis of x for each axis of dims; -1 if x is repeated along it
	for a := range dims {
		axis[a] = -1
		if x.shape.Rank() == len(dims) && x.shape.Dimensions[a] > 1 {
			axis[a] = a
		}
	}
	for {
		if x.op != backends.OpTypeBroadcastInDim {
			break
		}
		from := x.in[0]
		for a, of := range axis {
			if of < 0 {
				continue
			}
			axis[a] = slices.Index(x.args.(broadcastArgs), of)
			if axis[a] >= 0 && from.shape.Dimensions[axis[a]] == 1 {
				axis[a] = -1
			}
		}
		x = from
	}
	own := rowMajor(x.shape.Dimensions)
	strides := make([]int, len(dims))
	for a, of := range axis {
		if of >= 0 {
			strides[a] = own[of]
		}
	}
	return read{p.root(x), strides}
}

// rowMajor returns the strides of a shape, in elements.
func rowMajor(dims []int) []int {
	strides, n := make([]int, len(dims)), 1
	for a := len(dims) - 1; a >= 0; a-- {
		strides[a] = n
		n *= dims[a]
	}
	return strides
}

// lastUses lists, for each node of the group, the nodes of the group that it is the last to read. A node that no other node reads
// is its own last reader.
func (g *group) lastUses() [][]*node {
	last := map[*node]int{}
	for i, n := range g.nodes {
		last[n] = i
		for _, e := range g.edges[i] {
			if e.node != nil {
				last[e.node] = i
			}
		}
	}
	uses := make([][]*node, len(g.nodes))
	for n, i := range last {
		uses[i] = append(uses[i], n)
	}
	for _, u := range uses {
		slices.SortFunc(u, func(a, b *node) int { return a.id - b.id })
	}
	return uses
}

// shared lists which results may use the memory of which operands: operands that the program reads once, in its own element order,
// and for the last time no later than it writes the result.
func (g *group) shared(p *program) [][2]int {
	lastRead := make([]int, len(g.reads))
	for i := range g.nodes {
		for _, e := range g.edges[i] {
			if e.node == nil {
				lastRead[e.read] = i
			}
		}
	}
	var pairs [][2]int
	times := map[*node]int{}
	for _, x := range g.reads {
		times[x.node]++
	}
	for o, n := range g.outs {
		at := slices.Index(g.nodes, n)
		for r, x := range g.reads {
			if times[x.node] == 1 && p.operands[r].direct && p.operands[r].width == n.shape.DType.Size() && lastRead[r] <= at && x.node.shape.Size() == n.shape.Size() {
				pairs = append(pairs, [2]int{o, r})
			}
		}
	}
	return pairs
}

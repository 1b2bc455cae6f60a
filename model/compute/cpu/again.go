//go:build cgo

package cpu

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
)

// Limits of the values that each reader recomputes.
const (
	againSize  = 16 // elements; a smaller array is cheaper to keep
	againOps   = 12 // operations on one array; one whose result several of them read counts for each
	againSmall = 8  // other operands have at most 1/againSmall of the array's elements
)

// againOp has the operations that cost less than reading an array.
var againOp = map[backends.OpType]bool{
	backends.OpTypeAdd: true, backends.OpTypeSub: true, backends.OpTypeMul: true, backends.OpTypeNeg: true, backends.OpTypeAbs: true,
	backends.OpTypeMax: true, backends.OpTypeMin: true, backends.OpTypeWhere: true, backends.OpTypeGreaterThan: true,
	backends.OpTypeGreaterOrEqual: true, backends.OpTypeLessThan: true, backends.OpTypeLessOrEqual: true,
}

// origin is the array from which a value is computed, and the number of cheap operations.
type origin struct {
	array *node
	ops   int
}

// again copies each value that takes a few cheap operations on one array and small operands, so that every reader has its own copy. The
// copy joins the group of its reader, which then reads the array, and no intermediate value is stored. For example, the backward pass
// recomputes the normalized activations of the forward pass. A value that some reader needs in memory is not copied.
func (p *plan) again() {
	p.lazy = map[*node]bool{}
	a := copier{p: p, readers: map[*node][]*node{}, before: map[*node][]*node{}}
	origins := p.origins()
	if len(origins) == 0 {
		return
	}
	stored := map[*node]bool{}
	for _, n := range p.outs {
		stored[p.root(n)] = true
	}
	for _, n := range p.nodes {
		if p.live[n.id] && p.alias[n.id] == nil {
			a.reads(n)
		}
	}
	for _, n := range slices.Backward(p.nodes) {
		if _, ok := origins[n]; ok && !stored[n] {
			a.copies(n)
		}
	}
	a.renumber()
}

// origins returns the values that may be recomputed.
func (p *plan) origins() map[*node]origin {
	found := map[*node]origin{}
	for _, n := range p.nodes {
		if p.live[n.id] && p.alias[n.id] == nil && againOp[n.op] && n.shape.Size() >= againSize && isElement(n) && isFast(n) {
			if o, ok := p.origin(found, n); ok {
				found[n] = o
			}
		}
	}
	return found
}

func (p *plan) origin(known map[*node]origin, n *node) (origin, bool) {
	o := origin{ops: 1}
	for _, x := range n.in {
		r := p.view(x, n.shape.Dimensions).node
		if r.shape.Size()*againSmall <= n.shape.Size() {
			continue
		}
		from, ok := known[r]
		if !ok {
			from.array = r
		}
		if o.array != nil && o.array != from.array || r.shape.Size() != n.shape.Size() {
			return o, false
		}
		o.array, o.ops = from.array, o.ops+from.ops
	}
	return o, o.array != nil && o.ops <= againOps
}

// copier copies nodes for their readers.
type copier struct {
	p       *plan
	readers map[*node][]*node // by root
	before  map[*node][]*node // by reader: the copies to insert before it
}

// reads records n as a reader of its operands.
func (a *copier) reads(n *node) {
	for _, x := range n.in {
		if r := a.p.root(x); !slices.Contains(a.readers[r], n) {
			a.readers[r] = append(a.readers[r], n)
		}
	}
}

// copies makes a copy of n for each reader after the first, if all readers can compute n themselves.
func (a *copier) copies(n *node) {
	readers := a.readers[n]
	for _, r := range readers {
		g := newGroup(r)
		if g == nil || !g.fast || !slices.Equal(g.dims, n.shape.Dimensions) || slices.ContainsFunc(r.in, func(x *node) bool {
			return a.p.root(x) == n && !x.shape.Equal(n.shape)
		}) {
			return
		}
	}
	for _, r := range readers[min(1, len(readers)):] {
		own := &node{op: n.op, shape: n.shape, in: slices.Clone(n.in), args: n.args, id: len(a.p.alias)}
		a.p.alias = append(a.p.alias, nil)
		r.in = slices.Clone(r.in)
		for i, x := range r.in {
			if a.p.root(x) == n {
				r.in[i] = own
			}
		}
		a.before[r] = append(a.before[r], own)
		a.reads(own)
		a.p.lazy[own] = true
	}
	a.p.lazy[n] = len(readers) > 0
}

// renumber inserts the copies into the list of nodes, each before its reader.
func (a *copier) renumber() {
	p := a.p
	alias := map[*node]*node{}
	for _, n := range p.nodes {
		if to := p.alias[n.id]; to != nil {
			alias[n] = to
		}
	}
	var list []*node
	var place func(n *node)
	place = func(n *node) {
		for _, own := range a.before[n] {
			place(own)
		}
		list = append(list, n)
	}
	for _, n := range p.nodes {
		place(n)
	}
	p.nodes, p.alias, p.within = list, make([]*node, len(list)), make([]*group, len(list))
	for i, n := range list {
		n.id, p.alias[i] = i, alias[n]
	}
}

// unify removes from a group the nodes that compute the same value as an earlier node.
func (p *plan) unify(g *group) {
	known := map[string]*node{}
	g.nodes = slices.DeleteFunc(g.nodes, func(n *node) bool {
		in := make([]int, len(n.in))
		for i, x := range n.in {
			for p.alias[x.id] != nil && p.alias[x.id].shape.Equal(x.shape) {
				x = p.alias[x.id]
			}
			in[i] = x.id
		}
		key := fmt.Sprint(n.op, n.shape, in, n.args)
		if twin := known[key]; twin != nil {
			p.alias[n.id] = twin
			return true
		}
		known[key] = n
		return false
	})
}

// findIdentity replaces operations that return one of their operands: x - 0, and Where with a constant condition.
func (p *plan) findIdentity(n *node) {
	if p.alias[n.id] != nil {
		return
	}
	switch n.op {
	case backends.OpTypeWhere:
		if c, ok := p.root(n.in[0]).args.(constant); ok && len(c) == 1 {
			if chosen := n.in[2-int(c[0]&1)]; chosen.shape.Equal(n.shape) {
				p.become(n, chosen)
			}
		}
	case backends.OpTypeSub:
		c, ok := p.view(n.in[1], n.shape.Dimensions).node.args.(constant)
		if ok && len(c) == n.width() && !slices.ContainsFunc(c, func(b byte) bool { return b != 0 }) && n.in[0].shape.Equal(n.shape) {
			p.become(n, n.in[0])
		}
	}
}

// become turns a node into an alias of x.
func (p *plan) become(n, x *node) {
	p.alias[n.id], n.op, n.args, n.in = x, backends.OpTypeIdentity, nil, []*node{x}
}

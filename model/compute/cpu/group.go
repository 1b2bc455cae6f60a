//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// group is a set of nodes that become one program: element-wise operations of one shape, and reductions of arrays of that shape.
type group struct {
	dims       []int
	fast       bool    // only float32 and booleans, which the kernels support
	nodes      []*node // element-wise, in graph order
	reductions []*node // over the axes lo to hi of dims
	lo, hi     int

	first, last int  // smallest and largest id of a member
	merged      bool // into another group; no longer in use

	reads []read   // distinct values from outside
	edges [][]edge // operands of each node, then of each reduction
	outs  []*node  // element-wise nodes whose values are needed outside
}

// members returns the nodes and the reductions, in graph order.
func (g *group) members() []*node {
	if len(g.reductions) == 0 {
		return g.nodes
	}
	all := slices.Concat(g.nodes, g.reductions)
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b *node) int { return a.id - b.id }

// unit is what one step computes: a group, or another node.
type unit struct {
	group *group
	node  *node
}

// findBases records the node that computes each node's value, and initializes begun, since there are no groups yet.
func (p *plan) findBases() {
	p.bases, p.begun = make([]*node, len(p.nodes)), make([]int, len(p.nodes))
	for _, n := range p.nodes {
		p.begun[n.id] = n.id
		base := p.root(n)
		if base.parent != nil {
			base = base.parent
		}
		p.bases[n.id] = base
	}
}

// unit returns the unit that computes a node's value.
func (p *plan) unit(n *node) unit {
	n = p.bases[n.id]
	if g := p.within[n.id]; g != nil {
		return unit{group: g}
	}
	return unit{node: n}
}

// nodes returns the nodes of the unit, in graph order.
func (u unit) nodes() []*node {
	if u.group != nil {
		return u.group.members()
	}
	return []*node{u.node}
}

// last returns the position of the unit's last node in the graph.
func (u unit) last() int {
	if u.group != nil {
		return u.group.last
	}
	return u.node.id
}

// first returns the position of the unit's first node in the graph, which is unique to the unit.
func (u unit) first() int {
	if u.group != nil {
		return u.group.first
	}
	return u.node.id
}

// walk visits units, each at most once.
type walk struct {
	number int
	seen   []int // by first node: the number of the last walk that visited it
	stack  []unit
}

func (w *walk) begin(nodes int) {
	if w.seen == nil {
		w.seen = make([]int, nodes)
	}
	w.number++
	w.stack = w.stack[:0]
}

// enter marks the unit as visited and reports whether this is its first visit.
func (w *walk) enter(u unit) bool {
	at := &w.seen[u.first()]
	entered := *at != w.number
	*at = w.number
	return entered
}

// reads returns the other units that the unit needs, each once.
func (p *plan) reads(u unit) []unit {
	var units []unit
	p.walk.begin(len(p.nodes))
	p.walk.enter(u)
	for _, n := range u.nodes() {
		for _, x := range n.in {
			if v := p.unit(x); p.walk.enter(v) {
				units = append(units, v)
			}
		}
	}
	return units
}

// Limits of a group: above them the registers no longer fit into the L1 cache.
const (
	groupNodes = 64
	groupReads = 32
)

// group makes a group of each element-wise node and each reduction that a program supports, and joins it with the groups that
// compute its operands or also read them. Groups are joined only if their shapes match and no other unit would then both precede and
// follow the group.
func (p *plan) group() {
	p.findBases()
	readers := map[*node][]*group{}
	for _, n := range p.nodes {
		if !p.live[n.id] || p.alias[n.id] != nil {
			continue
		}
		g := newGroup(n)
		if g == nil {
			continue
		}
		p.within[n.id] = g
		p.groups = append(p.groups, g)
		if !p.lazy[n] {
			p.attach(readers, n)
		}
	}
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool { return g.merged })
	for _, g := range p.groups {
		p.unify(g)
	}
	p.findOuts()
}

// attach joins the group of n with those of its operands and with other readers of these operands. If an operand is lazy, so that it
// waited for its reader, n also reads that operand's own operands.
func (p *plan) attach(readers map[*node][]*group, n *node) {
	for _, x := range n.in {
		x = p.root(x)
		if other := p.within[x.id]; other != nil {
			p.merge(other, p.within[n.id])
		}
		if p.lazy[x] {
			p.attach(readers, x)
			continue
		}
		for _, other := range readers[x] {
			p.merge(other, p.within[n.id])
		}
	}
	p.noteReads(readers, n)
}

// noteReads records the group of n as a reader of the operands that it reads as a whole.
func (p *plan) noteReads(readers map[*node][]*group, n *node) {
	g := p.within[n.id]
	for _, x := range n.in {
		x = p.root(x)
		if x.op != backends.OpTypeConstant && x.shape.Size() == move.Size(g.dims) && p.within[x.id] != g && !slices.Contains(readers[x], g) {
			others := slices.DeleteFunc(readers[x], func(g *group) bool { return g.merged })
			readers[x] = append(others, g)
		}
	}
}

// newGroup returns the group of one node, or nil if it cannot be in a group.
func newGroup(n *node) *group {
	if isElement(n) {
		return &group{dims: n.shape.Dimensions, fast: isFast(n), nodes: []*node{n}, first: n.id, last: n.id}
	}
	if _, ok := reductionKinds[n.op]; !ok || n.shape.DType != dtypes.Float32 || n.in[0].shape.Size() == 0 {
		return nil
	}
	lo, hi, ok := joined(n.in[0].shape.Dimensions, n.args.(reduceArgs))
	if !ok {
		return nil
	}
	return &group{dims: n.in[0].shape.Dimensions, fast: true, reductions: []*node{n}, lo: lo, hi: hi, first: n.id, last: n.id}
}

// reductionKinds maps reductions to those of the kernels.
var reductionKinds = map[backends.OpType]kernel.ReductionKind{
	backends.OpTypeReduceSum: kernel.Sum, backends.OpTypeReduceMax: kernel.Largest, backends.OpTypeReduceMin: kernel.Least,
}

// joined returns the range of axes that are reduced; axes of dimension 1 may count as reduced or kept. It returns false if kept axes
// lie in between, or if the axes behind have too many elements.
func joined(dims, axes []int) (lo, hi int, ok bool) {
	lo = len(dims)
	for _, a := range axes {
		if dims[a] > 1 {
			lo, hi = min(lo, a), a+1
		}
	}
	if hi == 0 {
		return 0, 0, false
	}
	inner := 1
	for a, d := range dims {
		if a >= lo && a < hi && d > 1 && !slices.Contains(axes, a) {
			return 0, 0, false
		}
		if a >= hi {
			inner *= d
		}
	}
	return lo, hi, inner <= kernel.MaxInner
}

// merge moves the members of b into a if that is allowed.
func (p *plan) merge(a, b *group) {
	if a == b || a.merged || !a.agrees(b) || p.readsReduction(a, b) || p.readsReduction(b, a) || p.between(a, b) || p.between(b, a) {
		return
	}
	both := &group{dims: a.dims, fast: a.fast, lo: a.lo, hi: a.hi, first: min(a.first, b.first), last: max(a.last, b.last)}
	if len(a.reductions) == 0 {
		both.lo, both.hi = b.lo, b.hi
	}
	both.nodes, both.reductions = slices.Concat(a.nodes, b.nodes), slices.Concat(a.reductions, b.reductions)
	slices.SortFunc(both.nodes, byID)
	slices.SortFunc(both.reductions, byID)
	trial := *both
	if trial.link(p); len(trial.reads) > groupReads {
		return
	}
	*a = *both
	for _, n := range b.members() {
		p.within[n.id] = a
	}
	b.merged = true
	p.noteSpan(a)
}

// agrees reports whether the groups have the same shape and kind and together stay within the limits.
func (a *group) agrees(b *group) bool {
	if a.fast != b.fast || !slices.Equal(a.dims, b.dims) || len(a.nodes)+len(b.nodes) > groupNodes {
		return false
	}
	return len(a.reductions) == 0 || len(b.reductions) == 0 || a.lo == b.lo && a.hi == b.hi
}

// readsReduction reports whether a member of a needs a reduction of b, which is available only after b has run.
func (p *plan) readsReduction(a, b *group) bool {
	for _, n := range a.members() {
		for _, x := range n.in {
			if slices.Contains(b.reductions, p.root(x)) {
				return true
			}
		}
	}
	return false
}

// between reports whether some other unit follows b and precedes a.
func (p *plan) between(a, b *group) bool {
	w, target, floor := &p.walk, unit{group: b}, p.floor(b)
	w.begin(len(p.nodes))
	w.enter(unit{group: a})
	w.enter(target)
	visit := func(nodes []*node, from *group) bool {
		for _, n := range nodes {
			for _, x := range n.in {
				v := p.unit(x)
				if v == target && from != a {
					return true
				}
				if v.last() >= floor && w.enter(v) {
					w.stack = append(w.stack, v)
				}
			}
		}
		return false
	}
	visit(a.nodes, a)
	visit(a.reductions, a)
	for len(w.stack) > 0 {
		u := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if g := u.group; g != nil {
			if visit(g.nodes, g) || visit(g.reductions, g) {
				return true
			}
		} else if visit([]*node{u.node}, nil) {
			return true
		}
	}
	return false
}

// floor returns the smallest node id that can follow b: its own first node, or that of a group that spans it.
func (p *plan) floor(b *group) int {
	floor := b.first
	for p.begun[floor] < floor {
		floor = p.begun[floor]
	}
	return floor
}

// noteSpan records that the group begins before each node up to its last.
func (p *plan) noteSpan(g *group) {
	for id := g.first + 1; id < g.last; id++ {
		p.begun[id] = min(p.begun[id], g.first)
	}
}

// findOuts lists the nodes of each group that are read outside it.
func (p *plan) findOuts() {
	outer := make([]bool, len(p.nodes))
	for _, n := range p.outs {
		outer[p.root(n).id] = true
	}
	for _, n := range p.nodes {
		if !p.live[n.id] || p.alias[n.id] != nil {
			continue
		}
		for _, x := range n.in {
			if g := p.within[p.root(x).id]; g == nil || g != p.within[n.id] {
				outer[p.root(x).id] = true
			}
		}
	}
	for _, g := range p.groups {
		for _, n := range g.nodes {
			if outer[n.id] {
				g.outs = append(g.outs, n)
			}
		}
	}
}

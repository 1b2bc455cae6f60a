package cpu

import (
	"slices"
)

// unit is what becomes one step: a group of element-wise nodes, or another node.
type unit struct {
	group *group
	node  *node
}

// unit finds the unit that computes a node's value.
func (p *plan) unit(n *node) unit {
	n = p.root(n)
	if n.parent != nil {
		n = n.parent
	}
	if g := p.within[n.id]; g != nil {
		return unit{group: g}
	}
	return unit{node: n}
}

// nodes of the unit, in order of the graph.
func (u unit) nodes() []*node {
	if u.group != nil {
		return u.group.nodes
	}
	return []*node{u.node}
}

func (u unit) first() *node { return u.nodes()[0] }

func (u unit) last() *node {
	nodes := u.nodes()
	return nodes[len(nodes)-1]
}

// reads are the other units that the unit needs, each once.
func (p *plan) reads(u unit) []unit {
	var units []unit
	seen := map[unit]bool{u: true}
	for _, n := range u.nodes() {
		for _, x := range n.in {
			if v := p.unit(x); !seen[v] {
				seen[v] = true
				units = append(units, v)
			}
		}
	}
	return units
}

// Limits of a group: beyond them registers leave the first cache.
const (
	groupNodes = 96
	groupReads = 32
)

// group joins each element-wise node to the groups that compute its operands, where it has their shape and no unit in
// between would then both precede and follow the group.
func (p *plan) group() {
	for _, n := range p.nodes {
		if !p.live[n.id] || p.alias[n.id] != nil || !isElement(n) {
			continue
		}
		g := &group{nodes: []*node{n}}
		p.within[n.id] = g
		p.groups = append(p.groups, g)
		for _, x := range n.in {
			other := p.within[p.root(x).id]
			if other != nil && other != p.within[n.id] && slices.Equal(other.nodes[0].shape.Dimensions, n.shape.Dimensions) {
				p.merge(other, p.within[n.id])
			}
		}
	}
	p.findOuts()
}

// merge puts the nodes of b into a, where that is allowed.
func (p *plan) merge(a, b *group) {
	if len(a.nodes)+len(b.nodes) > groupNodes || p.between(a, b) || p.between(b, a) {
		return
	}
	a.nodes = append(a.nodes, b.nodes...)
	slices.SortFunc(a.nodes, func(x, y *node) int { return x.id - y.id })
	if p.countReads(a) > groupReads {
		a.nodes = slices.DeleteFunc(a.nodes, func(n *node) bool { return p.within[n.id] == b })
		return
	}
	for _, n := range b.nodes {
		p.within[n.id] = a
	}
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool { return g == b })
}

// countReads is how many values a group of these nodes reads from outside.
func (p *plan) countReads(g *group) int {
	trial := group{nodes: g.nodes}
	trial.link(p)
	return len(trial.reads)
}

// between says whether some other unit follows b and precedes a.
func (p *plan) between(a, b *group) bool {
	target := unit{group: b}
	floor := p.floor(b)
	seen := map[unit]bool{{group: a}: true, target: true}
	var stack []unit
	visit := func(u unit) bool {
		found := false
		for _, v := range p.reads(u) {
			if v == target && u.group != a {
				found = true
			}
			if !seen[v] && v.last().id >= floor {
				seen[v] = true
				stack = append(stack, v)
			}
		}
		return found
	}
	visit(unit{group: a})
	for len(stack) > 0 {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if visit(u) {
			return true
		}
	}
	return false
}

// floor is the least node that can follow b: its own first, or that of a group that reaches beyond it.
func (p *plan) floor(b *group) int {
	floor := b.nodes[0].id
	for again := true; again; {
		again = false
		for _, g := range p.groups {
			if first := g.nodes[0].id; first < floor && g.nodes[len(g.nodes)-1].id > floor {
				floor, again = first, true
			}
		}
	}
	return floor
}

// findOuts lists the nodes of each group that are read outside of it.
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

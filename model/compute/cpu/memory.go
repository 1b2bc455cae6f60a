//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
)

// home is the location of a value during an execution.
type home struct {
	kind  homeKind
	index int // of the input or output
	at    int // offset in the arena
	bytes int
	mem   []byte // of a constant
}

type homeKind uint8

const (
	inArena homeKind = iota
	inInput
	inOutput
	inConstant
)

// bytes returns the size of a node's value in memory.
func (n *node) bytes() int {
	if n.narrow {
		return (n.shape.Size() + 1) / 2 * 4 // whole floats
	}
	return int(n.shape.Memory())
}

// layout is the result of memory planning: the homes of every step's arguments.
type layout struct {
	arena   int      // bytes
	out, in [][]home // by step
	outputs []copyOut
	reuse   []int // by output: the input whose memory it uses if that input is donated, or -1
}

// copyOut describes how an output gets its value: its step writes it (copy is false), or it is copied from another home.
type copyOut struct {
	copy bool
	from home
}

// planner assigns homes step by step.
type planner struct {
	p      *plan
	homes  map[*node]home
	uses   map[*node][]int // the steps that write or read a value; len(steps) for outputs
	last   map[*node]int   // the last of them, or the step before which one of them in the background ends
	ends   [][]*node       // by step: the values for which it is the last one
	idle   [][]home        // by step: scratch of steps in the background that is free after it
	taken  map[*node]bool  // values whose memory a result of their last reader uses
	blocks []block         // free parts of the arena, by offset
	arena  int
	layout *layout
}

// block is a free part of the arena.
type block struct{ at, bytes int }

// newLayout plans memory: outputs are written to the caller's buffers; everything else is in an arena whose parts are reused
// as soon as their last reader has run.
func newLayout(p *plan) *layout {
	l := &planner{p: p, homes: map[*node]home{}, uses: map[*node][]int{}, last: map[*node]int{}, taken: map[*node]bool{}, layout: &layout{}}
	l.fixed()
	l.lifetimes()
	for i, s := range p.steps {
		l.place(i, s)
	}
	for k, n := range p.outs {
		from := l.homes[p.root(n)]
		l.layout.outputs = append(l.layout.outputs, copyOut{copy: from.kind != inOutput || from.index != k, from: from})
	}
	l.layout.arena = l.arena
	l.matchDonated()
	return l.layout
}

// fixed assigns homes to parameters, constants and the first output of each value.
func (l *planner) fixed() {
	for _, n := range l.p.nodes {
		switch args := n.args.(type) {
		case parameter:
			l.homes[n] = home{kind: inInput, index: args.index, bytes: n.bytes()}
		case constant:
			l.homes[n] = home{kind: inConstant, mem: args, bytes: len(args)}
		}
	}
	for k, n := range l.p.outs {
		r := l.p.root(n)
		if _, taken := l.homes[r]; !taken {
			l.homes[r] = home{kind: inOutput, index: k, bytes: r.bytes()}
		}
	}
}

func (l *planner) lifetimes() {
	for i, s := range l.p.steps {
		for _, n := range append(slices.Clone(s.out), s.in...) {
			l.uses[n] = append(l.uses[n], i)
			l.last[n] = max(l.last[n], i, s.until)
		}
	}
	for _, n := range l.p.outs {
		r := l.p.root(n)
		l.uses[r] = append(l.uses[r], len(l.p.steps))
		l.last[r] = len(l.p.steps)
	}
	l.ends, l.idle = make([][]*node, len(l.p.steps)+1), make([][]home, len(l.p.steps)+1)
	for n, i := range l.last {
		l.ends[i] = append(l.ends[i], n)
	}
}

// place assigns homes to the results of a step, then frees values that no later step reads.
func (l *planner) place(i int, s *step) {
	var out, in []home
	links := s.parts()
	for j, s := range links {
		for _, n := range s.in {
			in = append(in, l.homes[n])
		}
		for k, n := range s.out {
			if _, ok := l.homes[n]; !ok {
				l.homes[n] = l.inPlace(i, links, j, k)
			}
			out = append(out, l.homes[n])
		}
	}
	var scratch []home
	for _, bytes := range s.scratch {
		scratch = append(scratch, l.take(bytes))
	}
	l.layout.out = append(l.layout.out, append(out, scratch...))
	l.layout.in = append(l.layout.in, in)
	end := max(i, s.until)
	l.idle[end] = append(l.idle[end], scratch...)
	for _, h := range l.idle[i] {
		l.free(h)
	}
	for _, n := range l.ends[i] {
		if !l.taken[n] {
			l.free(l.homes[n])
		}
	}
}

// inPlace returns the memory of an operand that is not used after link j of step i and may hold its result k, or else a new part of the arena.
func (l *planner) inPlace(i int, links []*step, j, k int) home {
	s := links[j]
	bytes := s.out[k].bytes()
	for _, pair := range s.shared {
		x := s.in[pair[1]]
		h := l.homes[x]
		if pair[0] == k && h.kind == inArena && l.endsWith(x, i) && !l.taken[x] && padded(h.bytes) == padded(bytes) &&
			readInParts(x, links[:j]) && !slices.ContainsFunc(links[j+1:], func(s *step) bool { return slices.Contains(s.in, x) }) {
			l.taken[x] = true
			return home{kind: inArena, at: h.at, bytes: bytes}
		}
	}
	return l.take(bytes)
}

// endsWith reports whether no step but i uses a value after that step begins. It waits for the step that computes the value.
func (l *planner) endsWith(x *node, i int) bool {
	return !slices.ContainsFunc(l.uses[x], func(j int) bool {
		return j > i || j < i && l.p.steps[j].until > i && !slices.Contains(l.p.steps[j].out, x)
	})
}

// readInParts reports whether the links read only the part of x that they compute.
func readInParts(x *node, links []*step) bool {
	for _, s := range links {
		for i, n := range s.in {
			if n == x && !s.division.divided[i] {
				return false
			}
		}
	}
	return true
}

// take finds the smallest free part that is large enough, or grows the arena.
func (l *planner) take(bytes int) home {
	if bytes == 0 {
		return home{}
	}
	need := padded(bytes)
	best := -1
	for i, b := range l.blocks {
		if b.bytes >= need && (best < 0 || b.bytes < l.blocks[best].bytes) {
			best = i
		}
	}
	if best >= 0 {
		b := &l.blocks[best]
		h := home{kind: inArena, at: b.at, bytes: bytes}
		b.at, b.bytes = b.at+need, b.bytes-need
		if b.bytes == 0 {
			l.blocks = slices.Delete(l.blocks, best, best+1)
		}
		return h
	}
	if k := len(l.blocks) - 1; k >= 0 && l.blocks[k].at+l.blocks[k].bytes == l.arena { // extend the free end
		h := home{kind: inArena, at: l.blocks[k].at, bytes: bytes}
		l.arena = h.at + need
		l.blocks = l.blocks[:k]
		return h
	}
	h := home{kind: inArena, at: l.arena, bytes: bytes}
	l.arena += need
	return h
}

// free returns a part of the arena and joins it with its free neighbors.
func (l *planner) free(h home) {
	if h.kind != inArena || h.bytes == 0 {
		return
	}
	b := block{h.at, padded(h.bytes)}
	i, _ := slices.BinarySearchFunc(l.blocks, b, func(x, y block) int { return x.at - y.at })
	l.blocks = slices.Insert(l.blocks, i, b)
	if i+1 < len(l.blocks) && b.at+b.bytes == l.blocks[i+1].at {
		l.blocks[i].bytes += l.blocks[i+1].bytes
		l.blocks = slices.Delete(l.blocks, i+1, i+2)
	}
	if i > 0 && l.blocks[i-1].at+l.blocks[i-1].bytes == l.blocks[i].at {
		l.blocks[i-1].bytes += l.blocks[i].bytes
		l.blocks = slices.Delete(l.blocks, i, i+1)
	}
}

// matchDonated finds for each output an input of the same shape whose last reader runs before the output is written,
// or is the step that writes it, if that step may work in place.
func (l *planner) matchDonated() {
	first := make([]int, len(l.p.outs)) // the step that writes an output
	writer := make([][2]int, len(l.p.outs))
	for k, o := range l.layout.outputs {
		first[k] = len(l.p.steps)
		if !o.copy {
			for i, s := range l.p.steps {
				if at := slices.Index(s.out, l.p.root(l.p.outs[k])); at >= 0 {
					first[k], writer[k] = i, [2]int{i, at}
				}
			}
		}
	}
	used := map[*node]bool{}
	for k := range l.p.outs {
		l.layout.reuse = append(l.layout.reuse, -1)
		for _, x := range l.inputs() {
			if !used[x] && l.fits(x, k, first[k], writer[k]) {
				used[x] = true
				l.layout.reuse[k] = x.args.(parameter).index
				break
			}
		}
	}
}

func (l *planner) inputs() []*node {
	var in []*node
	for _, n := range l.p.nodes {
		if n.op == backends.OpTypeParameter {
			in = append(in, n)
		}
	}
	return in
}

// fits reports whether output k, first written by the given step, may use the memory of the input x.
func (l *planner) fits(x *node, k, first int, writer [2]int) bool {
	if l.layout.outputs[k].copy || !x.shape.Equal(l.p.outs[k].shape) || first == len(l.p.steps) { // no step writes empty outputs
		return false
	}
	last, read := l.last[x]
	switch {
	case !read || last < first:
		return true
	case !l.endsWith(x, first):
		return false
	}
	s := l.p.steps[first]
	return slices.ContainsFunc(s.shared, func(pair [2]int) bool { return pair[0] == writer[1] && s.in[pair[1]] == x })
}

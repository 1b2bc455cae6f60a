//go:build cgo

package cpu

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
)

// task computes a step. out is the memory of its results followed by its scratch; in is the memory of its operands.
type task struct {
	run      func(pool *kernel.Pool, out, in [][]byte)
	scratch  []int     // bytes of each piece of scratch
	shared   [][2]int  // pairs (result, operand) that may use the same memory
	division *division // how it can be computed in parts, or nil
	reads    []*node   // the nodes that it reads instead of the node's operands, if it skips some

	narrows kernel.Stored                                // operands of a product that may be stored as bfloat16
	rounds  bool                                         // its result may be stored so
	narrow  func(stored kernel.Stored, rounds bool) task // returns the task for operands and a result that are stored so; nil if it is no product
}

// maker compiles a node that is not element-wise into its task.
type maker func(n *node) task

var makers [backends.OpTypeLast]maker

// step is a task with the nodes whose memory it writes and reads.
type step struct {
	task
	nodes   []*node  // the nodes it computes, for errors
	group   *group   // that the step computes as a whole, or nil
	out     []*node  // roots
	in      []*node  // roots
	cascade *cascade // nil if it is not a cascade
	until   int      // the step before which it has to end if it is computed in the background, otherwise 0
	after   []int    // steps that it waits for there
}

// plan is a computation that is being compiled to an Executable.
type plan struct {
	nodes  []*node
	outs   []*node
	alias  []*node        // by id: the node whose memory holds this node's value; nil if it is the node itself
	live   []bool         // by id
	groups []*group       // without those merged into others
	lazy   map[*node]bool // nodes that join the group of their only reader, not those of their operands
	within []*group       // by id: the group of an element-wise node
	bases  []*node        // by id: the node that computes this node's value
	begun  []int          // by id: the smallest first node of the groups that span the node; the node itself if there is none
	walk   walk
	steps  []*step
}

// newPlan simplifies the graph, then groups and orders its nodes.
func newPlan(b *Builder, outs []*node) *plan {
	p := simplify(b.backend, b.nodes, outs)
	if nodes, changed := widen(p.nodes, staysFloat); changed {
		p = simplify(b.backend, nodes, outs)
	}
	p.findProducts()
	if b.backend.split {
		split(p.nodes)
	}
	p.mark()
	p.again()
	p.mark()
	p.group()
	p.schedule()
	p.narrow()
	p.cascade(b.backend.Threads())
	p.background(b.backend.Threads())
	return p
}

// simplify drops unneeded and duplicate nodes, and computes constants.
func simplify(b *Backend, nodes, outs []*node) *plan {
	p := &plan{nodes: nodes, outs: outs, alias: make([]*node, len(nodes)), within: make([]*group, len(nodes))}
	p.mark()
	known := map[string]*node{}
	for _, n := range p.nodes {
		if p.live[n.id] {
			p.findAlias(n)
			p.findIdentity(n)
			p.findTwin(known, n)
			p.fold(b, n)
		}
	}
	return p
}

// mark finds the nodes that outputs need: their operands and aliases, since the alias of a duplicate node is not an operand.
func (p *plan) mark() {
	p.live = make([]bool, len(p.nodes))
	for _, n := range p.outs {
		p.live[n.id] = true
	}
	for i := len(p.nodes) - 1; i >= 0; i-- {
		if p.live[i] {
			for _, x := range p.nodes[i].in {
				p.live[x.id] = true
			}
			if twin := p.alias[i]; twin != nil {
				p.live[twin.id] = true
			}
		}
	}
}

// root returns the node whose memory holds the value of n.
func (p *plan) root(n *node) *node {
	for p.alias[n.id] != nil {
		n = p.alias[n.id]
	}
	return n
}

// findAlias finds the nodes that equal their operand apart from its shape.
func (p *plan) findAlias(n *node) {
	same := false
	switch n.op {
	case backends.OpTypeIdentity, backends.OpTypeReshape:
		same = true
	case backends.OpTypeBroadcastInDim, backends.OpTypeSlice:
		same = n.shape.Size() == n.in[0].shape.Size()
	case backends.OpTypeTranspose:
		same = keepsOrder(n)
	case backends.OpTypeReduceSum, backends.OpTypeReduceProduct, backends.OpTypeReduceMax, backends.OpTypeReduceMin,
		backends.OpTypeReduceLogicalAnd, backends.OpTypeReduceLogicalOr, backends.OpTypeReduceLogicalXor,
		backends.OpTypeReduceBitwiseAnd, backends.OpTypeReduceBitwiseOr, backends.OpTypeReduceBitwiseXor:
		same = n.shape.Size() == n.in[0].shape.Size() && n.shape.Size() > 0
	}
	if same {
		p.alias[n.id] = n.in[0]
	}
}

// twinBytes is the largest size of constants that are compared.
const twinBytes = 64

// findTwin finds nodes that compute the same value as an earlier one; automatic differentiation produces many of them.
func (p *plan) findTwin(known map[string]*node, n *node) {
	c, isConstant := n.args.(constant)
	if p.alias[n.id] != nil || n.results != nil || n.parent != nil || n.op == backends.OpTypeParameter || len(c) > twinBytes {
		return
	}
	in := make([]int, len(n.in))
	for i, x := range n.in {
		for p.alias[x.id] != nil && p.alias[x.id].shape.Equal(x.shape) {
			x = p.alias[x.id]
		}
		in[i] = x.id
	}
	key := fmt.Sprint(n.op, n.shape, in, n.args, n.halves)
	if isConstant {
		key = fmt.Sprint(n.shape, []byte(c))
	}
	if twin := known[key]; twin != nil {
		p.alias[n.id] = twin
		return
	}
	known[key] = n
}

// keepsOrder reports whether a transposition moves only axes of dimension 1.
func keepsOrder(n *node) bool {
	last := -1
	for _, a := range n.args.(transposeArgs) {
		if n.in[0].shape.Dimensions[a] > 1 {
			if a < last {
				return false
			}
			last = a
		}
	}
	return true
}

// foldBytes is the largest constant that is computed during compilation.
const foldBytes = 1 << 20

// fold computes a node during compilation if all its operands are constants.
func (p *plan) fold(b *Backend, n *node) {
	if n.op == backends.OpTypeParameter || n.op == backends.OpTypeConstant || n.results != nil || n.parent != nil ||
		int(n.shape.Memory()) > foldBytes || n.op == backends.OpTypeBroadcastInDim && p.alias[n.id] == nil {
		return
	}
	in := make([][]byte, len(n.in))
	for i, x := range n.in {
		c, ok := p.root(x).args.(constant)
		if !ok {
			return
		}
		in[i] = c
	}
	if p.alias[n.id] != nil {
		return // its root is already a constant
	}
	mem := newMemory(int(n.shape.Memory()))
	if s := p.stepOf(n); s != nil {
		in = in[:0]
		for _, x := range s.in {
			c, ok := x.args.(constant)
			if !ok {
				return
			}
			in = append(in, c)
		}
		out := [][]byte{mem}
		for _, size := range s.scratch {
			out = append(out, newMemory(size))
		}
		s.run(b.workers, out, in)
	}
	n.op, n.args, n.in = backends.OpTypeConstant, constant(mem[:n.shape.Memory()]), nil
}

// stepOf compiles one node by itself; it returns nil if there is nothing to compute.
func (p *plan) stepOf(n *node) *step {
	if isElement(n) {
		g := newGroup(n)
		g.outs = []*node{n}
		return p.groupSteps(g)[0]
	}
	outs := []*node{n}
	if n.results != nil {
		outs = n.results
	}
	if !slices.ContainsFunc(outs, func(n *node) bool { return n.shape.Size() > 0 }) {
		return nil
	}
	mk := makers[n.op]
	if mk == nil {
		panic("no task for operation " + n.op.String())
	}
	s := &step{task: mk(n), nodes: []*node{n}, out: outs}
	reads := s.reads
	if reads == nil {
		reads = n.in
	}
	for _, x := range reads {
		s.in = append(s.in, p.root(x))
	}
	return s
}

// groupSteps compiles a group: with the kernels if they support it, else in Go with a step for each reduction.
func (p *plan) groupSteps(g *group) []*step {
	g.link(p)
	if g.fast {
		if s, err := g.fastStep(); err == nil {
			return []*step{s}
		}
	}
	for _, r := range g.reductions {
		if x := p.root(r.in[0]); slices.Contains(g.nodes, x) && !slices.Contains(g.outs, x) {
			g.outs = append(g.outs, x)
		}
	}
	var steps []*step
	if len(g.nodes) > 0 {
		prog := newProgram(g)
		s := &step{task: task{run: prog.run, shared: g.shared(prog)}, nodes: g.nodes, out: g.outs}
		for _, r := range g.reads {
			s.in = append(s.in, r.node)
		}
		steps = append(steps, s)
	}
	for _, r := range g.reductions {
		steps = append(steps, p.stepOf(r))
	}
	return steps
}

// describe returns the operations and operand shapes of a step, for errors.
func (s *step) describe() string {
	var names []string
	for _, n := range s.nodes {
		var shapes []string
		for _, x := range n.in {
			shapes = append(shapes, x.shape.String())
		}
		names = append(names, n.op.String()+"("+strings.Join(shapes, ", ")+")")
		if len(names) == 8 && len(s.nodes) > 8 {
			names = append(names, "…")
			break
		}
	}
	return strings.Join(names, ", ")
}

// schedule compiles every unit after the units that it reads.
func (p *plan) schedule() {
	for _, u := range p.order() {
		if u.group != nil {
			p.steps = append(p.steps, p.groupSteps(u.group)...)
		} else if s := p.stepOf(u.node); s != nil {
			p.steps = append(p.steps, s)
		}
	}
	p.dropUnread()
}

// order sorts the units topologically, preferring graph order.
func (p *plan) order() []unit {
	waits, readers := map[unit]int{}, map[unit][]unit{}
	ready := &queue{}
	for _, n := range p.nodes {
		u := p.unit(n)
		if _, seen := waits[u]; seen || !p.live[n.id] || p.alias[n.id] != nil {
			continue
		}
		deps := p.reads(u)
		waits[u] = len(deps)
		for _, d := range deps {
			readers[d] = append(readers[d], u)
		}
		if len(deps) == 0 {
			heap.Push(ready, u)
		}
	}
	var order []unit
	for ready.Len() > 0 {
		u := heap.Pop(ready).(unit)
		if u.group != nil || u.node.op != backends.OpTypeParameter && u.node.op != backends.OpTypeConstant {
			order = append(order, u)
		}
		for _, r := range readers[u] {
			if waits[r]--; waits[r] == 0 {
				heap.Push(ready, r)
			}
		}
	}
	for u, n := range waits {
		if n > 0 {
			panic("circular groups around " + u.nodes()[0].op.String())
		}
	}
	return order
}

// queue holds units by the position of their last node in the graph.
type queue []unit

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].last() < q[j].last() }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(unit)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	u := (*q)[last]
	*q = (*q)[:last]
	return u
}

// dropUnread removes steps whose results are not read, such as broadcasts that all readers skip.
func (p *plan) dropUnread() {
	needed := map[*node]bool{}
	for _, n := range p.outs {
		needed[p.root(n)] = true
	}
	kept := p.steps[:0:0]
	for _, s := range slices.Backward(p.steps) {
		if !slices.ContainsFunc(s.out, func(n *node) bool { return needed[n] }) {
			continue
		}
		for _, x := range s.in {
			needed[x] = true
		}
		kept = append(kept, s)
	}
	slices.Reverse(kept)
	p.steps = kept
}

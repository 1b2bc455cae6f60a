package metric

import (
	"cmp"
	"math/rand/v2"
)

const (
	treeDepth    = 10    // maximum splits from root to leaf
	leastNats    = 1e-15 // maximum entropy of a node that counts as pure
	leastBetween = 1e-7  // minimum difference of neighbouring values for a threshold between them
)

// view is the features of a tree and the order of its rows. Exactly one node is entered at a time.
type view interface {
	features() int
	// begin starts a tree with the rows of positive weight, all in the root.
	begin(weight []int32)
	// enter counts the rows lo to hi; leave undoes it.
	enter(lo, hi int)
	leave(lo, hi int)
	// cut finds the threshold of a feature that minimizes the entropy of the children; ok is false if the feature is constant.
	cut(feature int) (threshold, cost float64, ok bool)
	// divide moves the rows that go left, x ≤ threshold, in front of the others, and returns the index of the first of the others.
	divide(lo, hi, feature int, threshold float64) int
	left(row, feature int, threshold float64) bool
	rows(lo, hi int) []int32
}

// tree is a classification tree; leaves have no children.
type tree struct {
	nodes  []node
	leaves []float64 // [leaf, K] share of each class
}

type node struct {
	feature     int32
	left, right int32 // nodes; 0 in a leaf
	leaf        int32
	threshold   float64
}

// sample is the training data of a tree: classes, row weights, and a table for sums of entropies.
type sample struct {
	y      labels
	weight []int32   // [n] 0 for rows that are not in the sample
	xlogx  []float64 // c ln c for every weight c that can occur
}

// gather sums the weights of rows by class.
func (s *sample) gather(counts []int32, rows []int32) (total int32) {
	clear(counts)
	for _, r := range rows {
		counts[s.y.of[r]] += s.weight[r]
		total += s.weight[r]
	}
	return total
}

// nats is W·H of class weights that sum to W.
//
//	W·H = W ln W − Σ_c w_c ln w_c
func (s *sample) nats(counts []int32, total int32) float64 {
	sum := s.xlogx[total]
	for _, c := range counts {
		sum -= s.xlogx[c]
	}
	return sum
}

// grower grows trees one at a time, reusing its scratch memory.
type grower struct {
	*sample
	view   view
	rng    *rand.Rand
	order  []int32 // features, starting with those tried at a node
	counts []int32 // [K]
	tries  int     // features tried per node
	depth  int     // maximum splits from root to leaf; 0 for treeDepth
	every  bool    // also keep the shares of inner nodes, for sharesAt

	tree       tree
	importance []float64 // [p] impurity removed by each feature
}

// open is a node that has not been processed yet.
type open struct{ id, lo, hi, depth int }

// grow grows a tree from the weighted rows.
func (g *grower) grow() {
	for f := range g.order {
		g.order[f] = int32(f)
	}
	clear(g.importance)
	g.tree = tree{nodes: make([]node, 1, 64)}
	g.view.begin(g.weight)
	stack := []open{{hi: len(g.view.rows(0, -1))}}
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		mid, ok := g.split(o)
		if !ok {
			continue
		}
		l := len(g.tree.nodes)
		g.tree.nodes = append(g.tree.nodes, node{}, node{})
		g.tree.nodes[o.id].left, g.tree.nodes[o.id].right = int32(l), int32(l+1)
		stack = append(stack, open{l + 1, mid, o.hi, o.depth + 1}, open{l, o.lo, mid, o.depth + 1})
	}
}

// split finds the best split of a node and divides its rows at the returned index; if ok is false, the node is a leaf.
func (g *grower) split(o open) (mid int, ok bool) {
	total := g.gather(g.counts, g.view.rows(o.lo, o.hi))
	nats := g.nats(g.counts, total)
	if g.every {
		g.keep(o.id, total)
	}
	if o.depth < cmp.Or(g.depth, treeDepth) && o.hi-o.lo > 1 && nats > leastNats*float64(total) {
		g.view.enter(o.lo, o.hi)
		feature, threshold, cost := g.best()
		g.view.leave(o.lo, o.hi)
		if feature >= 0 {
			g.importance[feature] += max(0, nats-cost)
			n := &g.tree.nodes[o.id]
			n.feature, n.threshold = int32(feature), threshold
			return g.view.divide(o.lo, o.hi, feature, threshold), true
		}
	}
	if !g.every {
		g.keep(o.id, total)
	}
	return 0, false
}

// keep stores a node's class proportions.
func (g *grower) keep(node int, total int32) {
	g.tree.nodes[node].leaf = int32(len(g.tree.leaves))
	for _, c := range g.counts {
		g.tree.leaves = append(g.tree.leaves, float64(c)/float64(total))
	}
}

// best tries features in random order until it has tried enough, at least one of them not constant; feature is −1 if all are constant.
func (g *grower) best() (feature int, threshold, cost float64) {
	feature = -1
	for seen := 0; seen < len(g.order) && (seen < g.tries || feature < 0); seen++ {
		at := seen + g.rng.IntN(len(g.order)-seen)
		g.order[seen], g.order[at] = g.order[at], g.order[seen]
		f := int(g.order[seen])
		if t, c, ok := g.view.cut(f); ok && (feature < 0 || c < cost) {
			feature, threshold, cost = f, t, c
		}
	}
	return feature, threshold, cost
}

// shares is the class proportions of the leaf for one row.
func (g *grower) shares(row int) []float64 { return g.sharesAt(row, cmp.Or(g.depth, treeDepth)) }

// sharesAt is the class proportions of the node that a row reaches after at most depth splits: the prediction of a tree of that depth.
func (g *grower) sharesAt(row, depth int) []float64 {
	n := &g.tree.nodes[0]
	for ; n.left > 0 && depth > 0; depth-- {
		if g.view.left(row, int(n.feature), n.threshold) {
			n = &g.tree.nodes[n.left]
		} else {
			n = &g.tree.nodes[n.right]
		}
	}
	return g.tree.leaves[n.leaf : int(n.leaf)+g.y.k]
}

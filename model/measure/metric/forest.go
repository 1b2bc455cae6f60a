package metric

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	defaultTrees = 100
	chunkTrees   = 10 // trees grown by one task, summed in their order
)

// forest predicts one factor, as in the DCI of Hsu et al.'s code: 100 trees on bootstrap samples, entropy, depth 10, √p features per
// split.
type forest struct {
	y           labels
	train, test []int
	seed        uint64
	stream      uint64 // differs for every forest of a measurement
	view        func(*sample) view
	xlogx       []float64
}

// chunk is the summed result of some of a forest's trees.
type chunk struct {
	importance []float64 // [p] sum over trees; each tree's importances sum to 1
	shares     []float64 // [test, K] sum over trees of class proportions
}

// grow grows trees first to last, which depend only on the forest's seed and their own index.
func (f forest) grow(ctx context.Context, first, last int) (chunk, error) {
	s := &sample{y: f.y, weight: make([]int32, len(f.y.of)), xlogx: f.xlogx}
	v := f.view(s)
	p := v.features()
	g := &grower{sample: s, view: v, order: make([]int32, p), counts: make([]int32, f.y.k), importance: make([]float64, p),
		tries: max(1, int(math.Sqrt(float64(p))))}
	c := chunk{make([]float64, p), make([]float64, len(f.test)*f.y.k)}
	for number := first; number < last; number++ {
		if err := ctx.Err(); err != nil {
			return c, fmt.Errorf("random forest: %w", err)
		}
		g.rng = rand.New(rand.NewPCG(f.seed, f.stream<<32|uint64(number)))
		f.bootstrap(s.weight, g.rng)
		g.grow()
		c.add(g, f.test)
	}
	return c, nil
}

// bootstrap draws with replacement as many training rows as there are.
func (f forest) bootstrap(weight []int32, rng *rand.Rand) {
	clear(weight)
	for range f.train {
		weight[f.train[rng.IntN(len(f.train))]]++
	}
}

func (c *chunk) add(g *grower, test []int) {
	total := sum(g.importance)
	for i, v := range g.importance {
		if total > 0 {
			c.importance[i] += v / total
		}
	}
	for i, row := range test {
		to := c.shares[i*g.y.k:]
		for v, share := range g.shares(row) {
			to[v] += share
		}
	}
}

// verdict combines the chunks of a forest: importances [p] that sum to 1, or to 0 if no tree split, and the accuracy of the forest's
// joint vote on the test rows.
func (f forest) verdict(chunks []chunk) (importance []float64, accuracy float64) {
	importance, shares := make([]float64, len(chunks[0].importance)), make([]float64, len(chunks[0].shares))
	for _, c := range chunks {
		for i, v := range c.importance {
			importance[i] += v
		}
		for i, v := range c.shares {
			shares[i] += v
		}
	}
	if total := sum(importance); total > 0 {
		for i := range importance {
			importance[i] /= total
		}
	}
	k, right := f.y.k, 0
	for i, row := range f.test {
		best := 0
		for v, share := range shares[i*k : (i+1)*k] {
			if share > shares[i*k+best] {
				best = v
			}
		}
		if int32(best) == f.y.of[row] {
			right++
		}
	}
	return importance, float64(right) / float64(len(f.test))
}

// xlogx is c ln c for c from 0 to n.
func xlogx(n int) []float64 {
	table := make([]float64, n+1)
	for c := 2; c <= n; c++ {
		table[c] = float64(c) * math.Log(float64(c))
	}
	return table
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

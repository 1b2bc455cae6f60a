package metric

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"slotscope/model"
)

// Curve is the test losses of probes of increasing capacity: the logarithm of their parameter count, or the depth of trees.
type Curve struct {
	Capacity []float64 `json:"capacity"` // increasing
	Loss     []float64 `json:"loss"`
	Baseline float64   `json:"baseline"` // loss without a probe, above 0
}

// explicitness is 1 if the smallest probe achieves the loss of the largest, and 0 for a straight line from the baseline.
//
//	E = 1 − 2 Σ_t ½(l_t + l_{t−1})(κ_t − κ_{t−1}) / ((κ_T − κ_1) l_base)            Eastwood et al. 2023, eq. 4
//
// l is the running minimum of the loss minus its overall minimum. It is undefined for fewer than two capacities.
func (c Curve) explicitness() model.Score {
	last := len(c.Capacity) - 1
	if last < 1 || len(c.Loss) != len(c.Capacity) || !(c.Capacity[last] > c.Capacity[0]) || !(c.Baseline > 0) {
		return model.Undefined()
	}
	least := make([]float64, last+1)
	low := math.Inf(1)
	for t, l := range c.Loss {
		low = min(low, l)
		least[t] = low
	}
	area := 0.0
	for t := 1; t <= last; t++ {
		area += (least[t] + least[t-1] - 2*low) / 2 * (c.Capacity[t] - c.Capacity[t-1])
	}
	return model.Score(1 - 2*area/((c.Capacity[last]-c.Capacity[0])*c.Baseline))
}

// capacityDepths are the tree depths at which DCI-ES is measured.
var capacityDepths = []int{1, 2, 4, 8, 16, 32}

const (
	capacityTrees = 30
	chanceTrees   = 10 // trees of forests for shuffled factors
)

// depthLosses is a forest's test error at each depth. Every tree is grown once and evaluated at all depths, because the split of a node
// does not depend on the maximum depth.
func (w *world) depthLosses(ctx context.Context, y labels, trees int, rng *rand.Rand) ([]float64, error) {
	train, test := thirds(w.n)
	f := forest{y: y, train: train}
	s := &sample{y: y, weight: make([]int32, w.n), xlogx: xlogx(len(train))}
	v := w.forestView(s)
	p := v.features()
	g := &grower{sample: s, view: v, order: make([]int32, p), counts: make([]int32, y.k), importance: make([]float64, p),
		tries: max(1, int(math.Sqrt(float64(p)))), depth: capacityDepths[len(capacityDepths)-1], every: true, rng: rng}
	votes := make([][]float64, len(capacityDepths))
	for d := range votes {
		votes[d] = make([]float64, len(test)*y.k)
	}
	for range trees {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("explicitness by capacity: %w", err)
		}
		f.bootstrap(s.weight, rng)
		g.grow()
		for d, depth := range capacityDepths {
			for at, row := range test {
				to := votes[d][at*y.k:]
				for k, share := range g.sharesAt(row, depth) {
					to[k] += share
				}
			}
		}
	}
	losses := make([]float64, len(votes))
	for d, v := range votes {
		losses[d] = 1 - voted(v, y, test)
	}
	return losses, nil
}

// voted is the share of rows whose highest vote is their label.
func voted(votes []float64, y labels, rows []int) float64 {
	right := 0
	for at, row := range rows {
		best := 0
		for k, v := range votes[at*y.k : (at+1)*y.k] {
			if v > votes[at*y.k+best] {
				best = k
			}
		}
		if int32(best) == y.of[row] {
			right++
		}
	}
	return float64(right) / float64(len(rows))
}

// forestView is the input of the trees: one-hot codes, or numbers.
func (w *world) forestView(s *sample) view {
	if w.discrete() {
		return newHotView(oneHot(w.codes), s)
	}
	return newNumberView(w.values, byValue(w.values), s)
}

// depthCurve is the losses for a factor of K values as a curve; guessing has a loss of 1 − 1/K.
func depthCurve(losses []float64, k int) Curve {
	c := Curve{Loss: losses, Baseline: 1 - 1/float64(k)}
	for _, d := range capacityDepths {
		c.Capacity = append(c.Capacity, float64(d))
	}
	return c
}

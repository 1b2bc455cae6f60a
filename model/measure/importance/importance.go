// Package importance estimates how much each input explains of a number: the main effects of functional ANOVA under a regression forest,
// with their uncertainty over bootstrap samples.
package importance

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Input is the share of variance that one input explains.
type Input struct {
	Value     float64 // median over bootstrap samples
	Low, High float64 // 2.5th and 97.5th percentile over them
}

const (
	samples = 40 // bootstrap samples
	trees   = 15 // per forest
	depth   = 8  // maximum splits from root to leaf
	least   = 3  // minimum rows of a leaf
	enough  = 8  // minimum number of rows for a result
	values  = 12 // number of quantiles of an input at which its effect is evaluated
	others  = 60 // maximum number of rows to average over
)

// Of returns, for each input of x by row, the share of the variance of y that it explains alone: how much a forest's mean prediction varies
// with it, averaged over the other inputs. The shares sum to 1 except for interactions. Rows of one group are resampled together, because
// seeds of one setting carry little more information than a single seed. ok is false if there are too few rows, or y is constant.
//
//	V_j = Var_v( mean_i f(x_i with x_ij = v) ) / Var_i f(x_i)      Hutter, Hoos and Leyton-Brown (2014), unary effects
//
// An irrelevant input gets slightly more than 0; compare with an input that is known to be random, such as the seed. The result is
// deterministic.
func Of(x [][]float64, y []float64, group []int, seed uint64) (inputs []Input, ok bool) {
	if len(y) < enough || stat.Variance(y, nil) == 0 {
		return nil, false
	}
	var members [][]int
	at := map[int]int{}
	for row, g := range group {
		i, known := at[g]
		if !known {
			i = len(members)
			at[g], members = i, append(members, nil)
		}
		members[i] = append(members[i], row)
	}
	all := make([][]float64, len(x[0])) // by input, one value per sample
	for s := range uint64(samples) {
		f := forest{x: x, y: y, rng: rand.New(rand.NewPCG(seed, s))}
		for range members {
			f.rows = append(f.rows, members[f.rng.IntN(len(members))]...)
		}
		for j, v := range f.effects() {
			if !math.IsNaN(v) {
				all[j] = append(all[j], v)
			}
		}
	}
	for _, shares := range all {
		if len(shares) < samples/2 {
			return nil, false
		}
		slices.Sort(shares)
		at := func(p float64) float64 { return stat.Quantile(p, stat.LinInterp, shares, nil) }
		inputs = append(inputs, Input{at(0.5), at(0.025), at(0.975)})
	}
	return inputs, true
}

// forest is trained on rows, which may repeat.
type forest struct {
	x    [][]float64
	y    []float64
	rows []int
	rng  *rand.Rand
}

// effects grows the forest and returns V_j of each input; NaN if the forest predicts the same for every row.
func (f forest) effects() []float64 {
	var grown []*node
	for range trees {
		bag := make([]int, len(f.rows))
		for i := range bag {
			bag[i] = f.rows[f.rng.IntN(len(f.rows))]
		}
		grown = append(grown, f.grow(bag, 0))
	}
	predict := func(row, replaced int, by float64) (mean float64) {
		for _, root := range grown {
			mean += root.value(f.x[row], replaced, by) / trees
		}
		return mean
	}
	var whole []float64
	for _, row := range f.rows {
		whole = append(whole, predict(row, -1, 0))
	}
	shares, total := make([]float64, len(f.x[0])), stat.Variance(whole, nil)
	background := f.some()
	for j := range shares {
		var means []float64
		for _, v := range f.typical(j) {
			mean := 0.0
			for _, row := range background {
				mean += predict(row, j, v) / float64(len(background))
			}
			means = append(means, mean)
		}
		shares[j] = stat.PopVariance(means, nil) / total // NaN for 0/0
	}
	return shares
}

// some selects rows to average over.
func (f forest) some() []int {
	if len(f.rows) <= others {
		return f.rows
	}
	rows := make([]int, others)
	for i := range rows {
		rows[i] = f.rows[f.rng.IntN(len(f.rows))]
	}
	return rows
}

// typical returns quantiles of an input at equal steps.
func (f forest) typical(j int) []float64 {
	var all []float64
	for _, row := range f.rows {
		all = append(all, f.x[row][j])
	}
	slices.Sort(all)
	out := make([]float64, values)
	for i := range out {
		out[i] = all[(2*i+1)*len(all)/(2*values)]
	}
	return out
}

func square(v float64) float64 { return v * v }

// node is a split, or a leaf if left is nil.
type node struct {
	input       int
	threshold   float64
	mean        float64
	left, right *node
}

// value is the tree's prediction for a row with one input replaced; −1 replaces none.
func (n *node) value(row []float64, replaced int, by float64) float64 {
	for n.left != nil {
		v := row[n.input]
		if n.input == replaced {
			v = by
		}
		if v <= n.threshold {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n.mean
}

// grow grows a tree on rows, trying two thirds of the inputs at each split.
func (f forest) grow(rows []int, level int) *node {
	sum := 0.0
	for _, row := range rows {
		sum += f.y[row]
	}
	n := &node{mean: sum / float64(len(rows))}
	if level == depth || len(rows) < 2*least {
		return n
	}
	best, order := 0.0, f.rng.Perm(len(f.x[0]))
	for seen, j := range order {
		if seen >= (2*len(order)+2)/3 && best > 0 {
			break
		}
		if gain, threshold := f.cut(rows, j); gain > best {
			best, n.input, n.threshold = gain, j, threshold
		}
	}
	if best == 0 {
		return n
	}
	slices.SortFunc(rows, func(a, b int) int { return compare(f.x[a][n.input], f.x[b][n.input]) })
	at := 0
	for f.x[rows[at]][n.input] <= n.threshold {
		at++
	}
	n.left, n.right = f.grow(slices.Clone(rows[:at]), level+1), f.grow(slices.Clone(rows[at:]), level+1)
	return n
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// cut finds the threshold of an input that reduces the sum of squares most, and the reduction; 0 if none.
func (f forest) cut(rows []int, j int) (gain, threshold float64) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b int) int { return compare(f.x[a][j], f.x[b][j]) })
	total := 0.0
	for _, row := range sorted {
		total += f.y[row]
	}
	n, sum := float64(len(sorted)), 0.0
	for i, row := range sorted[:len(sorted)-1] {
		sum += f.y[row]
		k := float64(i + 1)
		v, next := f.x[row][j], f.x[sorted[i+1]][j]
		if v == next || i+1 < least || len(sorted)-i-1 < least {
			continue
		}
		// Σ(y − ȳ)² falls by k(n − k)/n · (ȳ_left − ȳ_right)²
		if g := k * (n - k) / n * square(sum/k-(total-sum)/(n-k)); g > gain+1e-12*math.Abs(total) {
			gain, threshold = g, v+(next-v)/2
		}
	}
	return gain, threshold
}

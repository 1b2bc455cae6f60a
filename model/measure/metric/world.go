package metric

import (
	"math"
	"slices"
)

const (
	histogramBins = 20   // of a numeric latent, as in disentanglement_lib
	activeStd     = 0.05 // minimum standard deviation of a latent that FactorVAE's score uses, as in disentanglement_lib
	crumb         = 1e-12
)

// world is the input of the scores of other papers: codes and factors renumbered over the values that occur, without factors of a
// single value. Numeric latents are binned to get codes.
type world struct {
	n       int
	codes   []labels    // [m] codes, or bins
	values  [][]float64 // [m][n] numbers; nil for codes
	factors []labels    // [F] with at least two values
	kept    []int       // [F] their indices in the table
	varying []bool      // [m] max > min
	active  []bool      // [m] latents that FactorVAE's score uses
}

func newWorld(t Table) *world {
	w := &world{n: t.rows(), values: t.Values}
	factors := labelAll(t.Factors)
	w.kept = append([]int{}, kept(factors)...)
	for _, i := range w.kept {
		w.factors = append(w.factors, factors[i])
	}
	for _, c := range t.Codes {
		w.codes = append(w.codes, label(c))
	}
	for _, x := range t.Values {
		w.codes = append(w.codes, binned(x))
	}
	w.look()
	return w
}

// look records which latents vary.
func (w *world) look() {
	w.varying, w.active = make([]bool, w.latents()), make([]bool, w.latents())
	for j := range w.varying {
		if w.discrete() {
			w.varying[j] = w.codes[j].k > 1
			w.active[j] = w.varying[j]
			continue
		}
		x := w.values[j]
		w.varying[j] = slices.Max(x) > slices.Min(x)
		w.active[j] = w.varying[j] && math.Sqrt(variance(x)) >= activeStd
	}
}

func (w *world) discrete() bool { return w.values == nil }

func (w *world) latents() int { return len(w.codes) }

// binned numbers the occupied bins of 20 bins of equal width; edge k belongs to bin k, the maximum to the last bin.
//
//	bin(x) = last k with lo + k(hi − lo)/20 ≤ x            disentanglement_lib, _histogram_discretize
func binned(x []float64) labels {
	lo, hi := slices.Min(x), slices.Max(x)
	bins := make([]int, len(x))
	if lo == hi {
		return label(bins)
	}
	width := (hi - lo) / histogramBins
	if math.IsInf(hi-lo, 0) {
		width = hi/histogramBins - lo/histogramBins
	}
	var edges [histogramBins]float64
	for k := range edges {
		edges[k] = lo + float64(k)*width
	}
	for r, v := range x {
		at, found := slices.BinarySearch(edges[:], v)
		if !found {
			at--
		}
		bins[r] = at
	}
	return label(bins)
}

// shuffled is the world with the rows of all factors permuted: the chance level for the same latents.
func (w *world) shuffled(order []int) *world {
	out := *w
	out.factors = make([]labels, len(w.factors))
	for i, s := range w.factors {
		out.factors[i] = s.take(order)
	}
	return &out
}

// take is the world of some of its rows; factors with a single remaining value are dropped.
func (w *world) take(rows []int) *world {
	out := &world{n: len(rows)}
	for i, s := range w.factors {
		if s = s.take(rows).compact(); s.k > 1 {
			out.factors, out.kept = append(out.factors, s), append(out.kept, w.kept[i])
		}
	}
	for _, c := range w.codes {
		out.codes = append(out.codes, c.take(rows).compact())
	}
	for _, x := range w.values {
		out.values = append(out.values, pick(x, rows))
	}
	out.look()
	return out
}

// compact renumbers the labels that occur.
func (l labels) compact() labels {
	place, k := make([]int32, l.k), 0
	for v, c := range l.counts() {
		if c > 0 {
			place[v] = int32(k)
			k++
		}
	}
	of := make([]int32, len(l.of))
	for r, v := range l.of {
		of[r] = place[v]
	}
	return labels{of, k}
}

// most is the most frequent label, or the lowest of equally frequent ones.
func (l labels) most() int32 {
	best, counts := 0, l.counts()
	for v, c := range counts {
		if c > counts[best] {
			best = v
		}
	}
	return int32(best)
}

func pick[T any](x []T, rows []int) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = x[r]
	}
	return out
}

// thirds divides n rows in order: the first ⌊(2n+2)/3⌋ for training, the rest for testing.
func thirds(n int) (train, test []int) {
	rows := make([]int, n)
	for r := range rows {
		rows[r] = r
	}
	k := (2*n + 2) / 3
	return rows[:k], rows[k:]
}

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }

// variance is Σ(x − x̄)²/(n − 1); 0 for fewer than two values.
func variance(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	m, v := mean(x), 0.0
	for _, a := range x {
		v += (a - m) * (a - m)
	}
	return v / float64(len(x)-1)
}

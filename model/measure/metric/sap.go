package metric

import (
	"slices"

	"slotscope/model"
)

// sapMatrix is [F][m]: the test accuracy of predicting each factor from each latent alone, by lookup for codes and by linear machines
// for numbers.
func (w *world) sapMatrix(latents [][]float64) [][]float64 {
	train, test := thirds(w.n)
	out := make([][]float64, len(w.factors))
	for i := range out {
		out[i] = make([]float64, w.latents())
	}
	for j := range w.latents() {
		var column sapColumn
		if latents == nil {
			column = codeColumn{w.codes[j].take(train), w.codes[j].take(test)}
		} else {
			column = newNumberColumn(pick(latents[j], train), pick(latents[j], test))
		}
		for i, s := range w.factors {
			out[i][j] = column.accuracy(s.take(train), s.take(test))
		}
	}
	return out
}

// sapColumn is one latent that predicts factors from training rows on test rows.
type sapColumn interface {
	accuracy(y, test labels) float64
}

// sap is the mean difference between the accuracies of the two latents that predict a factor best.
//
//	SAP = mean_i ( A_i(1) − A_i(2) )            Kumar et al. 2018, section 3
//
// A single latent is compared with predicting the most frequent value.
func (w *world) sap(accuracy [][]float64) model.Score {
	train, test := thirds(w.n)
	gap := 0.0
	for i, row := range accuracy {
		first, second := topTwo(row)
		if len(row) == 1 {
			s := w.factors[i]
			second = shareOf(s.take(test), s.take(train).most())
			first, second = max(first, second), min(first, second)
		}
		gap += (first - second) / float64(len(accuracy))
	}
	return model.Score(gap)
}

// shareOf is the share of rows with a given label.
func shareOf(l labels, v int32) float64 {
	count := 0
	for _, u := range l.of {
		if u == v {
			count++
		}
	}
	return float64(count) / float64(len(l.of))
}

// codeColumn predicts the value k that is most over-represented among rows with the code.
//
//	argmax_k n(code, k)/n_k            ties: larger n_k, then lower k; a code never seen: the most frequent value
type codeColumn struct{ train, test labels }

func (c codeColumn) accuracy(y, test labels) float64 {
	counts, joint := y.counts(), make([]int, c.train.k*y.k)
	for r, code := range c.train.of {
		joint[int(code)*y.k+int(y.of[r])]++
	}
	most := y.most()
	table := make([]int32, c.train.k)
	for code := range table {
		table[code] = bestValue(joint[code*y.k:(code+1)*y.k], counts, most)
	}
	right := 0
	for r, code := range c.test.of {
		if table[code] == test.of[r] {
			right++
		}
	}
	return float64(right) / float64(len(test.of))
}

// bestValue maximizes n(code, k)/n_k in exact integer arithmetic.
func bestValue(joint, counts []int, most int32) int32 {
	if !slices.ContainsFunc(joint, func(c int) bool { return c > 0 }) {
		return most
	}
	best := -1
	for k, c := range counts {
		if c == 0 {
			continue
		}
		if best < 0 {
			best = k
			continue
		}
		challenger, holder := joint[k]*counts[best], joint[best]*c
		if challenger > holder || challenger == holder && c > counts[best] {
			best = k
		}
	}
	return int32(best)
}

// scaledByTraining scales every latent to mean 0 and deviation 1 over the training rows; latents constant there are unchanged.
func (w *world) scaledByTraining() [][]float64 {
	train, _ := thirds(w.n)
	out := make([][]float64, len(w.values))
	for j, x := range w.values {
		out[j] = scaledBy(x, train, false)
	}
	return out
}

// scaledBy subtracts the mean of the given rows and divides by their population deviation. A column constant on these rows is
// unchanged, or only centred.
func scaledBy(x []float64, rows []int, centre bool) []float64 {
	seen := pick(x, rows)
	shift, scale := mean(seen), populationStd(seen)
	if slices.Min(seen) == slices.Max(seen) {
		if !centre {
			return x
		}
		shift, scale = seen[0], 1
	}
	out := make([]float64, len(x))
	for r, v := range x {
		out[r] = (v - shift) / scale
	}
	return out
}

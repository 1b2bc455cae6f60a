package metric

import (
	"math"
	"slices"
)

// gateDeviations is how many standard deviations above chance a corrected information must be to count.
const gateDeviations = 6

// information is the shared input of the scores based on mutual information. Matrices are [F][m], in nats.
type information struct {
	n                  int
	plugin, mm, chance [][]float64 // plug-in, Miller-Madow, mean over permutations of the rows
	h, hMM             []float64   // [F] entropy of the factors
	latent             []float64   // [m] plug-in entropy of codes or bins
	varying            []bool
}

func (w *world) information() information {
	v := information{n: w.n, varying: w.varying}
	for _, c := range w.codes {
		v.latent = append(v.latent, c.entropy())
	}
	for _, s := range w.factors {
		v.h = append(v.h, s.entropy())
		v.hMM = append(v.hMM, s.entropy()+float64(occupied(s.counts())-1)/float64(2*w.n))
		var plugin, mm, chance []float64
		for _, c := range w.codes {
			i, corrected := pairInformation(s, c)
			plugin, mm, chance = append(plugin, i), append(mm, corrected), append(chance, expectedInformation(s, c))
		}
		v.plugin, v.mm, v.chance = append(v.plugin, plugin), append(v.mm, mm), append(v.chance, chance)
	}
	return v
}

func occupied(counts []int) (cells int) {
	for _, c := range counts {
		if c > 0 {
			cells++
		}
	}
	return cells
}

// pairInformation is the mutual information of two columns, plug-in and with the Miller–Madow correction.
//
//	I^MM = I + (K_a + K_b − K_ab − 1)/2n            K: occupied cells
//
// Values up to 1e-12, and those of a constant column, are exactly 0.
func pairInformation(a, b labels) (plugin, corrected float64) {
	ka, kb := occupied(a.counts()), occupied(b.counts())
	if ka < 2 || kb < 2 {
		return 0, 0
	}
	cells := jointCounts(a, b)
	plugin = a.entropy() + b.entropy() - Entropy(cells)
	corrected = plugin + float64(ka+kb-len(cells)-1)/float64(2*len(a.of))
	if plugin <= crumb {
		plugin = 0
	}
	if corrected <= crumb {
		corrected = 0
	}
	return plugin, corrected
}

// jointCounts is the occupied cells of the contingency table of two columns.
func jointCounts(a, b labels) []int {
	if a.k*b.k <= 8*len(a.of)+1<<16 {
		cells := make([]int, a.k*b.k)
		for r, v := range a.of {
			cells[int(v)*b.k+int(b.of[r])]++
		}
		return slices.DeleteFunc(cells, func(c int) bool { return c == 0 })
	}
	keys := make([]uint64, len(a.of))
	for r, v := range a.of {
		keys[r] = uint64(v)<<32 | uint64(b.of[r])
	}
	slices.Sort(keys)
	var cells []int
	for start := 0; start < len(keys); {
		end := start
		for end < len(keys) && keys[end] == keys[start] {
			end++
		}
		cells = append(cells, end-start)
		start = end
	}
	return cells
}

// expectedInformation is the exact mean of the plug-in information over all permutations of one column.
//
//	E[I] = Σ_ab Σ_k (k/n) ln(nk/ab) P(k)            P hypergeometric; Vinh, Epps and Bailey 2010
//
// It depends only on the two margins. Cells with the same margins are computed once.
func expectedInformation(s, z labels) float64 {
	n, total := len(s.of), 0.0
	lf, bs := logFactorials(n), tally(z.counts())
	for _, a := range tally(s.counts()) {
		for _, b := range bs {
			total += float64(a.times*b.times) * expectedCell(n, a.count, b.count, lf)
		}
	}
	return max(0, total)
}

// expectedCell is the mean of (k/n) ln(nk/ab) for a cell with margins a and b.
func expectedCell(n, a, b int, lf []float64) float64 {
	fixed := lf[a] + lf[b] + lf[n-a] + lf[n-b] - lf[n]
	scale, cell := float64(n)/(float64(a)*float64(b)), 0.0
	for k := max(1, a+b-n); k <= min(a, b); k++ {
		p := math.Exp(fixed - lf[k] - lf[a-k] - lf[b-k] - lf[n-a-b+k])
		cell += float64(k) / float64(n) * math.Log(float64(k)*scale) * p
	}
	return cell
}

// margin is a count and the number of labels that have it.
type margin struct{ count, times int }

// tally counts how often each count above 0 occurs, in ascending order.
func tally(counts []int) (margins []margin) {
	for _, c := range slices.Sorted(slices.Values(counts)) {
		if last := len(margins) - 1; last >= 0 && margins[last].count == c {
			margins[last].times++
		} else if c > 0 {
			margins = append(margins, margin{c, 1})
		}
	}
	return margins
}

// logFactorials is ln k! for k from 0 to n.
func logFactorials(n int) []float64 {
	lf := make([]float64, n+1)
	for k := range lf {
		lf[k], _ = math.Lgamma(float64(k + 1))
	}
	return lf
}

// gated is information above its bias; 0 unless it exceeds the bias by more than six standard deviations of chance.
//
//	c = I − bias counts where c > 6 √(bias/n)            2nI is about χ² under independence
func gated(i, bias float64, n int) float64 {
	c := i - bias
	if c > gateDeviations*math.Sqrt(max(bias, 0)/float64(n))+crumb {
		return c
	}
	return 0
}

// topTwo is the largest and the second largest of x; the second of a single value is 0.
func topTwo(x []float64) (first, second float64) {
	if len(x) == 1 {
		return x[0], 0
	}
	first, second = math.Inf(-1), math.Inf(-1)
	for _, v := range x {
		switch {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	return first, second
}

package metric

import (
	"math"
	"slices"
)

// irs is interventional robustness: how little a latent varies while its own factor is fixed. Latents are numbers.
//
//	M_id = 1 − mean_v Q(|z_d − mean_v z_d|) / T_d,  T_d = max |z_d − z̄_d|            Suter et al. 2019
//	IRS  = Σ_d T_d max_i M_id / Σ_d T_d
//
// Q is the given quantile; 1 is the maximum, as in the paper. The matrix is [F][varying latents]. Without varying latents the score is 0.
func (w *world) irs(quantile float64) (score float64, matrix [][]float64) {
	matrix = make([][]float64, len(w.factors))
	for i := range matrix {
		matrix[i] = []float64{}
	}
	weights := 0.0
	for j, x := range w.values {
		if !w.varying[j] {
			continue
		}
		top := furthest(x, 1)
		best := math.Inf(-1)
		for i, s := range w.factors {
			moved, values := 0.0, byLabel(s)
			for _, rows := range values {
				own := make([]float64, len(rows))
				for at, r := range rows {
					own[at] = x[r]
				}
				moved += furthest(own, quantile) / float64(len(values))
			}
			matrix[i] = append(matrix[i], 1-moved/top)
			best = max(best, 1-moved/top)
		}
		score += top * best
		weights += top
	}
	if weights == 0 {
		return 0, matrix
	}
	return score / weights, matrix
}

// furthest is a quantile of the distances from the mean, interpolated linearly.
func furthest(x []float64, quantile float64) float64 {
	centre, d := mean(x), make([]float64, len(x))
	for i, v := range x {
		d[i] = math.Abs(v - centre)
	}
	slices.Sort(d)
	at := quantile * float64(len(d)-1)
	low := int(at)
	if low+1 >= len(d) {
		return d[len(d)-1]
	}
	return d[low] + (at-float64(low))*(d[low+1]-d[low])
}

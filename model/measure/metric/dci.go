package metric

import (
	"math"

	"slotscope/model"
)

// disentanglement is D: whether each feature is important for one factor only.
//
//	D = Σ_c ρ_c (1 − H_F(R_c)),  ρ_c = Σ_i R_ci / Σ R            Eastwood & Williams 2018; entropy to the base F
//
// r is [p][F]. It is undefined for a single factor.
func disentanglement(r [][]float64) model.Score {
	if len(r[0]) < 2 {
		return model.Undefined()
	}
	score, total := 0.0, grand(r)
	for _, row := range r {
		rho := 1 / float64(len(r))
		if total > 0 {
			rho = sum(row) / total
		}
		score += rho * certainty(row)
	}
	return model.Score(score)
}

// completeness is C: whether each factor depends on one feature only.
//
//	C = Σ_i κ_i (1 − H_p(R_·i)),  κ_i = Σ_c R_ci / Σ R            Eastwood & Williams 2018; entropy to the base p
//
// If the features are the columns of one-hot codes, it cannot reach 1. It is undefined for a single feature.
func completeness(r [][]float64) model.Score {
	if len(r) < 2 {
		return model.Undefined()
	}
	return disentanglement(transposed(r))
}

// certainty is 1 − H(w + 1e-11) of weights normalized to sum to 1, with entropy to the base of their number.
func certainty(w []float64) float64 {
	const least = 1e-11
	total, h := 0.0, 0.0
	for _, v := range w {
		total += v + least
	}
	for _, v := range w {
		p := (v + least) / total
		h -= p * math.Log(p)
	}
	return max(0, 1-h/math.Log(float64(len(w)))) // rounding may exceed 1
}

func grand(r [][]float64) float64 {
	total := 0.0
	for _, row := range r {
		total += sum(row)
	}
	return total
}

func transposed(r [][]float64) [][]float64 {
	out := make([][]float64, len(r[0]))
	for i := range out {
		out[i] = make([]float64, len(r))
		for c := range r {
			out[i][c] = r[c][i]
		}
	}
	return out
}

// slotSum adds up the importances [p][F] of each slot's columns: [m][F].
func slotSum(r [][]float64, slots []labels) [][]float64 {
	out, column := make([][]float64, len(slots)), 0
	for j, s := range slots {
		out[j] = make([]float64, len(r[0]))
		for range s.k {
			for i, v := range r[column] {
				out[j][i] += v
			}
			column++
		}
	}
	return out
}

// scoreDCI computes the scores from importances [p][F'] and accuracies [F'] of the kept factors; bySlot are the importances to report.
func scoreDCI(r, bySlot [][]float64, accuracy []float64, kept []int, factors int) model.DCIScore {
	s := noDCI()
	if len(kept) == 0 {
		return s
	}
	s.D, s.C = disentanglement(r), completeness(r)
	s.I = model.Score(sum(accuracy) / float64(len(accuracy)))
	s.Accuracy = undefined(factors)
	for n, i := range kept {
		s.Accuracy[i] = model.Score(accuracy[n])
	}
	for _, row := range bySlot {
		wide := undefined(factors)
		for n, i := range kept {
			wide[i] = model.Score(row[n])
		}
		s.Importance = append(s.Importance, wide)
	}
	return s
}

func noDCI() model.DCIScore {
	return model.DCIScore{D: model.Undefined(), I: model.Undefined(), C: model.Undefined()}
}

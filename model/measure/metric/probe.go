package metric

import (
	"cmp"
	"context"
	"math"
	"slices"
)

const (
	probeIterations = 2000 // maximum iterations of L-BFGS
	probeGradient   = 1e-6 // largest component at the optimum; scikit-learn's default, 1e-4, changes scores by less than 1e-6
)

// probe is a linear classifier with an L2 penalty (C = 1), fitted to its optimum.
//
//	min ½|W|² + Σ_r CE_r            the intercept is not penalized; two classes share one weight vector
type probe struct {
	classes []int32   // [K'] labels seen in training
	columns []int32   // [p] index of each design column among those seen in training; −1 for the others
	w       []float64 // [p'+1, K' or 1], the intercept last
}

// fitProbe trains a probe on the rows of a design.
func fitProbe(ctx context.Context, x design, y labels, iterations int, gradient float64) (probe, error) {
	p := probe{}
	for v, c := range y.counts() {
		if c > 0 {
			p.classes = append(p.classes, int32(v))
		}
	}
	if len(p.classes) < 2 {
		return p, nil
	}
	p.columns, x = x.seen()
	k := outputs(len(p.classes))
	f := probeFit{x: x, y: y.compact(), delta: make([]float64, k)}
	p.w = make([]float64, (x.p+1)*k)
	return p, (&descent{evaluate: f.evaluate}).minimize(ctx, p.w, iterations, gradient)
}

// seen drops the columns of a one-hot design that no row uses, because their weights stay 0.
func (d design) seen() ([]int32, design) {
	if d.hot == nil {
		return nil, d
	}
	columns, out := make([]int32, d.p), d
	for _, c := range d.hot {
		columns[c] = 1
	}
	out.p = 0
	for c, there := range columns {
		columns[c] = -1
		if there == 1 {
			columns[c] = int32(out.p)
			out.p++
		}
	}
	out.hot = make([]int32, len(d.hot))
	for at, c := range d.hot {
		out.hot[at] = columns[c]
	}
	return columns, out
}

// outputs is the number of logits per row: one per class, or one for two classes.
func outputs(classes int) int {
	if classes == 2 {
		return 1
	}
	return classes
}

// logits are the logits of one row of a design that may differ from the training design, [K' or 1].
func (p probe) logits(dst []float64, x design, row int) {
	if x.hot == nil {
		x.logits(dst, p.w, row)
		return
	}
	k := len(dst)
	copy(dst, p.w[len(p.w)-k:])
	for _, c := range x.hot[row*x.width : (row+1)*x.width] {
		if at := int(p.columns[c]); at >= 0 {
			for v, a := range p.w[at*k : at*k+k] {
				dst[v] += a
			}
		}
	}
}

// shares are the class probabilities of every row, [n][K'].
func (p probe) shares(x design) [][]float64 {
	out := make([][]float64, x.n)
	for r := range out {
		out[r] = make([]float64, len(p.classes))
		if len(p.classes) == 2 {
			p.logits(out[r][1:], x, r)
			out[r][1] = 1 / (1 + math.Exp(-out[r][1]))
			out[r][0] = 1 - out[r][1]
			continue
		}
		p.logits(out[r], x, r)
		softmax(out[r])
	}
	return out
}

// predicts are the predicted labels of all rows.
func (p probe) predicts(x design) []int32 {
	out := make([]int32, x.n)
	if len(p.classes) < 2 {
		for r := range out {
			out[r] = p.classes[0]
		}
		return out
	}
	logits := make([]float64, outputs(len(p.classes)))
	for r := range out {
		p.logits(logits, x, r)
		best := 0
		for v, l := range logits {
			if l > logits[best] {
				best = v
			}
		}
		if len(logits) == 1 && logits[0] > 0 {
			best = 1
		}
		out[r] = p.classes[best]
	}
	return out
}

// probeFit is the loss function of a probe.
type probeFit struct {
	x     design
	y     labels
	delta []float64 // [K' or 1] scratch
}

// evaluate returns the loss at weights w and stores its gradient.
func (f *probeFit) evaluate(w, grad []float64) float64 {
	penalized := f.x.p * len(f.delta)
	copy(grad, w)
	clear(grad[penalized:])
	loss := dot(w[:penalized], w[:penalized]) / 2
	for r := range f.x.n {
		f.x.logits(f.delta, w, r)
		loss += f.errorOf(f.y.of[r])
		f.x.spread(grad, f.delta, r)
	}
	return loss
}

// errorOf replaces the logits of a row by their gradient, and returns the row's cross-entropy.
func (f *probeFit) errorOf(v int32) float64 {
	if len(f.delta) == 1 {
		t := f.delta[0]
		if v == 1 {
			t = -t // CE = ln(1 + e^t)
		}
		share := 1 / (1 + math.Exp(-t))
		f.delta[0] = share
		if v == 1 {
			f.delta[0] = -share
		}
		return max(t, 0) + math.Log1p(math.Exp(-math.Abs(t)))
	}
	top := f.delta[0] // slices.Max also checks for NaN, which takes a sixth of this function's time
	for _, l := range f.delta {
		if l > top {
			top = l
		}
	}
	own, total := f.delta[v]-top, 0.0
	for i, l := range f.delta {
		f.delta[i] = math.Exp(l - top)
		total += f.delta[i]
	}
	for i := range f.delta {
		f.delta[i] /= total
	}
	f.delta[v]--
	return math.Log(total) - own
}

// probeDesign is the one-hot codes of every latent, or the numbers standardized by the given rows.
func (w *world) probeDesign(rows []int) design {
	if w.discrete() {
		return oneHot(w.codes)
	}
	return standardDesign(w.values, rows)
}

func standardDesign(values [][]float64, rows []int) design {
	columns := make([][]float64, len(values))
	for j, x := range values {
		columns[j] = scaledBy(x, rows, true)
	}
	return dense(columns)
}

// rankedScores ranks the rows of one class against the others by a score, for areas under ROC curves.
type rankedScores struct {
	order []int32 // rows sorted by score
	tied  []bool  // equals the score of the previous row
	of    []bool  // [n] row belongs to the class
}

// rankScores sorts the rows by score rounded to 12 digits.
func rankScores(score []float64, y labels, class int32) rankedScores {
	rounded := make([]float64, len(score))
	for r, v := range score {
		rounded[r] = math.Round(v*1e12) / 1e12
	}
	s := rankedScores{order: make([]int32, len(score)), tied: make([]bool, len(score)), of: make([]bool, len(score))}
	for r := range s.order {
		s.order[r], s.of[r] = int32(r), y.of[r] == class
	}
	slices.SortFunc(s.order, func(a, b int32) int { return cmp.Compare(rounded[a], rounded[b]) })
	for i := 1; i < len(s.order); i++ {
		s.tied[i] = rounded[s.order[i]] == rounded[s.order[i-1]]
	}
	return s
}

// area is the area under the ROC curve with weighted rows, ties counting half; ok is false if either side is empty.
//
//	AUC = P(score of a row of the class > score of another) + ½ P(=)
func (s rankedScores) area(weight []int32) (auc float64, ok bool) {
	var below, inside, outside, above float64 // negatives below the tie, positives and negatives in it, Σ
	positives, negatives := 0.0, 0.0
	flush := func() {
		above += inside * (below + outside/2)
		below += outside
		inside, outside = 0, 0
	}
	for i, r := range s.order {
		if !s.tied[i] {
			flush()
		}
		c := 1.0
		if weight != nil {
			c = float64(weight[r])
		}
		if s.of[r] {
			inside += c
			positives += c
		} else {
			outside += c
			negatives += c
		}
	}
	flush()
	if positives == 0 || negatives == 0 {
		return 0, false
	}
	return above / (positives * negatives), true
}

// macroArea is the mean area over the classes for which it is defined; ok is false if there is none.
func macroArea(classes []rankedScores, weight []int32) (auc float64, ok bool) {
	sum, count := 0.0, 0.0
	for _, c := range classes {
		if a, there := c.area(weight); there {
			sum += a
			count++
		}
	}
	return sum / count, count > 0
}

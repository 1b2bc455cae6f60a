package metric

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"
)

const (
	logisticIterations = 100  // of L-BFGS, like scikit-learn's max_iter
	logisticGradient   = 1e-4 // stopping tolerance of the largest component, like scikit-learn's tol
	logisticStore      = 10   // pairs stored by L-BFGS
	leastProbability   = 2.220446049250313e-16
)

// design is the input of a regression: n rows, p columns and an intercept as the last column. It is either one-hot, stored as column
// numbers, or dense.
type design struct {
	n, p   int
	hot    []int32   // [n, m] columns equal to 1; nil for a dense design
	width  int       // m
	values []float64 // [n, p]
}

// oneHot is the design with one column for every code that occurs in a slot.
func oneHot(slots []labels) design {
	d := design{n: len(slots[0].of), width: len(slots)}
	d.hot = make([]int32, d.n*d.width)
	for j, s := range slots {
		for r, c := range s.of {
			d.hot[r*d.width+j] = int32(d.p) + c
		}
		d.p += s.k
	}
	return d
}

// dense is the design of columns of numbers.
func dense(columns [][]float64) design {
	d := design{n: len(columns[0]), p: len(columns)}
	d.values = make([]float64, d.n*d.p)
	for j, c := range columns {
		for r, v := range c {
			d.values[r*d.p+j] = v
		}
	}
	return d
}

// take is the design of the given rows.
func (d design) take(rows []int) design {
	out := design{n: len(rows), p: d.p, width: d.width}
	for _, r := range rows {
		if d.hot != nil {
			out.hot = append(out.hot, d.hot[r*d.width:(r+1)*d.width]...)
		} else {
			out.values = append(out.values, d.values[r*d.p:(r+1)*d.p]...)
		}
	}
	return out
}

// logits are w·x + b of one row for every class; w is [p+1, K], the intercept last.
func (d design) logits(dst, w []float64, row int) {
	k := len(dst)
	copy(dst, w[d.p*k:])
	if d.hot != nil {
		for _, c := range d.hot[row*d.width : (row+1)*d.width] {
			for v, x := range w[int(c)*k : int(c)*k+k] {
				dst[v] += x
			}
		}
		return
	}
	for j, x := range d.values[row*d.p : (row+1)*d.p] {
		for v, a := range w[j*k : j*k+k] {
			dst[v] += x * a
		}
	}
}

// spread adds the gradient with respect to one row's logits to the gradient of the weights.
func (d design) spread(grad, delta []float64, row int) {
	k := len(delta)
	add := func(column int, x float64) {
		g := grad[column*k : column*k+k]
		for v, e := range delta {
			g[v] += x * e
		}
	}
	add(d.p, 1)
	if d.hot != nil {
		for _, c := range d.hot[row*d.width : (row+1)*d.width] {
			g := grad[int(c)*k : int(c)*k+k]
			for v, e := range delta {
				g[v] += e
			}
		}
		return
	}
	for j, x := range d.values[row*d.p : (row+1)*d.p] {
		add(j, x)
	}
}

// softmax replaces logits by probabilities.
func softmax(x []float64) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for i, v := range x {
		x[i] = math.Exp(v - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// logistic is a multinomial logistic regression without penalty, in which all classes have the same total weight.
//
//	min_W (1/n) Σ_r w_r CE_r            w_r = n / (K n_class(r))
type logistic struct {
	x      design
	y      labels
	weight []float64 // [K] w_r / n by class
	ctx    context.Context

	delta, grad []float64 // scratch: [K], and [p+1, K] of the last evaluation
	at          []float64 // weights of the last evaluation
	loss        float64
}

func newLogistic(ctx context.Context, x design, y labels) *logistic {
	l := &logistic{x: x, y: y, ctx: ctx, weight: make([]float64, y.k), delta: make([]float64, y.k)}
	present := 0
	for _, c := range y.counts() {
		if c > 0 {
			present++
		}
	}
	for v, c := range y.counts() {
		if c > 0 {
			l.weight[v] = 1 / (float64(present) * float64(c))
		}
	}
	size := (x.p + 1) * y.k
	l.grad, l.at = make([]float64, size), make([]float64, size)
	l.evaluate()
	return l
}

// evaluate computes loss and gradient at l.at.
func (l *logistic) evaluate() {
	clear(l.grad)
	l.loss = 0
	for r := range l.x.n {
		v := l.y.of[r]
		w := l.weight[v]
		l.x.logits(l.delta, l.at, r)
		softmax(l.delta)
		l.loss -= w * math.Log(max(l.delta[v], math.SmallestNonzeroFloat64))
		l.delta[v]--
		for i := range l.delta {
			l.delta[i] *= w
		}
		l.x.spread(l.grad, l.delta, r)
	}
}

// visit evaluates at w unless that was the last evaluation, because the optimizer requests loss and gradient separately.
func (l *logistic) visit(w []float64) {
	for i, v := range w {
		if l.at[i] != v {
			copy(l.at, w)
			l.evaluate()
			return
		}
	}
}

// fit returns the weights [p+1, K] at which L-BFGS stops, starting from 0, and its number of iterations.
func (l *logistic) fit() ([]float64, int, error) {
	problem := optimize.Problem{
		Func: func(w []float64) float64 { l.visit(w); return l.loss },
		Grad: func(g, w []float64) { l.visit(w); copy(g, l.grad) },
		Status: func() (optimize.Status, error) {
			if err := l.ctx.Err(); err != nil {
				return optimize.Failure, err
			}
			return optimize.NotTerminated, nil
		},
	}
	settings := &optimize.Settings{
		MajorIterations:   logisticIterations,
		GradientThreshold: logisticGradient,
		Converger:         optimize.NeverTerminate{},
		Concurrent:        1,
	}
	method := &optimize.LBFGS{Linesearcher: &optimize.MoreThuente{}, Store: logisticStore}
	result, err := optimize.Minimize(problem, make([]float64, len(l.at)), settings, method)
	if cause := l.ctx.Err(); cause != nil {
		return nil, 0, fmt.Errorf("logistic regression: %w", cause)
	}
	if result == nil || result.X == nil {
		return nil, 0, fmt.Errorf("logistic regression: %w", errors.Join(errors.New("the optimizer returned no weights"), err))
	}
	return result.X, result.MajorIterations, nil // a line search that fails by rounding still returns the best weights so far
}

// crossEntropy is the mean over rows of −ln p(class), unweighted, in nats; p is clamped to [2.2e-16, 1 − 2.2e-16].
func crossEntropy(x design, y labels, w []float64) float64 {
	sum, p := 0.0, make([]float64, y.k)
	for r, v := range y.of {
		x.logits(p, w, r)
		softmax(p)
		sum -= math.Log(min(max(p[v], leastProbability), 1-leastProbability))
	}
	return sum / float64(len(y.of))
}

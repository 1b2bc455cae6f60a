package metric

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	armijo       = 1e-4  // share of the predicted decrease that a step must achieve
	lossRounding = 1e-13 // relative rounding error of a loss; smaller changes are judged by the gradient only
	patience     = 30    // iterations without a smaller gradient before stopping, because rounding dominates
	stepHalves   = 40
)

// descent minimizes a smooth convex function by L-BFGS with step halving. gonum's line searches may not converge where the loss is flat
// within rounding, but the optimum must be exact.
type descent struct {
	evaluate func(x, gradient []float64) float64

	s, y [][]float64 // most recent differences of points and of gradients, newest last
}

// minimize starts at x and stores the best point in it. It stops when no component of the gradient exceeds tolerance, when rounding
// prevents further progress, or after the given number of iterations.
func (d *descent) minimize(ctx context.Context, x []float64, iterations int, tolerance float64) error {
	g, next, gNext := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	point := slices.Clone(x)
	f, least, idle := d.evaluate(point, g), math.Inf(1), 0
	for range iterations {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("linear probe: %w", context.Cause(ctx))
		}
		if size := largest(g); size < least {
			least, idle = size, 0
			copy(x, point)
		} else {
			idle++
		}
		if least <= tolerance || idle > patience {
			return nil
		}
		fNext, ok := d.step(point, g, next, gNext, f)
		if !ok {
			if len(d.s) == 0 {
				return nil
			}
			d.s, d.y = nil, nil // restart with steepest descent
			continue
		}
		d.remember(point, next, g, gNext)
		point, next, g, gNext, f = next, point, gNext, g, fNext
	}
	if largest(g) < least {
		copy(x, point)
	}
	return nil
}

// step tries successively shorter steps; ok is false if none reduces the loss.
func (d *descent) step(x, g, next, gNext []float64, f float64) (loss float64, ok bool) {
	direction := d.direction(g)
	slope := dot(direction, g)
	if !(slope < 0) {
		return f, false
	}
	t := 1.0
	if len(d.s) == 0 {
		t = min(1, 1/math.Sqrt(dot(g, g)))
	}
	for range stepHalves {
		for i, v := range x {
			next[i] = v + t*direction[i]
		}
		loss = d.evaluate(next, gNext)
		if loss <= f+armijo*t*slope+lossRounding*math.Abs(f) {
			return loss, true
		}
		t /= 2
	}
	return f, false
}

// direction is −H g by the two-loop recursion of L-BFGS.
func (d *descent) direction(g []float64) []float64 {
	q, alpha := slices.Clone(g), make([]float64, len(d.s))
	for i := len(d.s) - 1; i >= 0; i-- {
		alpha[i] = dot(d.s[i], q) / dot(d.s[i], d.y[i])
		addTo(q, -alpha[i], d.y[i])
	}
	scale := -1.0
	if last := len(d.s) - 1; last >= 0 {
		scale = -dot(d.s[last], d.y[last]) / dot(d.y[last], d.y[last])
	}
	for i := range q {
		q[i] *= scale
	}
	for i := range d.s {
		addTo(q, -alpha[i]-dot(d.y[i], q)/dot(d.s[i], d.y[i]), d.s[i])
	}
	return q
}

// remember stores a pair of differences if the curvature between the points is positive.
func (d *descent) remember(x, next, g, gNext []float64) {
	s, y := slices.Clone(next), slices.Clone(gNext)
	addTo(s, -1, x)
	addTo(y, -1, g)
	if !(dot(s, y) > 1e-14*dot(y, y)) {
		return
	}
	d.s, d.y = append(d.s, s), append(d.y, y)
	if len(d.s) > logisticStore {
		d.s, d.y = d.s[1:], d.y[1:]
	}
}

// dot is Σ x_i y_i.
func dot(x, y []float64) float64 { return floats.Dot(x, y) }

// addTo is dst += scale·x.
func addTo(dst []float64, scale float64, x []float64) { floats.AddScaled(dst, scale, x) }

func largest(x []float64) float64 {
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	return top
}

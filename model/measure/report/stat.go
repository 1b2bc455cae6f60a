package report

import (
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/stat/distuv"
)

// Summary is the mean of n values of one score with its 95% interval. With n < 2 there is no spread: SD, T, Half, Lo and Hi are NaN.
type Summary struct {
	N      int
	Mean   float64 // NaN for n = 0
	SD     float64 // with Bessel's correction
	T      float64 // t(0.975, n − 1)
	Half   float64 // half-width of the 95% interval
	Lo, Hi float64 // its ends
}

// Summarise computes the mean and Student-t interval of independent values, ignoring values that are not finite.
//
//	x̄ ± t(0.975, n−1)·s/√n      paper, “Confidence intervals and bold font criteria”
func Summarise(values []float64) Summary {
	nan := math.NaN()
	s := Summary{Mean: nan, SD: nan, T: nan, Half: nan, Lo: nan, Hi: nan}
	sum, low, high := 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			s.N++
			sum, low, high = sum+v, min(low, v), max(high, v)
		}
	}
	if s.N == 0 {
		return s
	}
	s.Mean = min(max(sum/float64(s.N), low), high) // avoids a spread from rounding when all values are equal
	if s.N < 2 {
		return s
	}
	squares := 0.0
	for _, v := range values {
		if finite(v) {
			squares += (v - s.Mean) * (v - s.Mean)
		}
	}
	s.SD = math.Sqrt(squares / float64(s.N-1))
	s.T = quantile(float64(s.N - 1))
	s.Half = s.T * s.SD / math.Sqrt(float64(s.N))
	s.Lo, s.Hi = s.Mean-s.Half, s.Mean+s.Half
	return s
}

// quantile is t(0.975, ν) of Student's distribution, cached for whole ν below 1,000 because curves need the same few many times.
func quantile(nu float64) float64 {
	if n := int(nu); nu >= 1 && nu < float64(len(quantiles)) && nu == float64(n) {
		if bits := quantiles[n].Load(); bits > 0 {
			return math.Float64frombits(bits)
		}
		t := studentT(nu)
		quantiles[n].Store(math.Float64bits(t))
		return t
	}
	return studentT(nu)
}

func studentT(nu float64) float64 { return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.Quantile(0.975) }

var quantiles [1000]atomic.Uint64 // of whole ν, as bits; 0 before the first use

// Interval reports whether the summary has an interval, which takes two values.
func (s Summary) Interval() bool { return s.N >= 2 }

// Difference is the difference between the means of two independent groups with Welch's 95% interval; the interval is missing
// if either group has fewer than two values.
//
//	(x̄ − ȳ) ± t(0.975, ν)·√(s²ₓ/n + s²ᵧ/m),  ν by Welch and Satterthwaite
func Difference(x, y Summary) Summary {
	d := Summary{N: min(x.N, y.N), Mean: x.Mean - y.Mean, SD: math.NaN(), T: math.NaN(), Half: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	if !x.Interval() || !y.Interval() {
		return d
	}
	a, b := x.SD*x.SD/float64(x.N), y.SD*y.SD/float64(y.N)
	d.SD = math.Sqrt(a + b)
	if d.SD == 0 {
		d.T, d.Half, d.Lo, d.Hi = math.NaN(), 0, d.Mean, d.Mean
		return d
	}
	nu := (a + b) * (a + b) / (a*a/float64(x.N-1) + b*b/float64(y.N-1))
	d.T = quantile(nu)
	d.Half = d.T * d.SD
	d.Lo, d.Hi = d.Mean-d.Half, d.Mean+d.Half
	return d
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

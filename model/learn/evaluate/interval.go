package evaluate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"slotscope/model"
)

// meanInterval returns the mean with its 95% interval.
//
//	x̄ ± t(0.975, n−1) · s/√n            s with Bessel's correction
func meanInterval(x []float64) model.Interval {
	if len(x) == 0 {
		return model.Interval{Value: model.Undefined(), Low: model.Undefined(), High: model.Undefined()}
	}
	mean, deviation := stat.MeanStdDev(x, nil)
	i := model.Interval{Value: model.Score(mean), Low: model.Undefined(), High: model.Undefined()}
	if len(x) > 1 {
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(x) - 1)}.Quantile(0.975) * deviation / math.Sqrt(float64(len(x)))
		i.Low, i.High = model.Score(mean-half), model.Score(mean+half)
	}
	return i
}

// share returns count/n with Wilson's 95% interval, which is also valid for shares near 0 and 1; undefined if n is 0.
//
//	( p + c/2 ± √(p(1−p)c + c²/4) ) / (1 + c)            c = 1.96²/n
func share(count, n int) model.Interval {
	if n == 0 {
		return meanInterval(nil)
	}
	const z = 1.959963984540054
	p, c := float64(count)/float64(n), z*z/float64(n)
	half := math.Sqrt(p*(1-p)*c + c*c/4)
	return model.Interval{Value: model.Score(p), Low: model.Score(max(0, (p+c/2-half)/(1+c))), High: model.Score(min(1, (p+c/2+half)/(1+c)))}
}

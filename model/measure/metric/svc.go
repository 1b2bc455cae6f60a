package metric

import (
	"math"
	"slices"
	"sort"
)

const (
	machineC     = 0.01 // of the linear machines, as in disentanglement_lib
	newtonSteps  = 200
	newtonHalves = 1e-12 // shortest step tried
)

// numberColumn predicts a factor from one number with liblinear's one-versus-rest machines, each at its exact optimum.
type numberColumn struct {
	x, test []float64 // centred on the training mean
	centre  float64
	order   []int32 // training rows sorted by x
}

func newNumberColumn(train, test []float64) numberColumn {
	c := numberColumn{centre: mean(train), x: slices.Clone(train), test: slices.Clone(test)}
	for _, column := range [][]float64{c.x, c.test} {
		for r := range column {
			column[r] -= c.centre
		}
	}
	c.order = byValue([][]float64{c.x})[0]
	return c
}

// accuracy trains a machine for every class: positives have weight n/(K n_k), negatives 1. For two classes, a single machine decides, with
// both sides weighted. A constant latent predicts the most frequent class.
func (c numberColumn) accuracy(y, test labels) float64 {
	counts := y.counts()
	var classes []int
	for k, n := range counts {
		if n > 0 {
			classes = append(classes, k)
		}
	}
	if len(classes) < 2 || slices.Min(c.x) == slices.Max(c.x) {
		return shareOf(test, y.most())
	}
	all, own := c.moments(y)
	weight := func(k int) float64 { return machineC * float64(len(c.x)) / float64(len(classes)*counts[k]) }
	machines := make([]line, len(classes))
	for at, k := range classes {
		machines[at] = machine{all: all, positive: own[k], cPositive: weight(k), cNegative: machineC, centre: c.centre}.optimum()
	}
	if len(classes) == 2 {
		low, high := classes[0], classes[1]
		one := machine{all: all, positive: own[high], cPositive: weight(high), cNegative: weight(low), centre: c.centre}.optimum()
		machines = []line{{}, one} // the higher class if w x + b > 0
	}
	right := 0
	for r, x := range c.test {
		best, most := 0, machines[0].at(x)
		for at := range machines {
			if v := machines[at].at(x); v > most {
				best, most = at, v
			}
		}
		if int32(classes[best]) == test.of[r] {
			right++
		}
	}
	return float64(right) / float64(len(c.test))
}

// moments are the cumulative sums of 1, x and x² over rows sorted by x: over all rows, and over each class.
func (c numberColumn) moments(y labels) (all moments, own []moments) {
	own = make([]moments, y.k)
	for _, r := range c.order {
		all.add(c.x[r])
		own[y.of[r]].add(c.x[r])
	}
	return all, own
}

// moments are points in ascending order, with cumulative sums.
type moments struct {
	x      []float64
	s1, s2 []float64 // sums of x and x² up to and including each point
}

func (m *moments) add(x float64) {
	s1, s2 := x, x*x
	if n := len(m.x); n > 0 {
		s1, s2 = s1+m.s1[n-1], s2+m.s2[n-1]
	}
	m.x, m.s1, m.s2 = append(m.x, x), append(m.s1, s1), append(m.s2, s2)
}

// sums are Σ 1, Σ x and Σ x² over some points.
type sums struct{ n, x, xx float64 }

func (s sums) minus(t sums) sums { return sums{s.n - t.n, s.x - t.x, s.xx - t.xx} }

// within sums the points with sign·(w x + b) < 1, which are contiguous because rounding preserves the order of w x + b.
func (m moments) within(l line, sign float64) sums {
	total := len(m.x)
	inside := func(x float64) bool { return sign*l.at(x) < 1 }
	rising := sign*l.w > 0
	at := sort.Search(total, func(i int) bool { return inside(m.x[i]) != rising })
	head := m.head(at)
	if rising {
		return head
	}
	return m.head(total).minus(head)
}

func (m moments) head(n int) sums {
	if n == 0 {
		return sums{}
	}
	return sums{float64(n), m.s1[n-1], m.s2[n-1]}
}

// line is w x + b.
type line struct{ w, b float64 }

func (l line) at(x float64) float64 { return l.w*x + l.b }

// machine is a linear machine of one number with squared hinge loss and a penalized intercept, as in liblinear.
//
//	min ½(w² + β²) + Σ c max(0, 1 − y (w x + β))²            β = b − w·centre for uncentred numbers
type machine struct {
	all, positive        moments
	cPositive, cNegative float64
	centre               float64
}

// optimum is found by Newton's method with step halving.
func (m machine) optimum() line {
	l := line{}
	best := m.cost(l)
	for range newtonSteps {
		d := m.step(l)
		s := 1.0
		next := line{l.w + d.w, l.b + d.b}
		for s > newtonHalves && !(m.cost(next) <= best) {
			s /= 2
			next = line{l.w + s*d.w, l.b + s*d.b}
		}
		now := m.cost(next)
		if math.IsNaN(now) || now > best {
			return l
		}
		l = next
		small := s*max(math.Abs(d.w), math.Abs(d.b)) <= 1e-12*max(1, math.Abs(l.w), math.Abs(l.b))
		if best-now <= 1e-15*max(1, best) && small {
			return l
		}
		best = now
	}
	return l
}

// support is the rows within the margin of a line: positives with w x + b < 1, negatives with w x + b > −1.
func (m machine) support(l line) (positive, negative sums) {
	return m.positive.within(l, 1), m.all.within(l, -1).minus(m.positive.within(l, -1))
}

func (m machine) cost(l line) float64 {
	p, n := m.support(l)
	beta := l.b - l.w*m.centre
	loss := func(s sums, rest float64, w float64) float64 { return rest*rest*s.n - 2*rest*w*s.x + w*w*s.xx }
	return 0.5*(l.w*l.w+beta*beta) + m.cPositive*loss(p, 1-l.b, l.w) + m.cNegative*loss(n, 1+l.b, -l.w)
}

// step solves H d = −g.
func (m machine) step(l line) line {
	p, n := m.support(l)
	mu, beta := m.centre, l.b-l.w*m.centre
	cp, cn := 2*m.cPositive, 2*m.cNegative
	gw := l.w - mu*beta - cp*((1-l.b)*p.x-l.w*p.xx) + cn*((1+l.b)*n.x+l.w*n.xx)
	gb := beta - cp*((1-l.b)*p.n-l.w*p.x) + cn*((1+l.b)*n.n+l.w*n.x)
	ww := 1 + mu*mu + cp*p.xx + cn*n.xx
	wb := -mu + cp*p.x + cn*n.x
	bb := 1 + cp*p.n + cn*n.n
	det := ww*bb - wb*wb
	return line{(wb*gb - bb*gw) / det, (wb*gw - ww*gb) / det}
}

func populationStd(x []float64) float64 {
	m, v := mean(x), 0.0
	for _, a := range x {
		v += (a - m) * (a - m)
	}
	return math.Sqrt(v / float64(len(x)))
}

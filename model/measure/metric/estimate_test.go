package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// rossByDefinition compares every pair of rows.
func rossByDefinition(s labels, x []float64) float64 {
	counts := s.counts()
	n, terms := 0.0, 0.0
	for r, v := range s.of {
		if counts[v] == 1 {
			continue
		}
		n++
		var own, all []float64
		for q, u := range s.of {
			if counts[u] == 1 {
				continue
			}
			all = append(all, math.Abs(x[q]-x[r]))
			if u == v && q != r {
				own = append(own, math.Abs(x[q]-x[r]))
			}
		}
		slices.Sort(own)
		k := min(neighbours, len(own))
		near := 0
		for _, d := range all {
			if d < own[k-1] {
				near++
			}
		}
		terms += mathext.Digamma(float64(k)) - mathext.Digamma(float64(counts[v])) - mathext.Digamma(float64(near))
	}
	return max(0, mathext.Digamma(n)+terms/n)
}

func TestRossAgainstItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, classes := range []int{1, 2, 5, 40} {
		column, x := make([]int, 120), make([]float64, 120)
		for r := range x {
			column[r] = rng.IntN(classes)
			x[r] = rng.NormFloat64() + float64(column[r]%3)
		}
		s := label(column)
		near(t, "I", ross(s, x), rossByDefinition(s, x), 1e-12)
	}
}

func TestRossOfSeparatedClassesIsTheirEntropy(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	column, x := make([]int, 4000), make([]float64, 4000)
	for r := range x {
		column[r] = r % 4
		x[r] = 100*float64(column[r]) + rng.NormFloat64()
	}
	near(t, "I", ross(label(column), x), math.Log(4), 2e-3)
}

func TestMutualByHand(t *testing.T) {
	s, z := label([]int{0, 0, 1, 1}), label([]int{7, 7, 7, 9})
	// p(0,7) = ½, p(1,7) = ¼, p(1,9) = ¼
	want := 0.5*math.Log(0.5/(0.5*0.75)) + 0.25*math.Log(0.25/(0.5*0.75)) + 0.25*math.Log(0.25/(0.5*0.25))
	near(t, "I", mutual(s, z), want, 1e-15)
	near(t, "I with itself", mutual(s, s), math.Log(2), 1e-15)
	near(t, "H", z.entropy(), -0.75*math.Log(0.75)-0.25*math.Log(0.25), 1e-15)
}

// TestLogisticGradient compares the gradient with finite differences of the loss, for one-hot and dense designs.
func TestLogisticGradient(t *testing.T) {
	table := paperTable(40)
	values := make([][]float64, 2)
	rng := rand.New(rand.NewPCG(7, 7))
	for j := range values {
		for range 40 {
			values[j] = append(values[j], rng.NormFloat64())
		}
	}
	for name, x := range map[string]design{"one-hot": oneHot(labelAll(table.Codes)), "dense": dense(values)} {
		l := newLogistic(t.Context(), x, label(table.Factors[4]))
		near(t, "loss at 0", l.loss, math.Log(float64(l.y.k)), 1e-12)
		for i := range l.at {
			l.at[i] = 0.3 * rng.NormFloat64()
		}
		l.evaluate()
		grad := slices.Clone(l.grad)
		for range 50 {
			i, h := rng.IntN(len(l.at)), 1e-5
			at := l.at[i]
			l.at[i] = at + h
			l.evaluate()
			up := l.loss
			l.at[i] = at - h
			l.evaluate()
			near(t, name, grad[i], (up-l.loss)/(2*h), 1e-8)
			l.at[i] = at
		}
	}
}

// TestLogisticOfNothing: with uninformative columns, balanced classes have a loss of ln K, whatever their frequencies.
func TestLogisticOfNothing(t *testing.T) {
	column := append(make([]int, 30), 1, 1, 2)
	s := label(column)
	x := oneHot([]labels{label(make([]int, len(column)))})
	w, _, err := newLogistic(t.Context(), x, s).fit()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "cross-entropy", crossEntropy(x, s, w), math.Log(3), 1e-6)
}

// TestViewsAgree grows forests on one-hot codes twice: as a hotView, and as numbers 0 and 1.
func TestViewsAgree(t *testing.T) {
	table := paperTable(300)
	for j := range table.Codes {
		for r := range table.Codes[j] {
			table.Codes[j][r] /= 100
		}
	}
	hot := oneHot(labelAll(table.Codes))
	columns := make([][]float64, hot.p)
	for c := range columns {
		columns[c] = make([]float64, hot.n)
	}
	for r := range hot.n {
		for _, c := range hot.hot[r*hot.width : (r+1)*hot.width] {
			columns[c][r] = 1
		}
	}
	sorted := byValue(columns)
	train, test := split(hot.n, 1)
	f := forest{y: label(table.Factors[4]), train: train, test: test, seed: 1, xlogx: xlogx(len(train))}
	var importance [2][]float64
	var accuracy [2]float64
	for n, look := range []func(*sample) view{
		func(s *sample) view { return newHotView(hot, s) },
		func(s *sample) view { return newNumberView(columns, sorted, s) },
	} {
		f.view = look
		c, err := f.grow(t.Context(), 0, 30)
		if err != nil {
			t.Fatal(err)
		}
		importance[n], accuracy[n] = f.verdict([]chunk{c})
	}
	near(t, "accuracy", accuracy[0], accuracy[1], 0.04)
	for c := range importance[0] {
		near(t, "importance", importance[0][c], importance[1][c], 0.01) // rounding decides between equal cuts
	}
}

// TestTreeByHand: the tree splits once, on the decisive feature, which gets all importance.
func TestTreeByHand(t *testing.T) {
	x := [][]float64{{5, 5, 5, 5, 5, 5}, {1, 2, 3, 10, 11, 12}}
	s := &sample{y: label([]int{0, 0, 0, 1, 1, 1}), weight: []int32{1, 1, 1, 1, 1, 1}, xlogx: xlogx(6)}
	g := &grower{sample: s, view: newNumberView(x, byValue(x), s), order: make([]int32, 2), counts: make([]int32, 2),
		importance: make([]float64, 2), tries: 1, rng: rand.New(rand.NewPCG(1, 1))}
	g.grow()
	if root := g.tree.nodes[0]; len(g.tree.nodes) != 3 || root.feature != 1 || root.threshold != 6.5 {
		t.Errorf("the tree is %+v", g.tree)
	}
	near(t, "importance", g.importance[1], 6*math.Log(2), 1e-12)
	near(t, "importance of a constant", g.importance[0], 0, 0)
	if p := g.shares(3); p[0] != 0 || p[1] != 1 {
		t.Errorf("row 3 has shares %v", p)
	}
}

func TestDCIByHand(t *testing.T) {
	near(t, "D of the identity", float64(disentanglement([][]float64{{1, 0}, {0, 1}})), 1, 1e-9)
	near(t, "C of the identity", float64(completeness([][]float64{{1, 0}, {0, 1}})), 1, 1e-9)
	near(t, "D of even importances", float64(disentanglement([][]float64{{0.5, 0.5}, {0.5, 0.5}})), 0, 1e-9)
	// ρ = (¾, ¼); the first row's entropy is H(⅔, ⅓) bits, the second's 0
	h := -(2.0/3*math.Log2(2.0/3) + 1.0/3*math.Log2(1.0/3))
	near(t, "D by hand", float64(disentanglement([][]float64{{1, 0.5}, {0, 0.5}})), 0.75*(1-h)+0.25, 1e-9)
	near(t, "no importance", float64(disentanglement([][]float64{{0, 0}, {0, 0}})), 0, 1e-9)
}

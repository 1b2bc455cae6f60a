package metric

import (
	"context"
	"math"
	"math/rand/v2"

	"slotscope/model"
)

const (
	fewLabels     = 100
	moreLabels    = 1000 // also the first test row of low-label accuracy
	labelDraws    = 10
	bootstraps    = 200 // of test rows
	chanceDraws   = 10  // shuffles of the factors
	costlyShuffle = 3   // shuffles for scores whose probes take seconds
)

// readout is the explicitness of one factor: areas under ROC curves on training and test rows, and bootstraps of the test area.
type readout struct {
	train, test model.Score
	resampled   []float64 // [bootstraps]
}

// explicit fits a linear probe to the first two thirds of the rows and tests it on the rest.
//
//	mean over values of AUC(one versus rest)            Ridgeway & Mozer 2018, section 2; chance is 0.5
func explicit(ctx context.Context, x design, y labels, weights [][]int32) (readout, error) {
	train, test := thirds(x.n)
	out := readout{train: model.Undefined(), test: model.Undefined()}
	p, err := fitProbe(ctx, x.take(train), y.take(train), probeIterations, probeGradient)
	if err != nil {
		return out, err
	}
	if len(p.classes) < 2 {
		out.train, out.test = 0.5, 0.5
		return out, nil
	}
	area := func(rows []int) (classes []rankedScores, auc model.Score) {
		shares, known := p.shares(x.take(rows)), y.take(rows)
		for at, k := range p.classes {
			column := make([]float64, len(rows))
			for r := range shares {
				column[r] = shares[r][at]
			}
			classes = append(classes, rankScores(column, known, k))
		}
		if a, ok := macroArea(classes, nil); ok {
			return classes, model.Score(a)
		}
		return classes, model.Undefined()
	}
	_, out.train = area(train)
	classes, auc := area(test)
	out.test = auc
	for _, w := range weights {
		a, ok := macroArea(classes, w)
		if !ok {
			a = math.NaN()
		}
		out.resampled = append(out.resampled, a)
	}
	return out, ctx.Err()
}

// bootstrapWeights is the number of draws of each of n rows, for every bootstrap.
func bootstrapWeights(n int, rng *rand.Rand) [][]int32 {
	weights := make([][]int32, bootstraps)
	for b := range weights {
		weights[b] = make([]int32, n)
		for range n {
			weights[b][rng.IntN(n)]++
		}
	}
	return weights
}

// labelled is the accuracy of a probe for one factor, trained on the given rows and tested on rows from 1,000 on.
type labelled struct {
	accuracy float64
	right    []bool // [test]
}

// accuracyOf trains on a few rows. If they contain a single class, it predicts that class.
func accuracyOf(ctx context.Context, x design, y labels, train []int) (labelled, error) {
	p, err := fitProbe(ctx, x.take(train), y.take(train), probeIterations, probeGradient)
	if err != nil {
		return labelled{}, err
	}
	test := rowsFrom(moreLabels, x.n)
	out, hits := labelled{right: make([]bool, len(test))}, 0
	for at, v := range p.predicts(x.take(test)) {
		if out.right[at] = v == y.of[test[at]]; out.right[at] {
			hits++
		}
	}
	out.accuracy = float64(hits) / float64(len(test))
	return out, nil
}

func rowsFrom(first, n int) []int {
	rows := make([]int, max(0, n-first))
	for i := range rows {
		rows[i] = first + i
	}
	return rows
}

// rightRows is the share of correctly predicted factors by test row.
func rightRows(factors []labelled) []float64 {
	out := make([]float64, len(factors[0].right))
	for _, f := range factors {
		for r, ok := range f.right {
			if ok {
				out[r] += 1 / float64(len(factors))
			}
		}
	}
	return out
}

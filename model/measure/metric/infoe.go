package metric

import (
	"context"
	"math"
	"math/rand/v2"

	"slotscope/model"
)

// maxWeights limits the number of weights of one regression, which allocates about twenty-five vectors of that size.
const maxWeights = 8 << 20

// designOf is the input of the regressions: one-hot codes, or standardized numbers.
func designOf(t Table) design {
	if t.discrete() {
		return oneHot(labelAll(t.Codes))
	}
	return dense(standardize(t.Values))
}

// explicitness is InfoE of one factor: the share of its entropy that a linear classifier removes, on the rows it was fitted on.
//
//	( ln K − H(s | z) ) / ln K            Hsu et al. 2023, InfoE
//
// ln K is the cross-entropy of the same regression without input, because all classes have the same total weight. For rare values the
// result can be slightly below 0. It saturates: with enough columns, even noise separates all rows and scores 1.
func explicitness(ctx context.Context, x design, s labels) (model.Score, error) {
	w, _, err := newLogistic(ctx, x, s).fit()
	if err != nil {
		return model.Undefined(), err
	}
	return relative(crossEntropy(x, s, w), s.k), nil
}

// heldOut is explicitness measured on the tenth of the rows that the classifier was not fitted on. It is below 0 if the predictions are
// worse than a constant guess.
func heldOut(ctx context.Context, x design, s labels, seed int64) (model.Score, error) {
	train, test := split(x.n, seed)
	w, _, err := newLogistic(ctx, x.take(train), s.take(train)).fit()
	if err != nil {
		return model.Undefined(), err
	}
	return relative(crossEntropy(x.take(test), s.take(test), w), s.k), nil
}

// shuffled is explicitness after shuffling the rows of the factor against those of the latents: the chance level.
func shuffled(ctx context.Context, x design, s labels, seed int64) (model.Score, error) {
	order := rand.New(rand.NewPCG(uint64(seed), 's')).Perm(x.n)
	return explicitness(ctx, x, s.take(order))
}

// relative is the share of the entropy removed; differences within rounding of none are 0.
func relative(ce float64, k int) model.Score {
	r := 1 - ce/math.Log(float64(k))
	if math.Abs(r) < 1e-12 {
		return 0
	}
	return model.Score(r)
}

// split divides n rows at random into nine tenths for fitting and one held-out tenth of at least one row.
func split(n int, seed int64) (train, test []int) {
	order := rand.New(rand.NewPCG(uint64(seed), 't')).Perm(n)
	cut := (n + 9) / 10
	return order[cut:], order[:cut]
}

package metric

import (
	"context"
	"fmt"

	"slotscope/model"
)

// affordableProbe returns an error if the probes of a factor would not fit into memory.
func (f *fieldWork) affordableProbe(columns, k int) error {
	if size := (columns + 1) * k; size > maxWeights {
		return fmt.Errorf("A linear probe with %d columns and %d values has %d weights (limit %d). Check that the factors are classes and the latents are codes.", columns, k, size, maxWeights)
	}
	if size := f.w.n * k; size > maxShares {
		return fmt.Errorf("A linear probe for %d values on %d rows has %d probabilities (limit %d). Check that the factors are classes.", k, f.w.n, size, maxShares)
	}
	return nil
}

// probeCost estimates the number of multiplications of a probe's fit, in units of a cheap task.
func (f *fieldWork) probeCost(x design, rows, k int) float64 {
	return 0.5 + float64(rows)*float64(max(x.width, x.p*min(1, len(x.values)))+8)*float64(k)/1e5
}

// planExplicitness fits one probe per factor, three of shuffled factors, and for codes also one on their numbers.
func (f *fieldWork) planExplicitness() {
	if f.w.n < 3 {
		f.problem("explicitness", fmt.Sprintf("Prediction needs at least 3 rows for training and testing; the table has %d.", f.w.n))
		return
	}
	train, test := thirds(f.w.n)
	weights := bootstrapWeights(len(test), stream(f.o.Seed, forBootstrap, 0))
	put := func(found []readout) *model.Explicitness {
		e := &model.Explicitness{}
		for _, r := range found {
			e.TrainFactors, e.TestFactors = append(e.TrainFactors, r.train), append(e.TestFactors, r.test)
			e.Train += r.train / model.Score(len(found))
			e.Test += r.test / model.Score(len(found))
		}
		return e
	}
	x := f.w.probeDesign(train)
	found := f.readouts(x, f.w, weights, "explicitness")
	f.finish = append(f.finish, func() {
		f.out.Explicitness = put(found)
		f.out.Scores["explicitness"] = f.out.Explicitness.Test
		if i, ok := bootstrapInterval(f.out.Explicitness.Test, meanDraws(found)); ok {
			f.out.Intervals["explicitness"] = i
		}
	})
	for repeat := range costlyShuffle {
		mixed := f.readouts(x, f.w.shuffled(f.orders[repeat]), nil, "chance of explicitness")
		f.finish = append(f.finish, func() { f.chance("explicitness", float64(put(mixed).Test)) })
	}
	if f.w.discrete() {
		index := f.readouts(standardDesign(f.indices(), train), f.w, nil, "explicitness_index")
		f.finish = append(f.finish, func() { f.out.ExplicitnessIndex = put(index) })
	}
}

// readouts plans one probe per factor of a world.
func (f *fieldWork) readouts(x design, w *world, weights [][]int32, name string) []readout {
	found := make([]readout, len(w.factors))
	for i, s := range w.factors {
		found[i] = readout{train: model.Undefined(), test: model.Undefined()}
		if s.k*w.n > maxShares/8 {
			weights = nil // bootstrapping this many curves takes too long
		}
		f.add(f.probeCost(x, w.n, s.k), func(ctx context.Context) (err error) {
			if err := f.affordableProbe(x.p, s.k); err != nil {
				return err
			}
			found[i], err = explicit(ctx, x, s, weights)
			return err
		}, name)
	}
	return found
}

// meanDraws is the mean over factors of each bootstrap.
func meanDraws(found []readout) []float64 {
	draws := make([]float64, len(found[0].resampled))
	for _, r := range found {
		if len(r.resampled) != len(draws) {
			return nil
		}
		for b, v := range r.resampled {
			draws[b] += v / float64(len(found))
		}
	}
	return draws
}

// planLowLabel fits probes to the first 100 and the first 1,000 rows, to ten draws of 100 of the latter, and to shuffled factors.
func (f *fieldWork) planLowLabel() {
	if f.w.n <= moreLabels {
		f.problem("low_label", fmt.Sprintf("Low-label accuracy trains on the first 1,000 rows and tests on the others; the table has %d rows.", f.w.n))
		return
	}
	few, more := firstRows(fewLabels), firstRows(moreLabels)
	low := &model.LowLabel{TestFrom: moreLabels}
	for _, s := range f.w.factors {
		low.Majority = append(low.Majority, model.Score(shareOf(s.take(rowsFrom(moreLabels, f.w.n)), s.take(more).most())))
	}
	f.finish = append(f.finish, func() { f.out.LowLabel = low })
	f.labels(f.w, few, "low_label", func(l []labelled) {
		low.First100 = accuracies(l)
		f.keepAccuracy("low_label_100", l)
	})
	f.labels(f.w, more, "low_label", func(l []labelled) {
		low.First1k = accuracies(l)
		f.keepAccuracy("low_label_1000", l)
	})
	var draws []float64
	for _, order := range newGenerator(labelSeed+uint64(f.o.Seed)).orders(labelDraws, moreLabels) {
		f.labels(f.w, order[:fewLabels], "low_label", func(l []labelled) { draws = append(draws, float64(accuracies(l).Mean)) })
	}
	f.finish = append(f.finish, func() { low.Random = spreadOf(draws, voteFloor) })
	for repeat := range costlyShuffle {
		mixed := f.w.shuffled(f.orders[repeat])
		f.labels(mixed, few, "chance of low_label", func(l []labelled) { f.chance("low_label_100", float64(accuracies(l).Mean)) })
		f.labels(mixed, more, "chance of low_label", func(l []labelled) { f.chance("low_label_1000", float64(accuracies(l).Mean)) })
	}
}

func firstRows(n int) []int {
	rows := make([]int, n)
	for r := range rows {
		rows[r] = r
	}
	return rows
}

// labels plans one probe per factor, trained on the given rows; put receives all results at the end, unless one failed.
func (f *fieldWork) labels(w *world, rows []int, name string, put func([]labelled)) {
	found := make([]labelled, len(w.factors))
	x := w.probeDesign(rows)
	for i, s := range w.factors {
		f.add(f.probeCost(x, len(rows), s.k)+f.probeCost(x, w.n/100, s.k), func(ctx context.Context) (err error) {
			if err := f.affordableProbe(x.p, s.k); err != nil {
				return err
			}
			found[i], err = accuracyOf(ctx, x, s, rows)
			return err
		}, name)
	}
	f.finish = append(f.finish, func() {
		for _, l := range found {
			if l.right == nil {
				return
			}
		}
		put(found)
	})
}

func accuracies(found []labelled) model.LabelAccuracy {
	a := model.LabelAccuracy{}
	for _, l := range found {
		a.Factors = append(a.Factors, model.Score(l.accuracy))
		a.Mean += model.Score(l.accuracy / float64(len(found)))
	}
	return a
}

func (f *fieldWork) keepAccuracy(name string, found []labelled) {
	f.out.Scores[name] = accuracies(found).Mean
	if i, ok := meanInterval(rightRows(found)); ok {
		f.out.Intervals[name] = i
	}
}

// planVotes draws the votes of FactorVAE and BetaVAE ten times, and ten times for shuffled factors.
func (f *fieldWork) planVotes() {
	if len(f.w.factors) < 2 || tooWide(f.w) != "" {
		return
	}
	s := &model.Sampled{Batch: voteRows, TrainVotes: trainVotes, EvalVotes: evalVotes}
	found := make([]votesRun, voteRuns)
	for repeat := range voteRuns {
		f.add(2, func(ctx context.Context) (err error) {
			found[repeat], err = f.w.votes(ctx, f.o.Seed, forVotes, repeat)
			return err
		}, "factorvae", "betavae")
		f.add(2, func(ctx context.Context) error {
			r, err := f.w.shuffled(f.orders[repeat]).votes(ctx, f.o.Seed, forVoteChance, repeat)
			if err == nil {
				f.chance("factorvae", r.factorEval)
				f.chance("betavae", r.beta.eval)
			}
			return err
		}, "chance of votes")
	}
	f.finish = append(f.finish, func() { f.keepVotes(s, found) })
}

// votesRun is one run of both scores.
type votesRun struct {
	factorTrain, factorEval float64
	beta                    betaVotes
	done                    bool
}

func (w *world) votes(ctx context.Context, seed int64, purpose, repeat int) (r votesRun, err error) {
	rng := stream(seed, purpose, repeat)
	r.factorTrain, r.factorEval = w.factorVAE(rng)
	r.beta, err = w.betaVAE(ctx, rng)
	r.done = err == nil
	return r, err
}

func (f *fieldWork) keepVotes(s *model.Sampled, found []votesRun) {
	column := func(of func(votesRun) float64) model.Spread {
		var x []float64
		for _, r := range found {
			x = append(x, of(r))
		}
		return spreadOf(x, voteFloor)
	}
	for _, r := range found {
		if !r.done {
			return
		}
	}
	s.FactorVAETrain, s.FactorVAEEval = column(func(r votesRun) float64 { return r.factorTrain }), column(func(r votesRun) float64 { return r.factorEval })
	s.BetaVAETrain, s.BetaVAEEval = column(func(r votesRun) float64 { return r.beta.train }), column(func(r votesRun) float64 { return r.beta.eval })
	if !f.w.discrete() {
		rawTrain, rawEval := column(func(r votesRun) float64 { return r.beta.rawTrain }), column(func(r votesRun) float64 { return r.beta.rawEval })
		s.BetaVAERawTrain, s.BetaVAERawEval = &rawTrain, &rawEval
	}
	f.out.Sampled = s
	for name, v := range map[string]model.Spread{"factorvae": s.FactorVAEEval, "betavae": s.BetaVAEEval} {
		f.out.Scores[name] = v.Mean
		half := model.Score(tOfTen) * v.SE
		f.out.Intervals[name] = model.Interval{Value: v.Mean, Low: max(0, v.Mean-half), High: min(1, v.Mean+half)}
	}
}

// tOfTen is the 0.975 quantile of Student's t for ten repeats.
const tOfTen = 2.2621571628

// planCapacity grows the forests of DCI-ES.
func (f *fieldWork) planCapacity() {
	if f.w.n < 3 {
		return
	}
	c := &model.Capacity{Probe: "random forest", Depths: capacityDepths}
	losses := f.depths(f.w, capacityTrees, 0, "dci_es")
	f.finish = append(f.finish, func() {
		for i, l := range losses {
			if l == nil {
				return
			}
			c.Loss = append(c.Loss, scoresOf(l))
			e := depthCurve(l, f.w.factors[i].k).explicitness()
			c.Factors = append(c.Factors, e)
			c.Explicitness += e / model.Score(len(losses))
		}
		f.out.Capacity, f.out.Scores["dci_es"] = c, c.Explicitness
	})
	for repeat := range costlyShuffle {
		mixed := f.w.shuffled(f.orders[repeat])
		losses := f.depths(mixed, chanceTrees, 1+repeat, "chance of dci_es")
		f.finish = append(f.finish, func() {
			e := 0.0
			for i, l := range losses {
				if l == nil {
					return
				}
				e += float64(depthCurve(l, mixed.factors[i].k).explicitness()) / float64(len(losses))
			}
			f.chance("dci_es", e)
		})
	}
}

// depths plans one forest per factor of a world.
func (f *fieldWork) depths(w *world, trees, repeat int, name string) [][]float64 {
	losses := make([][]float64, len(w.factors))
	for i, s := range w.factors {
		f.add(float64(trees)*float64(w.n)/3e3, func(ctx context.Context) (err error) {
			if err := f.affordableProbe(w.latents(), s.k); err != nil {
				return err
			}
			losses[i], err = w.depthLosses(ctx, s, trees, stream(f.o.Seed, forCapacity, repeat*len(w.factors)+i))
			return err
		}, name)
	}
	return losses
}

package metric

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"slotscope/model"
)

const (
	voteRows   = 64 // rows or pairs per vote
	trainVotes = 1000
	evalVotes  = 500
	voteRuns   = 10
	leastRatio = 1e-12 // ratios of local to global variance below this are 0, so that rounding does not decide between exact zeros

	rawIterations = 100  // of the probe on raw numbers: disentanglement_lib stops there, converged or not
	rawGradient   = 1e-4 // its tolerance
)

// byLabel lists the rows of each label.
func byLabel(l labels) [][]int32 {
	rows := make([][]int32, l.k)
	for r, v := range l.of {
		rows[v] = append(rows[v], int32(r))
	}
	return rows
}

// spreadMeter measures the variance of latents over selected rows.
type spreadMeter struct {
	w      *world
	active []int
	global []float64 // [active] over all rows
	counts []int32   // scratch
	column []float64 // scratch
}

func newSpreadMeter(w *world) *spreadMeter {
	s := &spreadMeter{w: w}
	all := make([]int32, w.n)
	for r := range all {
		all[r] = int32(r)
	}
	for j, on := range w.active {
		if on {
			s.active = append(s.active, j)
			s.global = append(s.global, s.of(j, all))
		}
	}
	return s
}

// of is the variance of latent j over some rows; for codes, half the share of pairs that differ.
//
//	(N² − Σ_k n_k²) / (2N(N − 1))            Kim & Mnih 2018, appendix
func (s *spreadMeter) of(j int, rows []int32) float64 {
	if !s.w.discrete() {
		s.column = s.column[:0]
		for _, r := range rows {
			s.column = append(s.column, s.w.values[j][r])
		}
		return variance(s.column)
	}
	c := s.w.codes[j]
	if len(s.counts) < c.k {
		s.counts = make([]int32, c.k)
	}
	same, size := 0.0, float64(len(rows))
	for _, r := range rows {
		n := s.counts[c.of[r]]
		same += float64(2*n + 1) // (n+1)² − n²
		s.counts[c.of[r]]++
	}
	for _, r := range rows {
		s.counts[c.of[r]] = 0
	}
	return (size*size - same) / (2 * size * (size - 1))
}

// ratios are the local over the global variances of the active latents.
func (s *spreadMeter) ratios(dst []float64, rows []int32) {
	for at, j := range s.active {
		q := s.of(j, rows) / s.global[at]
		if q < leastRatio {
			q = 0
		}
		dst[at] = q
	}
}

// least is the active latent with the smallest ratio, or the lowest of equal ones.
func (s *spreadMeter) least(ratios []float64) int {
	best := 0
	for at, q := range ratios {
		if q < ratios[best] {
			best = at
		}
	}
	return s.active[best]
}

// factorLimit is the limit of FactorVAE's votes for infinitely many rows per vote: the ratios [F][value][active] of the values with at
// least two rows, the shares of votes [F][m], and the score Σ_d max_i of these. It is not corrected for chance.
func (w *world) factorLimit() (ratios [][][]model.Score, votes [][]model.Score, score float64) {
	meter := newSpreadMeter(w)
	best := make([]float64, w.latents())
	for _, s := range w.factors {
		groups := byLabel(s)
		total := 0
		for _, rows := range groups {
			if len(rows) > 1 {
				total += len(rows)
			}
		}
		var own [][]model.Score
		share := make([]float64, w.latents())
		for _, rows := range groups {
			if len(rows) < 2 {
				continue
			}
			q := make([]float64, len(meter.active))
			meter.ratios(q, rows)
			own = append(own, scoresOf(q))
			share[meter.least(q)] += float64(len(rows)) / float64(total) / float64(len(w.factors))
		}
		ratios, votes = append(ratios, own), append(votes, scoresOf(share))
		for j, v := range share {
			best[j] = max(best[j], v)
		}
	}
	return ratios, votes, sum(best)
}

func scoresOf(x []float64) []model.Score {
	out := make([]model.Score, len(x))
	for i, v := range x {
		out[i] = model.Score(v)
	}
	return out
}

func scoreRows(x [][]float64) [][]model.Score {
	out := make([][]model.Score, len(x))
	for i, row := range x {
		out[i] = scoresOf(row)
	}
	return out
}

// factorVotes draws votes [F][m]: each draws a factor, a row, and 64 rows with the row's value; the latent that varies least among these
// rows, relative to all rows, gets the vote.
func (w *world) factorVotes(meter *spreadMeter, groups [][][]int32, count int, rng *rand.Rand) [][]int {
	votes := make([][]int, len(w.factors))
	for i := range votes {
		votes[i] = make([]int, w.latents())
	}
	rows, q := make([]int32, voteRows), make([]float64, len(meter.active))
	for range count {
		i := rng.IntN(len(w.factors))
		same := groups[i][w.factors[i].of[rng.IntN(w.n)]]
		for at := range rows {
			rows[at] = same[rng.IntN(len(same))]
		}
		meter.ratios(q, rows)
		votes[i][meter.least(q)]++
	}
	return votes
}

// factorVAE is the share of votes that a majority table predicts, on the votes it was built from and on new ones.
//
//	c(d) = argmax_i V_id;  score = share of votes (i, d) with i = c(d)            Kim & Mnih 2018, section 4
func (w *world) factorVAE(rng *rand.Rand) (train, eval float64) {
	meter := newSpreadMeter(w)
	if len(meter.active) == 0 {
		return 0, 0
	}
	groups := w.groups()
	learned, fresh := w.factorVotes(meter, groups, trainVotes, rng), w.factorVotes(meter, groups, evalVotes, rng)
	for j := range w.latents() {
		own := 0
		for i := range learned {
			if learned[i][j] > learned[own][j] {
				own = i
			}
		}
		train += float64(learned[own][j]) / trainVotes
		eval += float64(fresh[own][j]) / evalVotes
	}
	return train, eval
}

func (w *world) groups() [][][]int32 {
	var out [][][]int32
	for _, s := range w.factors {
		out = append(out, byLabel(s))
	}
	return out
}

// betaDifference is [F][m]: the expected difference of a latent between two rows that share a factor's value: |z − z'| for numbers, the
// probability of a difference for codes.
func (w *world) betaDifference() [][]float64 {
	out := make([][]float64, len(w.factors))
	for i, s := range w.factors {
		out[i] = make([]float64, w.latents())
		for _, rows := range byLabel(s) {
			for j := range out[i] {
				out[i][j] += float64(len(rows)) / float64(w.n) * w.pairDifference(j, rows)
			}
		}
	}
	return out
}

// pairDifference is the mean over all ordered pairs of rows, including pairs of a row with itself.
func (w *world) pairDifference(j int, rows []int32) float64 {
	k := float64(len(rows))
	if w.discrete() {
		same := 0.0
		counts := make([]int, w.codes[j].k)
		for _, r := range rows {
			counts[w.codes[j].of[r]]++
		}
		for _, c := range counts {
			same += float64(c) * float64(c)
		}
		return 1 - same/(k*k)
	}
	x := make([]float64, len(rows))
	for at, r := range rows {
		x[at] = w.values[j][r]
	}
	slices.Sort(x)
	total := 0.0
	for at, v := range x {
		total += 2 * v * (2*float64(at) - k + 1)
	}
	return total / (k * k)
}

// betaPoints draws points [count][m], and for each the factor shared by its pairs.
func (w *world) betaPoints(groups [][][]int32, count int, rng *rand.Rand) (points [][]float64, factor labels) {
	points, factor = make([][]float64, w.latents()), labels{make([]int32, count), len(w.factors)}
	for j := range points {
		points[j] = make([]float64, count)
	}
	for at := range count {
		i := rng.IntN(len(w.factors))
		factor.of[at] = int32(i)
		for range voteRows {
			a := rng.IntN(w.n)
			same := groups[i][w.factors[i].of[a]]
			b := same[rng.IntN(len(same))]
			for j := range points {
				points[j][at] += w.difference(j, a, int(b)) / voteRows
			}
		}
	}
	return points, factor
}

func (w *world) difference(j, a, b int) float64 {
	if !w.discrete() {
		return math.Abs(w.values[j][a] - w.values[j][b])
	}
	if w.codes[j].of[a] != w.codes[j].of[b] {
		return 1
	}
	return 0
}

// betaVotes are the accuracies of one run of BetaVAE's score; raw uses unscaled numbers.
type betaVotes struct{ train, eval, rawTrain, rawEval float64 }

// betaVAE trains a linear classifier to predict the shared factor from the mean differences of latents.
//
//	features_d = mean over 64 pairs of |z_ad − z_bd|            Higgins et al. 2017, section 3
//
// Numbers are divided by their standard deviation, so that the score does not depend on units; raw skips this.
func (w *world) betaVAE(ctx context.Context, rng *rand.Rand) (betaVotes, error) {
	groups := w.groups()
	a, ya := w.betaPoints(groups, trainVotes, rng)
	b, yb := w.betaPoints(groups, evalVotes, rng)
	out, err := betaVotes{}, error(nil)
	if !w.discrete() {
		if out.rawTrain, out.rawEval, err = tellFactor(ctx, a, b, ya, yb, rawIterations, rawGradient); err != nil {
			return out, err
		}
		for j, x := range w.values {
			s := populationStd(x)
			if !(s > 0) || slices.Min(x) == slices.Max(x) {
				s = 1
			}
			for _, points := range [][]float64{a[j], b[j]} {
				for at := range points {
					points[at] /= s
				}
			}
		}
	}
	out.train, out.eval, err = tellFactor(ctx, a, b, ya, yb, probeIterations, probeGradient)
	return out, err
}

func tellFactor(ctx context.Context, a, b [][]float64, ya, yb labels, iterations int, gradient float64) (train, eval float64, err error) {
	xa, xb := dense(a), dense(b)
	p, err := fitProbe(ctx, xa, ya, iterations, gradient)
	if err != nil {
		return 0, 0, err
	}
	return hits(p.predicts(xa), ya), hits(p.predicts(xb), yb), nil
}

func hits(predicted []int32, y labels) float64 {
	count := 0
	for r, v := range predicted {
		if v == y.of[r] {
			count++
		}
	}
	return float64(count) / float64(len(predicted))
}

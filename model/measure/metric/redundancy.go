package metric

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"slotscope/model"
)

// leastChaoShen is the minimum coverage for a useful Chao–Shen estimate.
const leastChaoShen = 0.5

// redundancy is the information shared among the latents.
//
//	R = Σ_j H(z_j) − H(z_1 … z_m) ≥ 0, in nats: the total correlation
//
// The plug-in joint entropy cannot exceed ln n, which makes noise look redundant. Numbers are binned.
func (w *world) redundancy(seed int64) model.Redundancy {
	joint := tupleCounts(w.codes)
	singles := make([][]int, w.latents())
	for j, c := range w.codes {
		singles[j] = slices.DeleteFunc(c.counts(), func(n int) bool { return n == 0 })
	}
	once := 0
	for _, c := range joint {
		if c == 1 {
			once++
		}
	}
	r := model.Redundancy{JointCodes: len(joint), Coverage: model.Score(1 - float64(once)/float64(w.n)),
		Plugin: correlation(singles, joint, Entropy), MillerMadow: correlation(singles, joint, millerMadow), ChaoShen: correlation(singles, joint, chaoShen)}
	largest := 0.0
	for _, h := range r.Plugin.Slots {
		largest = max(largest, float64(h))
	}
	if room := float64(r.Plugin.Sum) - largest; room > 0 {
		r.Normalized = r.Plugin.Redundancy / model.Score(room)
	}
	if float64(r.Coverage) < leastChaoShen {
		r.Undetermined = fmt.Sprintf("Total redundancy cannot be estimated from %d rows: %.0f%% of them have a unique combination of codes. "+
			"Use the sum over pairs of slots instead.", w.n, 100*(1-float64(r.Coverage)))
	}
	r.PairSum = model.Undefined()
	if w.latents() <= maxLatents {
		r.Pairs, r.PairSum = w.pairs()
	}
	draws, random := make([]float64, chanceDraws), newGenerator(redundancySeed+uint64(seed))
	for repeat := range draws {
		draws[repeat] = float64(r.Plugin.Sum) - Entropy(tupleCounts(w.mixed(random)))
	}
	r.Shuffled = spreadOf(draws, shuffleFloor)
	r.Excess = r.Plugin.Redundancy - r.Shuffled.Mean
	return r
}

// mixed is every latent independently permuted.
func (w *world) mixed(random *generator) []labels {
	out := make([]labels, w.latents())
	for j, c := range w.codes {
		out[j] = c.take(random.order(w.n))
	}
	return out
}

// pairs is the [m][m] mutual information of two latents minus its mean over permutations, 0 unless it is above chance, and its sum over
// pairs.
func (w *world) pairs() ([][]model.Score, model.Score) {
	out, total := make([][]model.Score, w.latents()), 0.0
	for j := range out {
		out[j] = make([]model.Score, w.latents())
		for k := range j {
			i, _ := pairInformation(w.codes[j], w.codes[k])
			v := gated(i, expectedInformation(w.codes[j], w.codes[k]), w.n)
			out[j][k], out[k][j] = model.Score(v), model.Score(v)
			total += v
		}
	}
	return out, model.Score(total)
}

func correlation(singles [][]int, joint []int, h func([]int) float64) model.Correlation {
	c := model.Correlation{Slots: []model.Score{}}
	for _, counts := range singles {
		c.Slots = append(c.Slots, model.Score(h(counts)))
		c.Sum += model.Score(h(counts))
	}
	c.Joint = model.Score(h(joint))
	c.Redundancy = c.Sum - c.Joint
	return c
}

// millerMadow is the plug-in entropy corrected for the first term of its bias.
//
//	H + (cells − 1)/2n            Miller 1955; counts are of occupied cells
func millerMadow(counts []int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	return Entropy(counts) + float64(len(counts)-1)/float64(2*n)
}

// chaoShen is the Chao–Shen entropy estimate, which corrects for unseen outcomes.
//
//	H = −Σ q ln q / (1 − (1 − q)^n),  q = (1 − f₁/n) p            Chao & Shen 2003; f₁ outcomes seen once, f₁ = n replaced by n − 1
func chaoShen(counts []int) float64 {
	n, once := 0, 0
	for _, c := range counts {
		n += c
		if c == 1 {
			once++
		}
	}
	if once == n {
		once = n - 1
	}
	h := 0.0
	for _, c := range counts {
		q := (1 - float64(once)/float64(n)) * float64(c) / float64(n)
		unseen := -math.Expm1(float64(n) * math.Log1p(-min(q, 1-1e-16)))
		h -= q * math.Log(q) / unseen
	}
	return max(0, h)
}

// tupleCounts is the number of rows with each combination of labels, in ascending order, so that sums over them are reproducible.
func tupleCounts(columns []labels) []int {
	n, key := len(columns[0].of), make([]byte, 4*len(columns))
	tuples := make(map[string]int, n)
	for r := range n {
		for j, c := range columns {
			binary.LittleEndian.PutUint32(key[4*j:], uint32(c.of[r]))
		}
		tuples[string(key)]++
	}
	counts := make([]int, 0, len(tuples))
	for _, c := range tuples {
		counts = append(counts, c)
	}
	slices.Sort(counts)
	return counts
}

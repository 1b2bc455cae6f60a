package metric

import (
	"math"
	"math/rand/v2"
	"slices"

	"slotscope/model"
)

// relations is the input of InfoM and InfoC.
type relations struct {
	nmi    [][]model.Score // [F][m] I(s; z) / H(s); undefined for a factor with a single value
	active []bool          // [m]
	kept   []int           // factors with at least two values
}

// relate measures the normalized mutual information of every factor and latent.
//
//	NMI_ij = I(s_i; z_j) / H(s_i)            Hsu et al. 2023, section 4; plug-in for codes, Ross's estimator for numbers
func relate(t Table, factors []labels, seed int64) relations {
	r := relations{active: activity(t), kept: kept(factors), nmi: make([][]model.Score, len(factors))}
	information := informer(t, seed)
	for i := range factors {
		r.nmi[i] = undefined(t.latents())
	}
	for _, i := range r.kept {
		h := factors[i].entropy()
		for j := range r.nmi[i] {
			r.nmi[i][j] = model.Score(information(factors[i], j) / h)
		}
	}
	return r
}

// informer returns the estimator of I(s; z_j) for the latents of a table.
func informer(t Table, seed int64) func(s labels, j int) float64 {
	if t.discrete() {
		codes := labelAll(t.Codes)
		return func(s labels, j int) float64 { return mutual(s, codes[j]) }
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 'j'))
	values := standardize(t.Values)
	for j := range values {
		values[j] = jittered(values[j], rng)
	}
	return func(s labels, j int) float64 { return ross(s, values[j]) }
}

// activity reports which latents vary: slots with at least two codes, and numbers whose range exceeds a twentieth of the widest range.
func activity(t Table) []bool {
	active := make([]bool, t.latents())
	for j, c := range t.Codes {
		active[j] = slices.Min(c) < slices.Max(c)
	}
	widest := 0.0
	for _, c := range t.Values {
		widest = max(widest, slices.Max(c)/2-slices.Min(c)/2)
	}
	for j, c := range t.Values {
		active[j] = slices.Max(c)/2-slices.Min(c)/2 > widest/20
	}
	return active
}

// infoM is modularity: whether each active latent carries information about one factor only, between 0 and 1.
//
//	( mean_j [ max_i NMI_ij / Σ_i NMI_ij ] − 1/F ) / (1 − 1/F)            Hsu et al. 2023, InfoM
//
// Latents without information about any factor are excluded from the mean. It is undefined for a single factor, and 0 without active
// latents.
func (r relations) infoM() model.Score {
	if len(r.kept) < 2 {
		return model.Undefined()
	}
	if !slices.Contains(r.active, true) {
		return 0
	}
	mean, count := 0.0, 0.0
	for j, on := range r.active {
		if !on {
			continue
		}
		largest, sum := peak(len(r.kept), func(i int) float64 { return float64(r.nmi[r.kept[i]][j]) })
		if sum > 0 {
			mean += largest / sum
			count++
		}
	}
	if count == 0 {
		return model.Undefined()
	}
	return aboveChance(mean/count, len(r.kept))
}

// infoC is compactness: whether the information about each factor lies in one active latent only, between 0 and 1.
//
//	( mean_i [ max_j NMI_ij / Σ_j NMI_ij ] − 1/a ) / (1 − 1/a)            Hsu et al. 2023, InfoC; a active latents
//
// A factor that no latent has information about counts as evenly spread. It is undefined for one active latent, and 0 without any.
func (r relations) infoC() model.Score {
	var on []int
	for j, active := range r.active {
		if active {
			on = append(on, j)
		}
	}
	if len(r.kept) == 0 || len(on) == 1 {
		return model.Undefined()
	}
	if len(on) == 0 {
		return 0
	}
	mean := 0.0
	for _, i := range r.kept {
		largest, sum := peak(len(on), func(j int) float64 { return float64(r.nmi[i][on[j]]) })
		share := 1 / float64(len(on))
		if sum > 0 {
			share = largest / sum
		}
		mean += share / float64(len(r.kept))
	}
	return aboveChance(mean, len(on))
}

func peak(n int, at func(int) float64) (largest, sum float64) {
	for i := range n {
		largest = max(largest, at(i))
		sum += at(i)
	}
	return largest, sum
}

// aboveChance maps the share 1/n to 0 and 1 to 1.
func aboveChance(share float64, n int) model.Score {
	chance := 1 / float64(n)
	return model.Score((share - chance) / (1 - chance))
}

// meanScore is the mean of the scores at the given indices; undefined if there are none.
func meanScore(scores []model.Score, at []int) model.Score {
	sum := 0.0
	for _, i := range at {
		sum += float64(scores[i]) / float64(len(at))
	}
	if len(at) == 0 {
		return model.Score(math.NaN())
	}
	return model.Score(sum)
}

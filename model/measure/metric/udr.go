package metric

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"slotscope/model"
)

const (
	leastKL     = 0.01 // minimum mean KL of a VAE's latent in use, in nats
	lassoAlpha  = 0.1
	lassoSweeps = 100000
	lassoStop   = 1e-12 // largest change of a coefficient
	maxLatents  = 2048  // maximum size of matrices over pairs of latents
)

// Model is the latents of one of several similarly trained models, on the same rows. Latents are either Codes or Values.
type Model struct {
	Codes  [][]int     // [m][n]
	Values [][]float64 // [m][n]
	KL     []float64   // [m] mean divergence of a VAE's latents, nats; nil for other models
}

// Latents is a Model with the dataset indices of its images, so that models can be compared on the same images.
type Latents struct {
	Model
	Index []int // [n]
}

// Kinds of UDR shown in tables: for codes, and for numbers.
const (
	CodesUDR   = "mi_mm"
	NumbersUDR = "lasso"
)

// UDR scores similarly trained models without labels, with the kind shown in tables; a single model is undefined. If ctx ends, UDR returns
// early with an error that wraps ctx.Err().
func UDR(ctx context.Context, models []Model, seed int64) (model.UDR, error) {
	all, err := udr(ctx, models, seed)
	if err != nil {
		return model.UDR{}, err
	}
	if scores, codes := all[CodesUDR]; codes {
		return scores, nil
	}
	return all[NumbersUDR], nil
}

// udr compares models by how much their latents agree, with two measures of agreement.
//
//	s(R) = ½ ( mean_col max²/Σ + mean_row max²/Σ ),  UDR_b = median_{a≠b} s(R(a, b))            Duan et al. 2020, eq. 1
//
// R is lasso weight magnitudes and Spearman's |ρ| for numbers, and I/max(H, H'), plug-in and corrected, for codes. Latents that do not
// vary, or whose KL is at most 0.01, are dropped first.
func udr(ctx context.Context, models []Model, seed int64) (map[string]model.UDR, error) {
	discrete, err := alike(models)
	if err != nil {
		return nil, err
	}
	kinds := map[string]agreement{"lasso": lasso, "spearman": spearman}
	if discrete {
		kinds = map[string]agreement{"mi": shared(false), "mi_mm": shared(true)}
	}
	out := map[string]model.UDR{}
	for kind, agree := range kinds {
		used := make([]used, len(models))
		for a, m := range models {
			used[a] = m.used()
		}
		scores, err := compareModels(ctx, used, agree)
		if err != nil {
			return nil, err
		}
		if scores.Chance, err = chanceUDR(ctx, used, agree, seed); err != nil {
			return nil, err
		}
		out[kind] = scores
	}
	return out, nil
}

// alike reports whether all models have codes, or returns why they cannot be compared.
func alike(models []Model) (discrete bool, err error) {
	rows := -1
	for a, m := range models {
		if (len(m.Codes) > 0) == (len(m.Values) > 0) || (len(m.Codes) > 0) != (len(models[0].Codes) > 0) {
			return false, fmt.Errorf("udr: model %d and model 0 have different kinds of latents; use codes for all models or numbers for all", a)
		}
		if width := max(len(m.Codes), len(m.Values)); width > maxLatents || m.KL != nil && len(m.KL) != width {
			return false, fmt.Errorf("udr: model %d has %d latents and %d values of kl; give one value per latent, for at most %d latents", a, width, len(m.KL), maxLatents)
		}
		for _, n := range append(lengths(m.Codes), lengths(m.Values)...) {
			if rows >= 0 && n != rows || n < 2 {
				return false, fmt.Errorf("udr: model %d has a latent with %d rows; all models need the same rows, at least two", a, n)
			}
			rows = n
		}
	}
	return len(models) > 0 && len(models[0].Codes) > 0, nil
}

func lengths[T any](columns [][]T) (n []int) {
	for _, c := range columns {
		n = append(n, len(c))
	}
	return n
}

// used is the latents of a model that vary.
type used struct {
	codes  []labels
	values [][]float64 // standardized
	ranks  [][]float64 // standardized mid-ranks
}

func (m Model) used() used {
	var u used
	live := func(j int) bool { return m.KL == nil || m.KL[j] > leastKL }
	for j, c := range m.Codes {
		if l := label(c); l.k > 1 && live(j) {
			u.codes = append(u.codes, l)
		}
	}
	for j, x := range m.Values {
		if slices.Max(x) > slices.Min(x) && live(j) {
			u.values = append(u.values, standardize([][]float64{x})[0])
			u.ranks = append(u.ranks, standardize([][]float64{MidRanks(x)})[0])
		}
	}
	return u
}

func (u used) size() int { return max(len(u.codes), len(u.values)) }

func (u used) rows() int {
	if len(u.codes) > 0 {
		return len(u.codes[0].of)
	}
	return len(u.values[0])
}

// shuffled is the model with its rows permuted.
func (u used) shuffled(rng *rand.Rand) used {
	if u.size() == 0 {
		return u
	}
	var out used
	order := rng.Perm(u.rows())
	for _, c := range u.codes {
		out.codes = append(out.codes, c.take(order))
	}
	for j := range u.values {
		out.values, out.ranks = append(out.values, pick(u.values[j], order)), append(out.ranks, pick(u.ranks[j], order))
	}
	return out
}

// agreement returns R, [latents of a][latents of b].
type agreement func(a, b used) [][]float64

// compareModels scores every pair, and each model by the median over its pairs.
func compareModels(ctx context.Context, models []used, agree agreement) (model.UDR, error) {
	out := model.UDR{}
	for a := range models {
		row := make([]float64, len(models))
		for b := range models {
			if err := ctx.Err(); err != nil {
				return out, fmt.Errorf("udr: %w", err)
			}
			if a == b || models[a].size() == 0 || models[b].size() == 0 {
				continue
			}
			r := agree(models[a], models[b])
			row[b] = strength(r)
			if a == 0 && b == 1 {
				out.First = scoreRows(r)
			}
		}
		out.Pairwise = append(out.Pairwise, scoresOf(row))
	}
	for b := range models {
		var column []float64
		for a := range models {
			if a != b {
				column = append(column, float64(out.Pairwise[a][b]))
			}
		}
		out.Models = append(out.Models, model.Score(median(column)))
	}
	return out, nil
}

// chanceUDR is each model's score after permuting the rows of every model.
func chanceUDR(ctx context.Context, models []used, agree agreement, seed int64) ([]model.Spread, error) {
	if len(models) < 2 {
		return nil, nil
	}
	draws := make([][]float64, len(models))
	for repeat := range costlyShuffle {
		mixed := make([]used, len(models))
		for a, m := range models {
			mixed[a] = m.shuffled(stream(seed, forUDR, repeat*len(models)+a))
		}
		scores, err := compareModels(ctx, mixed, agree)
		if err != nil {
			return nil, err
		}
		for b, s := range scores.Models {
			draws[b] = append(draws[b], float64(s))
		}
	}
	var out []model.Spread
	for _, d := range draws {
		out = append(out, spreadOf(d, chanceFloor))
	}
	return out, nil
}

// median is NaN for an empty slice.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// strength measures how close a matrix is to a single entry per row and column; rows and columns of zeros count 0.
func strength(r [][]float64) float64 {
	return (peakedness(r) + peakedness(transposed(r))) / 2
}

func peakedness(rows [][]float64) float64 {
	total := 0.0
	for _, row := range rows {
		if top, all := slices.Max(row), sum(row); all > 0 {
			total += top * top / all
		}
	}
	return total / float64(len(rows))
}

// shared is the mutual information of codes over the larger entropy: 1 if each code determines the other.
func shared(corrected bool) agreement {
	h := func(c labels) float64 {
		if corrected {
			return c.entropy() + float64(occupied(c.counts())-1)/float64(2*len(c.of))
		}
		return c.entropy()
	}
	return func(a, b used) [][]float64 {
		r := make([][]float64, len(a.codes))
		for i, x := range a.codes {
			for _, y := range b.codes {
				v, mm := pairInformation(x, y)
				if corrected {
					v = mm
				}
				r[i] = append(r[i], min(1, v/max(h(x), h(y))))
			}
		}
		return r
	}
}

// spearman is |ρ|, computed from mid-ranks.
func spearman(a, b used) [][]float64 {
	r := make([][]float64, len(a.ranks))
	for i, x := range a.ranks {
		for _, y := range b.ranks {
			r[i] = append(r[i], math.Abs(dot(x, y)/float64(len(x))))
		}
	}
	return r
}

// MidRanks are ranks from 1; tied values get the mean of their ranks.
func MidRanks(x []float64) []float64 {
	order := make([]int, len(x))
	for r := range order {
		order[r] = r
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks := make([]float64, len(x))
	for start := 0; start < len(x); {
		end := start
		for end < len(x) && x[order[end]] == x[order[start]] {
			end++
		}
		for _, r := range order[start:end] {
			ranks[r] = float64(start+end+1) / 2
		}
		start = end
	}
	return ranks
}

// lasso predicts each latent of b from all latents of a; it returns the magnitudes of the optimal weights.
//
//	min (1/2n) |b_k − A w|² + 0.1 |w|₁            by coordinate descent; columns are standardized
func lasso(a, b used) [][]float64 {
	n := float64(len(a.values[0]))
	gram := make([][]float64, len(a.values))
	for i, x := range a.values {
		for _, y := range a.values {
			gram[i] = append(gram[i], dot(x, y)/n)
		}
	}
	r := make([][]float64, len(a.values))
	for _, y := range b.values {
		target := make([]float64, len(a.values))
		for i, x := range a.values {
			target[i] = dot(x, y) / n
		}
		for i, w := range lassoWeights(gram, target) {
			r[i] = append(r[i], math.Abs(w))
		}
	}
	return r
}

func lassoWeights(gram [][]float64, target []float64) []float64 {
	w := make([]float64, len(target))
	for range lassoSweeps {
		largest := 0.0
		for i, row := range gram {
			rest := target[i] - dot(row, w) + row[i]*w[i]
			next := math.Copysign(max(0, math.Abs(rest)-lassoAlpha), rest) / row[i]
			largest = max(largest, math.Abs(next-w[i]))
			w[i] = next
		}
		if largest < lassoStop {
			break
		}
	}
	return w
}

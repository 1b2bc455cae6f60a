package metric

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"slotscope/model"
)

// Encodings is the intermediate values of an HRR model for N images, from z to codes and back, in row-major order.
type Encodings struct {
	M, D    int    // slots, components
	Binding string // as in model.Config

	Z         []float32 // z, [N, d]
	Retrieved []float32 // ṽ, [N, m, d]
	Denoised  []float32 // v̄, [N, m, d]
	Codes     []int32   // [N, m], rows of Codebook
	Bundle    []float32 // ẑ, [N, d]
	Again     []int32   // [N, m] codes that the model's own retrieval and denoiser recover from ẑ
	CleanedUp []int32   // [N, m] codes of the entries nearest to plain retrievals from ẑ
	Codebook  []float32 // C, [k, d]
}

// Check returns an error that names an array of the wrong length or a code out of range.
func (e Encodings) Check() error {
	if e.M < 1 || e.D < 1 || len(e.Z) == 0 || len(e.Z)%e.D != 0 {
		return fmt.Errorf("z has %d numbers; want a positive multiple of %d", len(e.Z), e.D)
	}
	n := len(e.Z) / e.D
	for _, a := range []struct {
		name      string
		got, want int
	}{
		{"retrieved", len(e.Retrieved), n * e.M * e.D}, {"denoised", len(e.Denoised), n * e.M * e.D}, {"bundle", len(e.Bundle), n * e.D},
		{"codes", len(e.Codes), n * e.M}, {"again", len(e.Again), n * e.M}, {"cleaned up", len(e.CleanedUp), n * e.M},
	} {
		if a.got != a.want {
			return fmt.Errorf("%s has %d values; %d images need %d", a.name, a.got, n, a.want)
		}
	}
	for at, c := range e.Codes {
		if c < 0 || (int(c)+1)*e.D > len(e.Codebook) {
			return fmt.Errorf("code %d of image %d is outside the codebook of %d entries", c, at/e.M, len(e.Codebook)/e.D)
		}
	}
	return nil
}

// MeasureFaithfulness measures how closely a trained model is a holographic reduced representation.
func MeasureFaithfulness(e Encodings) (model.Faithfulness, error) {
	if err := e.Check(); err != nil {
		return model.Faithfulness{}, fmt.Errorf("measuring faithfulness: %w", err)
	}
	n := len(e.Z) / e.D
	f := model.Faithfulness{Images: n, True: model.TrueHRROf(e.M, e.D, e.Binding)}
	taken := make([]float32, 0, len(e.Codes)*e.D) // q, [N, m, d]
	for _, c := range e.Codes {
		taken = append(taken, e.entry(int(c))...)
	}
	f.CosBundle = meanCos(e.Z, e.Bundle, e.D)
	f.CosRetrieval, f.CosDenoised = meanCos(e.Retrieved, taken, e.D), meanCos(e.Denoised, taken, e.D)
	f.Reencode, f.Cleanup = equalShare(e.Codes, e.Again), equalShare(e.Codes, e.CleanedUp)
	f.Chance = model.Score(float64(e.M) / float64(e.codesInUse()))
	for _, v := range e.Bundle {
		f.Energy += model.Score(float64(v) * float64(v) / float64(n))
	}
	used := e.used()
	f.Entries = len(used)
	var entries []float32 // [u, d]
	for _, c := range used {
		entries = append(entries, e.entry(c)...)
	}
	f.Coherence = coherence(entries, e.D)
	f.RankCodebook = EffectiveRank(entries, e.D)
	f.RankZ, f.RankBundle = EffectiveRank(centred(e.Z, e.D), e.D), EffectiveRank(centred(e.Bundle, e.D), e.D)
	return f, nil
}

func (e Encodings) entry(c int) []float32 { return e.Codebook[c*e.D : (c+1)*e.D] }

// used lists the entries that at least one slot uses, ascending.
func (e Encodings) used() (list []int) {
	in := make([]bool, len(e.Codebook)/e.D)
	for _, c := range e.Codes {
		in[c] = true
	}
	for c, yes := range in {
		if yes {
			list = append(list, c)
		}
	}
	return list
}

// codesInUse is the sum over slots of the number of codes that each uses.
func (e Encodings) codesInUse() int {
	type pair struct {
		slot int
		code int32
	}
	seen := map[pair]bool{}
	for at, c := range e.Codes {
		seen[pair{at % e.M, c}] = true
	}
	return len(seen)
}

// meanCos is the mean cosine of corresponding rows of length d; pairs with a zero vector are excluded.
func meanCos(a, b []float32, d int) model.Score {
	sum, count := 0.0, 0
	for at := 0; at < len(a); at += d {
		if c := cosine(a[at:at+d], b[at:at+d]); !math.IsNaN(c) {
			sum += c
			count++
		}
	}
	return model.Score(sum / float64(count))
}

// cosine is NaN if either vector is zero.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

func equalShare(a, b []int32) model.Score {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return model.Score(float64(same) / float64(len(a)))
}

// coherence is the standard deviation of the cosines of all pairs of distinct rows; undefined for fewer than three rows, which make
// fewer than two pairs.
func coherence(rows []float32, d int) model.Score {
	var all []float64
	for a := 0; a < len(rows); a += d {
		for b := a + d; b < len(rows); b += d {
			if c := cosine(rows[a:a+d], rows[b:b+d]); !math.IsNaN(c) {
				all = append(all, c)
			}
		}
	}
	if len(all) < 2 {
		return model.Undefined()
	}
	return model.Score(stat.PopStdDev(all, nil))
}

// centred subtracts the mean row.
func centred(rows []float32, d int) []float32 {
	mean := make([]float64, d)
	for at, v := range rows {
		mean[at%d] += float64(v) * float64(d) / float64(len(rows))
	}
	out := make([]float32, len(rows))
	for at, v := range rows {
		out[at] = float32(float64(v) - mean[at%d])
	}
	return out
}

// EffectiveRank is the effective number of directions spanned by rows of d numbers, 1 to min(rows, d).
//
//	exp( −Σ p_i ln p_i ),  p_i = σ_i² / Σ σ²            Roy and Vetterli 2007, of squared singular values σ²
//
// It is undefined if all rows are zero.
func EffectiveRank(rows []float32, d int) model.Score {
	gram := mat.NewSymDense(d, nil) // Xᵀ X, eigenvalues σ²
	row := make([]float64, d)
	for at := 0; at < len(rows); at += d {
		for i := range row {
			row[i] = float64(rows[at+i])
		}
		gram.SymRankOne(gram, 1, mat.NewVecDense(d, row))
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, false) {
		return model.Undefined()
	}
	total, entropy := 0.0, 0.0
	values := eigen.Values(nil)
	for _, v := range values {
		total += max(0, v)
	}
	if total <= 0 {
		return model.Undefined()
	}
	for _, v := range values {
		if p := max(0, v) / total; p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return model.Score(math.Exp(entropy))
}

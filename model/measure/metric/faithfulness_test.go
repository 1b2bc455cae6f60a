package metric

import (
	"math"
	"math/rand/v2"
	"testing"

	"slotscope/model"
)

// bind is the circular convolution of a and b.
func bind(a, b []float32) []float32 {
	out := make([]float32, len(a))
	for i, x := range a {
		for j, y := range b {
			out[(i+j)%len(a)] += x * y
		}
	}
	return out
}

// unbind is the circular correlation of s with z.
func unbind(s, z []float32) []float32 {
	out := make([]float32, len(s))
	for n := range s {
		for i, x := range s {
			out[n] += x * z[(i+n)%len(z)]
		}
	}
	return out
}

func gaussian(rng *rand.Rand, n, d int) []float32 {
	out := make([]float32, n*d)
	for i := range out {
		out[i] = float32(rng.NormFloat64() / math.Sqrt(float64(d)))
	}
	return out
}

// planted is n images of an HRR with random symbols and entries; z is the bundle of its codes, or random if tied is false.
func planted(n, m, k, d int, tied bool) Encodings {
	rng := rand.New(rand.NewPCG(7, uint64(d)))
	symbols := gaussian(rng, m, d)
	e := Encodings{M: m, D: d, Codebook: gaussian(rng, k, d)}
	for range n {
		bundle := make([]float32, d)
		for i := range m {
			c := int32(rng.IntN(k))
			e.Codes = append(e.Codes, c)
			e.Denoised = append(e.Denoised, e.entry(int(c))...)
			for at, v := range bind(symbols[i*d:(i+1)*d], e.entry(int(c))) {
				bundle[at] += v
			}
		}
		z := bundle
		if !tied {
			z = gaussian(rng, 1, d)
		}
		e.Z, e.Bundle = append(e.Z, z...), append(e.Bundle, bundle...)
		for i := range m {
			s := symbols[i*d : (i+1)*d]
			e.Retrieved = append(e.Retrieved, unbind(s, z)...)
			e.CleanedUp = append(e.CleanedUp, e.nearest(unbind(s, bundle)))
		}
	}
	e.Again = e.CleanedUp
	return e
}

func (e Encodings) nearest(v []float32) (best int32) {
	least := math.Inf(1)
	for c := 0; c < len(e.Codebook)/e.D; c++ {
		sum := 0.0
		for i, x := range e.entry(c) {
			sum += float64(x-v[i]) * float64(x-v[i])
		}
		if sum < least {
			best, least = int32(c), sum
		}
	}
	return best
}

// TestPerfectHRR: if z is the bundle of its codes, every score has the value of a true HRR.
func TestPerfectHRR(t *testing.T) {
	const n, m, k, d = 60, 3, 16, 512
	f, err := MeasureFaithfulness(planted(n, m, k, d, true))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name            string
		got             model.Score
		want, tolerance float64
	}{
		{"cos_bundle", f.CosBundle, f.True.CosBundle, 1e-6},
		{"cos_retrieval", f.CosRetrieval, f.True.CosRetrieval, 0.03},
		{"cos_denoised", f.CosDenoised, 1, 1e-6},
		{"reencode", f.Reencode, 1, 0},
		{"cleanup", f.Cleanup, 1, 0},
		{"chance", f.Chance, 1.0 / k, 0.002},
		{"energy", f.Energy, m, 0.4},
		{"coherence", f.Coherence, f.True.Coherence, 0.01},
		{"rank_codebook", f.RankCodebook, k, 1},
	} {
		if math.Abs(float64(c.got)-c.want) > c.tolerance {
			t.Errorf("%s is %v, want %v ± %v for a true HRR", c.name, c.got, c.want, c.tolerance)
		}
	}
	if f.RankZ != f.RankBundle || f.RankZ < 20 || f.RankZ > m*k || f.Entries != k || f.Images != n {
		t.Errorf("ranks %v and %v, %d entries of %d images", f.RankZ, f.RankBundle, f.Entries, f.Images)
	}
}

// TestUntiedHRR: the scores reveal an encoder that does not output the bundle of its codes.
func TestUntiedHRR(t *testing.T) {
	f, err := MeasureFaithfulness(planted(60, 3, 16, 512, false))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(float64(f.CosBundle)) > 0.03 || math.Abs(float64(f.CosRetrieval)) > 0.03 || f.Cleanup != 1 {
		t.Errorf("z is noise, but cos_bundle is %v and cos_retrieval %v; cleanup %v depends on the bundle only", f.CosBundle, f.CosRetrieval, f.Cleanup)
	}
}

func TestFaithfulnessOfWrongArrays(t *testing.T) {
	for name, spoil := range map[string]func(e *Encodings){
		"no images":  func(e *Encodings) { e.Z = nil },
		"short":      func(e *Encodings) { e.Again = e.Again[1:] },
		"wrong code": func(e *Encodings) { e.Codes[3] = 16 },
	} {
		e := planted(4, 3, 16, 64, true)
		if spoil(&e); e.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestEffectiveRank(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []float32
		want float64
	}{
		{"orthogonal", []float32{1, 0, 0, 0, 1, 0, 0, 0, -1}, 3},
		{"one direction", []float32{1, 2, 3, -2, -4, -6}, 1},
		{"two, four to one", []float32{2, 0, 0, 0, 1, 0}, math.Exp(-0.8*math.Log(0.8) - 0.2*math.Log(0.2))},
	} {
		if got := float64(EffectiveRank(c.rows, 3)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if EffectiveRank(make([]float32, 6), 3).Defined() {
		t.Error("got a rank for zero rows")
	}
	if got := coherence([]float32{1, 0, 0, 1, -1, 0}, 2); math.Abs(float64(got)-math.Sqrt(2)/3) > 1e-9 { // cosines 0, −1, 0
		t.Errorf("coherence %v", got)
	}
}

package metric

import (
	"math/rand/v2"
	"testing"
)

// paperTable has the size of the paper's evaluation: 10,000 rows, nine slots of 512 codes, the six factors of Shapes3D. Six slots encode a
// factor, with each value spread over many codes and some noise; three slots are noise.
func paperTable(n int) Table {
	rng := rand.New(rand.NewPCG(7, 11))
	sizes := []int{10, 10, 10, 8, 4, 15}
	t := Table{Factors: make([][]int, len(sizes)), Codes: make([][]int, 9)}
	for range n {
		for i, k := range sizes {
			t.Factors[i] = append(t.Factors[i], rng.IntN(k))
		}
		row := len(t.Factors[0]) - 1
		for j := range t.Codes {
			code := rng.IntN(512)
			if j < len(sizes) && rng.IntN(20) > 0 {
				k := sizes[j]
				code = t.Factors[j][row]*(512/k) + rng.IntN(512/k)
			}
			t.Codes[j] = append(t.Codes[j], code)
		}
	}
	return t
}

// BenchmarkMeasure measures everything that `slotscope metrics` computes: at most ten seconds on two cores.
func BenchmarkMeasure(b *testing.B) {
	t := paperTable(10000)
	for b.Loop() {
		if _, err := Measure(b.Context(), t, Options{Workers: 2}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInfoMC measures InfoM and InfoC alone: at most a second.
func BenchmarkInfoMC(b *testing.B) {
	t := paperTable(10000)
	for b.Loop() {
		r := relate(t, labelAll(t.Factors), 0)
		r.infoM()
		r.infoC()
	}
}

// BenchmarkExplicitness measures one regression, for the factor with the most values.
func BenchmarkExplicitness(b *testing.B) {
	t := paperTable(10000)
	x, s := designOf(t), label(t.Factors[5])
	for b.Loop() {
		if _, err := explicitness(b.Context(), x, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkField measures all scores of other papers: at most a minute on two cores.
func BenchmarkField(b *testing.B) {
	t := paperTable(10000)
	for b.Loop() {
		if _, err := Field(b.Context(), t, Extra{}, Options{Workers: 2}); err != nil {
			b.Fatal(err)
		}
	}
}

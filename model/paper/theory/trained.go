package theory

import "gonum.org/v1/gonum/floats"

// Trained holds the theory's quantities of a trained model, means over tuples of its codes.
type Trained struct {
	SNR              []float64 // [m] of retrievals from ẑ, the bundle of the codes; nil with exact inverses
	Pair             Pair      // of the values of two slots
	TotalCorrelation float64   // nats, with the posterior floor ratio · Σᵢ‖vᵢ‖²/d² per component
	Bound            float64   // on TotalCorrelation, nats; +Inf where it is trivial
}

// TrainedOf draws n tuples of codes, each slot by its own code usage, and measures them. symbols is [m][d], entries [k][d], counts [m][k];
// ratio is ρ, the posterior floor relative to the retrieval noise. With exact inverses there is no retrieval noise, so no SNR.
func TrainedOf(symbols, entries [][]float64, counts [][]int, n int, exact bool, ratio float64) (t Trained) {
	samples := SampleValues(entries, counts, n, 1)
	if !exact {
		t.SNR = SlotSNR(symbols, samples)
	}
	of := float64(len(samples))
	for _, values := range samples {
		tau2 := ratio * energy(values) / float64(len(values[0]))
		pair := Pairs(values)
		t.Pair.Frobenius2 += pair.Frobenius2 / of
		t.Pair.Operator += pair.Operator / of
		t.TotalCorrelation += TotalCorrelation(values, tau2) / of
		t.Bound += DeltaOf(values).Bound(tau2) / of
	}
	return t
}

// energy returns Σᵢ‖vᵢ‖² of a sample's values; m for HRR vectors.
func energy(values [][]float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += floats.Dot(v, v)
	}
	return sum
}

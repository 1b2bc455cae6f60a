package loss

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute"
)

// The KL divergence of Gaussians, by hand: mean over two images of the sum over two latents.
func TestKLByHand(t *testing.T) {
	mean, logVar := [][]float32{{0, 1}, {2, 0}}, [][]float32{{0, 0}, {float32(math.Log(4)), float32(math.Log(0.25))}}
	// image 1: 0 + ½·1; image 2: ½ (4 + 4 − log 4 − 1) + ½ (¼ + log 4 − 1)
	want := (0.5 + 0.5*(7-math.Log(4)) + 0.5*(math.Log(4)-0.75)) / 2
	if got := run(t, KL, mean, logVar)[0][0]; math.Abs(float64(got)-want) > 1e-6 {
		t.Errorf("KL is %v, want %v", got, want)
	}
}

// The parts of the KL divergence on cases where they are known. Means are so far apart that posteriors do not overlap, and the variance
// is 1, so densities are those of whole images.
func TestDecomposition(t *testing.T) {
	const far = 40
	for name, c := range map[string]struct {
		mean   [][]float32
		mi, tc float64
	}{
		// four images at the corners of a square: each latent carries one bit, both together two
		"independent": {[][]float32{{0, 0}, {0, far}, {far, 0}, {far, far}}, math.Log(4), 0},
		// two latents that always agree: one bit in each, one in all
		"copies": {[][]float32{{0, 0}, {far, far}, {0, 0}, {far, far}}, math.Log(2), math.Log(2)},
		// all images have the same latents
		"prior": {[][]float32{{0, 0}, {0, 0}, {0, 0}, {0, 0}}, 0, 0},
	} {
		got := parts(t, c.mean, c.mean)
		if math.Abs(got.mi-c.mi) > 1e-4 || math.Abs(got.tc-c.tc) > 1e-4 {
			t.Errorf("%s: MI %v and TC %v, want %v and %v", name, got.mi, got.tc, c.mi, c.tc)
		}
		if sum := got.mi + got.tc + got.dw; math.Abs(sum-got.draw) > 1e-3*math.Max(1, got.draw) {
			t.Errorf("%s: MI + TC + DWKL is %v, log q(z|x)/p(z) is %v", name, sum, got.draw)
		}
	}
}

type decomposition struct{ mi, tc, dw, draw float64 }

// parts decomposes samples z of unit posteriors around means; draw is the mean of log q(z|x)/p(z).
func parts(t *testing.T, z, mean [][]float32) decomposition {
	t.Helper()
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	out := MustExecOnceN(engine.Backend, func(z, mean *Node) []*Node {
		p := DensitiesOf(z, mean, ZerosLike(mean))
		return []*Node{MutualInformation(p), TotalCorrelation(p), DimensionKL(p), ReduceAllMean(Sub(p.Conditional, p.Prior))}
	}, z, mean)
	at := func(i int) float64 { return float64(tensors.ToScalar[float32](out[i])) }
	return decomposition{at(0), at(1), at(2), at(3)}
}

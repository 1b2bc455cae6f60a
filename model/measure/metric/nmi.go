package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// neighbours is k of the Ross estimator, as in Hsu et al.'s code.
const neighbours = 10

// mutual is the plug-in mutual information of two columns in nats.
//
//	I(s; z) = Σ p(s, z) ln( p(s, z) / p(s)p(z) ) ≥ 0
func mutual(s, z labels) float64 {
	joint := make([]uint64, len(s.of))
	for r, v := range s.of {
		joint[r] = uint64(v)<<32 | uint64(z.of[r])
	}
	slices.Sort(joint)
	n, sum := float64(len(joint)), 0.0
	cs, cz := s.counts(), z.counts()
	for start := 0; start < len(joint); {
		end := start + 1
		for end < len(joint) && joint[end] == joint[start] {
			end++
		}
		c, a, b := float64(end-start), joint[start]>>32, uint32(joint[start])
		sum += c / n * math.Log(c*n/float64(cs[a])/float64(cz[b]))
		start = end
	}
	return max(0, sum)
}

// jittered is a standardized column plus noise of relative size 1e-10, which breaks ties.
func jittered(column []float64, rng *rand.Rand) []float64 {
	mean := 0.0
	for _, v := range column {
		mean += math.Abs(v) / float64(len(column))
	}
	out := make([]float64, len(column))
	for r, v := range column {
		out[r] = v + 1e-10*max(1, mean)*rng.NormFloat64()
	}
	return out
}

// ross estimates the mutual information between classes and a number, in nats.
//
//	I = ψ(N) + ⟨ψ(k)⟩ − ⟨ψ(c)⟩ − ⟨ψ(M)⟩ ≥ 0            Ross 2014, eq. 2
//
// c is the size of a row's class, k = min(10, c−1), and M is the number of rows, including itself, that are closer than its k-th
// neighbour within its class. Rows that are alone in their class are excluded.
func ross(s labels, x []float64) float64 {
	classes := make([][]float64, s.k)
	for r, v := range s.of {
		classes[v] = append(classes[v], x[r])
	}
	all := make([]float64, 0, len(x))
	for _, c := range classes {
		if len(c) > 1 {
			slices.Sort(c)
			all = append(all, c...)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	n, sum := float64(len(all)), 0.0
	for _, c := range classes {
		if len(c) > 1 {
			k := min(neighbours, len(c)-1)
			sum += float64(len(c))*(mathext.Digamma(float64(k))-mathext.Digamma(float64(len(c)))) - nearer(c, all, k)
		}
	}
	return max(0, mathext.Digamma(n)+sum/n)
}

// nearer is Σ ψ(M) over one class; both slices are sorted. It compares distances as differences, because v − r would include the
// k-th neighbour through rounding.
func nearer(class, all []float64, k int) float64 {
	sum, window := 0.0, 0
	for i, v := range class {
		for window < i-k || window+k < len(class)-1 && window < i && class[window+k+1]-v < v-class[window] {
			window++ // the k+1 nearest rows, including itself, are class[window : window+k+1]
		}
		r := math.Nextafter(max(v-class[window], class[window+k]-v), 0)
		low := sort.Search(len(all), func(a int) bool { return v-all[a] <= r })
		high := sort.Search(len(all), func(a int) bool { return all[a]-v > r })
		sum += mathext.Digamma(float64(high - low))
	}
	return sum
}

package metric

import (
	"encoding/binary"
	"math"
	"slices"

	"slotscope/model"
)

// Entropy is the plug-in entropy of counted outcomes in nats, 0 if nothing was counted.
//
//	H = −Σ_j p_j ln p_j,  p_j = counts_j / Σ counts         0 … ln k
//
// It underestimates the entropy of the source by about (number of distinct outcomes − 1) / 2n on average (Miller 1955).
func Entropy(counts []int) float64 {
	total, sum := 0, 0.0
	for _, c := range counts {
		total += c
		if c > 0 {
			sum += float64(c) * math.Log(float64(c))
		}
	}
	if total == 0 {
		return 0
	}
	return max(0, math.Log(float64(total))-sum/float64(total))
}

// leastCoverage is the coverage below which JointEntropy reports a lower bound.
const leastCoverage = 0.9

// JointEntropy measures the distribution of code tuples (c_1 … c_m) over n images; codes is [n, m]. It is nil without images or slots.
//
//	H(c_1 … c_m) = −Σ_t p_t ln p_t,  p_t = share of images with tuple t      plug-in, 0 … ln n
//	redundancy   = Σ_i H(c_i) − H(c_1 … c_m)                                      ≥ 0; 0 if slots are independent
//
// The plug-in estimate cannot exceed ln n, so it saturates if nearly every image has a unique tuple; coverage is the Good–Turing
// estimate of how much of the source was seen, 1 − (tuples seen once) / n. Below 0.9 the joint entropy is a lower bound and
// redundancy, whose bias has the opposite sign, an upper bound.
func JointEntropy(codes []int32, m int) *model.JointEntropy {
	if m < 1 || len(codes) < m {
		return nil
	}
	n := len(codes) / m
	slots, tuples, key := make([]map[int32]int, m), map[string]int{}, make([]byte, 4*m)
	for i := range slots {
		slots[i] = map[int32]int{}
	}
	for r := range n {
		for i, c := range codes[r*m : (r+1)*m] {
			slots[i][c]++
			binary.LittleEndian.PutUint32(key[4*i:], uint32(c))
		}
		tuples[string(key)]++
	}
	seen := sortedCounts(tuples)
	j := &model.JointEntropy{Images: n, Tuples: len(seen), Nats: Entropy(seen), Ceiling: math.Log(float64(n))}
	for _, counts := range slots {
		h := Entropy(sortedCounts(counts))
		j.Slots = append(j.Slots, h)
		j.Redundancy += h
	}
	j.Redundancy = max(0, j.Redundancy-j.Nats)
	once, _ := slices.BinarySearch(seen, 2)
	j.Coverage = 1 - float64(once)/float64(n)
	j.LowerBound = j.Coverage < leastCoverage
	return j
}

// sortedCounts returns the counts in ascending order, so that sums over them are reproducible.
func sortedCounts[K comparable](of map[K]int) []int {
	counts := make([]int, 0, len(of))
	for _, c := range of {
		counts = append(counts, c)
	}
	slices.Sort(counts)
	return counts
}

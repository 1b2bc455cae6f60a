package play

import (
	"context"
	"fmt"
	"math/rand/v2"

	"slotscope/model/data"
)

// TruePair is two images that differ in every factor, and the number of a checkpoint's groups whose swap is a hit.
type TruePair struct {
	A      int `json:"a"` // index in the dataset
	B      int `json:"b"`
	Hits   int `json:"hits"`   // groups of slots whose swap is a hit, see metric.SwapHit
	Groups int `json:"groups"` // number of groups tried: those with an owned slot
}

// truePairs is the number of pairs tried to find the initial one.
const truePairs = 64

// truePair returns, of truePairs pairs that differ in every factor, the one with the most hits. Ties go to the pair whose swaps gain the most
// PSNR towards their true images. It is nil if no factor owns a slot.
func (m *Model) truePair(ctx context.Context, set data.Set, u *Usage) (*TruePair, error) {
	var groups [][]int
	for _, g := range u.Ownership.Groups {
		if g.Owned {
			groups = append(groups, g.Slots)
		}
	}
	if len(groups) == 0 {
		return nil, nil
	}
	var best *TruePair
	most := 0.0
	for _, pair := range differingPairs(set, truePairs) {
		now, gained := &TruePair{A: pair[0], B: pair[1], Groups: len(groups)}, 0.0
		for _, slots := range groups {
			t, err := m.Truth(ctx, set, u, now.A, now.B, slots)
			if err != nil {
				return nil, fmt.Errorf("comparing swaps with true images: %w", err)
			}
			if t.Hit {
				now.Hits++
			}
			gained += t.PSNR - t.Before
		}
		if best == nil || now.Hits > best.Hits || (now.Hits == best.Hits && gained > most) {
			best, most = now, gained
		}
	}
	return best, nil
}

// differingPairs returns the pair of GoodPair and random pairs that differ in every factor with at least two values, n in total.
func differingPairs(set data.Set, n int) [][2]int {
	info := set.Info()
	rng := rand.New(rand.NewPCG(usageSeed, 'p'))
	a, b := GoodPair(set)
	pairs := [][2]int{{a, b}}
	from, to := make([]int, len(info.Factors)), make([]int, len(info.Factors))
	for len(pairs) < n {
		for f, k := range info.Sizes() {
			from[f] = rng.IntN(k)
			to[f] = (from[f] + rng.IntN(max(1, k-1)) + min(1, k-1)) % k
		}
		a, errA := set.Index(from)
		b, errB := set.Index(to)
		if errA != nil || errB != nil {
			break
		}
		pairs = append(pairs, [2]int{a, b})
	}
	return pairs
}

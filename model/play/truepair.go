package play

import (
	"context"
	"fmt"
	"math/rand/v2"

	"slotscope/model/data"
)

// TruePair is two images that differ in every factor, and how many of a checkpoint's groups give the true picture when they are swapped.
type TruePair struct {
	A      int `json:"a"` // index in the dataset
	B      int `json:"b"`
	Hits   int `json:"hits"`   // groups of slots whose swap is a hit, see metric.SwapHit
	Groups int `json:"groups"` // groups tried: those with an owned slot
}

// truePairs are tried to find one to begin with.
const truePairs = 64

// truePair is, of pairs at random that differ in every factor, the one with the most hits; of equal ones the one whose swaps come closest to
// their true pictures. It is nil where no factor owns a slot.
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
				return nil, fmt.Errorf("comparing swaps with true pictures: %w", err)
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

// differingPairs are the pair of GoodPair, and others at random that differ in every factor with two values or more.
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

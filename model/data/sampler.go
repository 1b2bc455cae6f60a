package data

import (
	"fmt"
	"math/bits"

	"slotscope/model"
)

// Sampler gives the indices of every batch of a run. They follow from (seed, step) alone, so that a resumed run continues the
// same order without having kept anything. In each epoch every image occurs once, in an order of that epoch's own.
type Sampler struct {
	seed          int64
	batch, length int
}

// NewSampler is the order of a run over a set of length images; a batch larger than the set is refused.
func NewSampler(seed int64, batch, length int) (Sampler, error) {
	switch {
	case length < 1:
		return Sampler{}, model.Invalid{"dataset": "the dataset has no images"}
	case batch < 1:
		return Sampler{}, model.Invalid{"batch": fmt.Sprintf("a batch of %d images is not possible", batch)}
	case batch > length:
		return Sampler{}, model.Invalid{"batch": fmt.Sprintf("a batch of %d is larger than the dataset, which holds %d images", batch, length)}
	}
	return Sampler{seed, batch, length}, nil
}

// Batch returns the indices of one step; steps count from 1. The batch at the end of an epoch is filled from the next epoch.
func (s Sampler) Batch(step int) []int {
	index := make([]int, s.batch)
	first := (step - 1) * s.batch
	epoch := first / s.length
	order := newShuffle(s.seed, training, epoch, s.length)
	for b := range index {
		at := first + b
		if e := at / s.length; e != epoch {
			epoch, order = e, newShuffle(s.seed, training, e, s.length)
		}
		index[b] = order.at(at % s.length)
	}
	return index
}

// Epoch is how many times the whole set has been shown once the step is over.
func (s Sampler) Epoch(step int) float64 { return float64(step) * float64(s.batch) / float64(s.length) }

// Draw returns n distinct indices of a set of length images, at random by seed: the evaluation set of a run. A shorter draw of
// the same seed is the beginning of a longer one.
func Draw(seed int64, n, length int) ([]int, error) {
	if n < 0 || n > length {
		return nil, model.Invalid{"eval_images": fmt.Sprintf("%d distinct images cannot be drawn from %d", n, length)}
	}
	order := newShuffle(seed, evaluation, 0, length)
	index := make([]int, n)
	for i := range index {
		index[i] = order.at(i)
	}
	return index, nil
}

// Purposes keep the orders of one seed apart.
const (
	training uint64 = iota + 1
	evaluation
	selection
	correlation
)

// shuffle is a permutation of 0 … length−1 that is computed, not stored: a Feistel network over the least even number of bits
// that hold length, walked along its cycle until the result is in range (fewer than four rounds of it on average).
type shuffle struct {
	length int
	half   int // bits of each half
	keys   [6]uint64
}

func newShuffle(seed int64, purpose uint64, epoch, length int) shuffle {
	s := shuffle{length: length, half: max(1, (bits.Len(uint(length-1))+1)/2)}
	state := mix(mix(mix(uint64(seed))+purpose) + uint64(epoch))
	for i := range s.keys {
		state = mix(state)
		s.keys[i] = state
	}
	return s
}

// at is where position i, 0 ≤ i < length, is sent.
func (s shuffle) at(i int) int {
	for {
		i = s.network(i)
		if i < s.length {
			return i
		}
	}
}

func (s shuffle) network(i int) int {
	mask := uint64(1)<<s.half - 1
	left, right := uint64(i)>>s.half, uint64(i)&mask
	for _, key := range s.keys {
		left, right = right, left^mix(right+key)&mask
	}
	return int(left<<s.half | right)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood 2014) after one step of its state.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

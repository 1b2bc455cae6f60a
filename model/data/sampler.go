package data

import (
	"fmt"
	"math/bits"

	"slotscope/model"
)

// Sampler returns the indices of every batch of a run. They depend only on seed and step, so that a resumed run continues the same
// order without stored state. Every image occurs once in each epoch, and each epoch has its own order.
type Sampler struct {
	seed          int64
	batch, length int
}

// NewSampler returns the sampler of a run on a dataset of length images. A batch larger than the dataset is an error.
func NewSampler(seed int64, batch, length int) (Sampler, error) {
	switch {
	case length < 1:
		return Sampler{}, model.Invalid{"dataset": "the dataset has no images"}
	case batch < 1:
		return Sampler{}, model.Invalid{"batch": fmt.Sprintf("a batch of %d images is not possible; choose at least 1", batch)}
	case batch > length:
		return Sampler{}, model.Invalid{"batch": fmt.Sprintf("a batch of %d is larger than the dataset (%d images); choose at most %d", batch, length, length)}
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

// Epoch returns the number of epochs completed after a step.
func (s Sampler) Epoch(step int) float64 { return float64(step) * float64(s.batch) / float64(s.length) }

// Draw returns n distinct seeded random indices of a dataset of length images: the evaluation set of a run. A shorter draw with the
// same seed is a prefix of a longer one.
func Draw(seed int64, n, length int) ([]int, error) {
	if n < 0 || n > length {
		return nil, model.Invalid{"eval_images": fmt.Sprintf("cannot draw %d distinct images from %d; choose at most %d", n, length, length)}
	}
	order := newShuffle(seed, evaluation, 0, length)
	index := make([]int, n)
	for i := range index {
		index[i] = order.at(i)
	}
	return index, nil
}

// Purposes make the orders of one seed independent.
const (
	training uint64 = iota + 1
	evaluation
	selection
	correlation
)

// shuffle is a permutation of 0 … length−1 that is computed, not stored: a Feistel network over the smallest even number of bits that
// holds length, iterated until the result is in range (fewer than four times on average).
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

// at returns the image of position i, 0 ≤ i < length.
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

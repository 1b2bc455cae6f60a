package data

import (
	"context"
	"fmt"
	"time"
)

// Warmer is a Set that can do its first-use work in advance, on all cores.
type Warmer interface {
	Warm(ctx context.Context) error
}

// Speed is how fast one goroutine can read images from a dataset.
type Speed struct {
	Warm       float64 `json:"warm_seconds"`                 // once, before the first image of Sequential; 0 for sets without a Warm method
	Sequential float64 `json:"sequential_images_per_second"` // in order of index
	Random     float64 `json:"random_images_per_second"`     // in the order of a Sampler
}

// BenchBatch is the number of images read per call.
const BenchBatch = 128

// Bench measures a set for about the given number of seconds, half in order, half at random.
func Bench(ctx context.Context, set Set, seconds float64) (Speed, error) {
	var speed Speed
	length := set.Info().Len
	batch := min(BenchBatch, length)
	sampler, err := NewSampler(0, batch, length)
	if err != nil {
		return speed, err
	}
	if speed.Warm, err = warm(ctx, set); err != nil {
		return speed, err
	}
	half := time.Duration(seconds / 2 * float64(time.Second))
	if speed.Sequential, err = rate(ctx, set, half, func(step int) []int { return inOrder(step, batch, length) }); err != nil {
		return speed, err
	}
	speed.Random, err = rate(ctx, set, half, sampler.Batch)
	return speed, err
}

func warm(ctx context.Context, set Set) (seconds float64, err error) {
	w, ok := set.(Warmer)
	if !ok {
		return 0, nil
	}
	start := time.Now()
	err = w.Warm(ctx)
	return time.Since(start).Seconds(), err
}

func inOrder(step, batch, length int) []int {
	index := make([]int, batch)
	for b := range index {
		index[b] = ((step-1)*batch + b) % length
	}
	return index
}

// rate reads batches for the given time, at least one, and returns images per second.
func rate(ctx context.Context, set Set, limit time.Duration, batch func(step int) []int) (float64, error) {
	info := set.Info()
	var dst []byte
	images := 0
	start := time.Now()
	for step := 1; images == 0 || time.Since(start) < limit; step++ {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("measuring %s: %w", info.Name, err)
		}
		index := batch(step)
		if dst == nil {
			dst = make([]byte, len(index)*info.H*info.W*info.C)
		}
		if err := set.Images(dst, index); err != nil {
			return 0, fmt.Errorf("measuring %s: %w", info.Name, err)
		}
		images += len(index)
	}
	return float64(images) / time.Since(start).Seconds(), nil
}

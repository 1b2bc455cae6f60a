package play

import (
	"context"
	"fmt"
	"image"
	"slices"

	"slotscope/model"
	"slotscope/model/data"
)

// Pair is the paper's qualitative experiment on images A and B of a dataset, with one checkpoint. The reconstructions of A and B are Strip[0]
// and Strip[m].
type Pair struct {
	Originals [2]image.Image
	Swaps     []image.Image // [m] A with slot i of B
	Changed   []float64     // [m] fraction of pixels that the swap of slot i changes, see Difference
	Strip     []image.Image // [m+1] A, then one more slot of B in each, in slot order
}

// Pair runs the experiment on images a and b of the run's dataset with its newest checkpoint. It returns a model.Invalid for an index outside
// the dataset; the error wraps model.ErrNotFound if the run has no checkpoint.
func (l *Library) Pair(ctx context.Context, run string, a, b int) (Pair, error) {
	src, err := l.Find(run)
	if err != nil {
		return Pair{}, err
	}
	set, err := l.Set(ctx, src.Config.Dataset)
	if err != nil {
		return Pair{}, err
	}
	m, release, err := l.Use(ctx, src)
	if err != nil {
		return Pair{}, err
	}
	defer release()
	pixels, err := m.images(set, a, b)
	if err != nil {
		return Pair{}, err
	}
	return m.pair(ctx, pixels)
}

// images reads images of a dataset by index: [len(numbers), H, W, C] bytes.
func (m *Model) images(set data.Set, numbers ...int) ([]byte, error) {
	info := set.Info()
	if info.H != m.Image.H || info.W != m.Image.W || info.C != m.Image.C {
		return nil, model.Invalid{"dataset": fmt.Sprintf("images of %s are %d × %d × %d, but this checkpoint takes %d × %d × %d",
			info.Name, info.H, info.W, info.C, m.Image.H, m.Image.W, m.Image.C)}
	}
	for i, n := range numbers {
		if n < 0 || n >= info.Len {
			return nil, model.Invalid{string(rune('a' + i)): fmt.Sprintf("%d is not an image index of %s; choose 0–%d", n, info.Name, info.Len-1)}
		}
	}
	pixels := make([]byte, len(numbers)*m.Size())
	return pixels, set.Images(pixels, numbers)
}

func (m *Model) pair(ctx context.Context, pixels []byte) (Pair, error) {
	codes, err := m.Encode(ctx, pixels)
	if err != nil {
		return Pair{}, err
	}
	swaps := Swaps(codes[0], codes[1])
	order, err := ParseOrder("", len(codes[0]))
	if err != nil {
		return Pair{}, err
	}
	decoded, err := m.Decode(ctx, Strip, slices.Concat(swaps, Interpolation(codes[0], codes[1], order)))
	if err != nil {
		return Pair{}, err
	}
	p := Pair{Originals: [2]image.Image{Picture(pixels[:m.Size()], m.Image, 1), Picture(pixels[m.Size():], m.Image, 1)}}
	for i, out := range decoded {
		if i < len(swaps) {
			p.Swaps = append(p.Swaps, Picture(out, m.Image, 1))
			p.Changed = append(p.Changed, Compare(decoded[len(swaps)], out, m.Image.C).Changed)
		} else {
			p.Strip = append(p.Strip, Picture(out, m.Image, 1))
		}
	}
	return p, nil
}

// GoodPair returns two images that differ in every factor with at least two values.
func GoodPair(set data.Set) (a, b int) {
	sizes := set.Info().Sizes()
	first, second := make([]int, len(sizes)), make([]int, len(sizes))
	for f, n := range sizes {
		first[f] = n * (1 + 2*(f%3)) / 10 // varied values give one image contrasting colours
		second[f] = (first[f] + (n+1)/2) % n
	}
	a, errA := set.Index(first)
	b, errB := set.Index(second)
	if errA != nil || errB != nil {
		return 0, set.Info().Len - 1
	}
	return a, b
}

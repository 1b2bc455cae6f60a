package play

import (
	"context"
	"fmt"
	"image"
	"slices"

	"slotscope/model"
	"slotscope/model/data"
)

// Pair is the paper's qualitative experiment on images A and B of a dataset, as one checkpoint does it. Without a slot
// changed, A is Strip[0]; B is Strip[m].
type Pair struct {
	Originals [2]image.Image
	Swaps     []image.Image // [m]: A with slot i of B
	Changed   []float64     // [m]: fraction of pixels that the swap of slot i changes, as Compare counts them
	Strip     []image.Image // [m+1]: A, then one more slot of B in each, in the slots' order
}

// Pair takes images a and b of the run's dataset through its newest checkpoint. A number that the dataset does not have is
// model.Invalid; model.ErrNotFound is in the chain where there is no such checkpoint.
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

// images reads images of a set by number, one after another: [len(numbers), H, W, C] bytes.
func (m *Model) images(set data.Set, numbers ...int) ([]byte, error) {
	info := set.Info()
	if info.H != m.Image.H || info.W != m.Image.W || info.C != m.Image.C {
		return nil, model.Invalid{"dataset": fmt.Sprintf("%s has images of another size than this checkpoint reads", info.Name)}
	}
	for i, n := range numbers {
		if n < 0 || n >= info.Len {
			return nil, model.Invalid{string(rune('a' + i)): fmt.Sprintf("%d is not an image of %s, which are numbered 0 to %d", n, info.Name, info.Len-1)}
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

// GoodPair picks two images of a set of which no factor has the same value, where every factor has two.
func GoodPair(set data.Set) (a, b int) {
	sizes := set.Info().Sizes()
	first, second := make([]int, len(sizes)), make([]int, len(sizes))
	for f, n := range sizes {
		first[f] = n * (1 + 2*(f%3)) / 10 // an eye sees more where colours of one image differ
		second[f] = (first[f] + (n+1)/2) % n
	}
	a, errA := set.Index(first)
	b, errB := set.Index(second)
	if errA != nil || errB != nil {
		return 0, set.Info().Len - 1
	}
	return a, b
}

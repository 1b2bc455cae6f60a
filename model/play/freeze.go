package play

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
)

// Frozen is what a page needs of a checkpoint to be a playground without a server.
type Frozen struct {
	Source     Source
	Weights    []byte       // a weights file whose numbers' bytes lie apart, see weights.Planes
	Type       weights.Type // float16 where that changes no byte of a picture by more than 1
	Difference int          // the largest difference that float16 makes to a byte, over the tuples compared
	Examples   []Example    // pictures to begin with; of a grid, all mixtures of the first two
	Sheet      []byte       // PNG: the examples side by side, which takes three fifths of what rows of eight do
	Usage      *Usage       // nil where the dataset cannot be opened
}

// Example is a picture of the dataset as the model encodes it.
type Example struct {
	Index   int     `json:"index"`
	Classes []int   `json:"classes"`
	Codes   []int   `json:"codes"`
	PSNR    float64 `json:"psnr"` // dB of the reconstruction
}

const (
	examplesFrozen = 64
	tuplesCompared = 32
)

// Freeze gathers what a page needs of a checkpoint; it counts the use of codes first, where that has not been done. like, where it is
// not empty, are the examples of another model of the page on the same dataset, so that both can stand side by side. A model that takes
// more than MaxWeights is model.Invalid.
func (l *Library) Freeze(ctx context.Context, src Source, like []Example) (Frozen, error) {
	file, err := src.read()
	if err != nil {
		return Frozen{}, err
	}
	if adopt.Is(file) {
		return Frozen{}, NoWeights(src)
	}
	if size := weightsSize(file); size/2 > MaxWeights {
		return Frozen{}, model.Invalid{"checkpoint": fmt.Sprintf("%s takes %.0f MB as float16; a frozen page holds at most %d MB, so freeze a smaller preset",
			src.Title, float64(size)/2/(1<<20), MaxWeights>>20)}
	}
	m, release, err := l.Use(ctx, src)
	if err != nil {
		return Frozen{}, err
	}
	defer release()
	out := Frozen{Source: src}
	if out.Difference, err = m.rounding(ctx, l, file); err != nil {
		return Frozen{}, err
	}
	if out.Type = weights.Float16; out.Difference > 1 {
		out.Type = weights.Float32
	}
	raw, err := weights.Encode(file, out.Type)
	if err != nil {
		return Frozen{}, err
	}
	out.Weights = weights.Planes(raw)
	set, err := l.Set(ctx, src.Config.Dataset)
	if err != nil {
		return out, nil // codes can be played with without pictures
	}
	if out.Usage, err = l.waitUsage(ctx, src); err != nil {
		return Frozen{}, err
	}
	index := indicesOf(like)
	if len(index) == 0 {
		index = exampleIndices(set, out.Usage)
	}
	err = m.exemplify(ctx, set, index, &out)
	return out, err
}

// NoWeights says of an adopted model why what needs weights cannot be made of it.
func NoWeights(src Source) error {
	return model.Invalid{"checkpoint": src.Title + " runs as a program of its own, so its weights are not here"}
}

// rounding is the largest difference that float16 makes to a byte of a picture, over random tuples.
func (m *Model) rounding(ctx context.Context, l *Library, file checkpoint.File) (int, error) {
	rounded, err := weights.Rounded(file)
	if err != nil {
		return 0, err
	}
	net, err := newNet(l.engine, rounded, m.Image)
	if err != nil {
		return 0, err
	}
	defer net.finalize()
	rng := rand.New(rand.NewPCG(usageSeed, uint64(m.Config.M)))
	most := 0
	for range tuplesCompared {
		tuple, codes := make([]int, m.Config.M), make([]int32, m.Config.M)
		for i := range tuple {
			tuple[i] = rng.IntN(m.Codes())
			if m.Continuous() {
				tuple[i] = gridZero + rng.IntN(6*gridSteps) - 3*gridSteps
			}
			codes[i] = int32(tuple[i])
		}
		want, err := m.Decode(ctx, Background, [][]int{tuple})
		if err != nil {
			return 0, err
		}
		got, err := net.decode(codes, 1)
		if err != nil {
			return 0, err
		}
		for i, b := range want[0] {
			d := int(b) - int(got[i])
			most = max(most, d, -d)
		}
	}
	return most, nil
}

// waitUsage waits for the count of a checkpoint's codes.
func (l *Library) waitUsage(ctx context.Context, src Source) (*Usage, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		c := l.Usage(src)
		if c.Usage != nil || c.Err != nil {
			return c.Usage, c.Err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func indicesOf(examples []Example) (index []int) {
	for _, e := range examples {
		index = append(index, e.Index)
	}
	return index
}

// exemplify encodes the examples.
func (m *Model) exemplify(ctx context.Context, set data.Set, index []int, out *Frozen) error {
	pixels, err := m.images(set, index...)
	if err != nil {
		return err
	}
	codes, err := m.Encode(ctx, pixels)
	if err != nil {
		return err
	}
	decoded, err := m.Decode(ctx, Background, codes)
	if err != nil {
		return err
	}
	factors := len(set.Info().Factors)
	classes := make([]int, len(index)*factors)
	if err := set.Classes(classes, index); err != nil {
		return err
	}
	sheet := image.NewRGBA(image.Rect(0, 0, len(index)*m.Image.W, m.Image.H))
	for n, i := range index {
		picture := pixels[n*m.Size() : (n+1)*m.Size()]
		out.Examples = append(out.Examples, Example{i, classes[n*factors : (n+1)*factors], codes[n], Compare(picture, decoded[n], m.Image.C).PSNR})
		at := image.Pt(n*m.Image.W, 0)
		draw.Draw(sheet, image.Rect(0, 0, m.Image.W, m.Image.H).Add(at), Picture(picture, m.Image, 1), image.Point{}, draw.Src)
	}
	var buf bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&buf, sheet); err != nil {
		return fmt.Errorf("writing the sheet of examples: %w", err)
	}
	out.Sheet = buf.Bytes()
	return nil
}

// exampleIndices are a good pair, then of a grid all that take some factors from the first and the others from the second, so that
// every swap of a factor has its true picture; then images at random, up to 64 in all.
func exampleIndices(set data.Set, u *Usage) []int {
	info := set.Info()
	a, b := GoodPair(set)
	if u.Pair != nil {
		a, b = u.Pair.A, u.Pair.B
	}
	index := []int{a, b}
	add := func(i int) {
		if len(index) < min(examplesFrozen, info.Len) && !slices.Contains(index, i) {
			index = append(index, i)
		}
	}
	from, to := make([]int, len(info.Factors)), make([]int, len(info.Factors))
	if set.Classes(from, []int{a}) == nil && set.Classes(to, []int{b}) == nil {
		for mixture := range 1 << min(len(from), 6) {
			classes := slices.Clone(from)
			for f := range min(len(from), 6) {
				if mixture>>f&1 == 1 {
					classes[f] = to[f]
				}
			}
			if i, err := set.Index(classes); err == nil {
				add(i)
			}
		}
	}
	for _, i := range drawIndices(2*examplesFrozen, info.Len) {
		add(i)
	}
	return slices.Compact(index)
}

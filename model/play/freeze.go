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

// Frozen is a checkpoint's data for a playground page without a server.
type Frozen struct {
	Source     Source
	Weights    []byte       // a weights file in byte planes, see weights.Planes
	Type       weights.Type // float16 if that changes no byte of an image by more than 1
	Difference int          // largest change of a byte by float16, over the tuples compared
	Examples   []Example    // images to choose from; for a complete dataset including all mixtures of the first two
	Sheet      []byte       // PNG of the examples side by side, 40% smaller than in rows of eight
	Usage      *Usage       // nil if the dataset cannot be opened
}

// Example is an image of the dataset as encoded by the model.
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

// Freeze collects a checkpoint's data for a page without a server, and first counts its codes if necessary. If like is not empty, it uses the
// same images: examples of another model on the same dataset, so that both can be compared side by side. It returns a model.Invalid if the
// float16 weights take more than MaxWeights.
func (l *Library) Freeze(ctx context.Context, src Source, like []Example) (Frozen, error) {
	file, err := src.read()
	if err != nil {
		return Frozen{}, err
	}
	if adopt.Is(file) {
		return Frozen{}, NoWeights(src)
	}
	if size := weightsSize(file); size/2 > MaxWeights {
		return Frozen{}, model.Invalid{"checkpoint": fmt.Sprintf("%s has %.0f MB of weights as float16; a frozen page can have at most %d MB, so choose a smaller preset",
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
		return out, nil // codes can be edited without images
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

// NoWeights is the error for operations that need the weights of an adopted model.
func NoWeights(src Source) error {
	return model.Invalid{"checkpoint": src.Title + " runs as an external program, so its weights are not available"}
}

// rounding returns the largest change of an image byte by float16 weights, over random tuples.
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

// waitUsage blocks until a checkpoint's codes are counted.
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

// exemplify encodes the examples and draws their sheet.
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
		return fmt.Errorf("encoding the sheet of examples: %w", err)
	}
	out.Sheet = buf.Bytes()
	return nil
}

// exampleIndices returns a good pair, then all images that mix (up to six of) the pair's factors, so that every factor swap has its true
// image, then random images, up to 64 in total.
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

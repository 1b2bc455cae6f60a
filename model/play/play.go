// Package play opens checkpoints for interactive use: it encodes images to code tuples and decodes code tuples to images. Decoded images are
// cached, and those that a user is dragging are decoded before the rest of the page.
package play

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// Model is an open checkpoint. Its methods are safe for concurrent use.
type Model struct {
	Key    string       // first 16 hex digits of the file's SHA-256, or of its contents' if it was opened from memory
	Config model.Config // of its training
	Step   int          // number of training steps
	Meta   map[string]string
	Image  ae.Image // shape of its images, which are NHWC bytes
	Engine string   // compute engine, such as "cpu"

	coder   coder
	decodes *queue
	encoder sync.Mutex // serializes encoding batches
	cache   *lru.Cache[string, []byte]

	codebook    func() [][]float32
	weights     func() ([]byte, error)
	weightsSize int
	slots       func() Slots
	close       sync.Once
}

// coder is the neural network. It need not support concurrent calls of the same method.
type coder interface {
	encode(images []byte, batch int) ([]int32, error) // batch × H × W × C → batch × m
	decode(codes []int32, batch int) ([]byte, error)  // batch × m → batch × H × W × C
	finalize()
}

// cachedBytes limits the decoded images cached per open checkpoint: 5,461 images of 64 × 64 × 3.
const cachedBytes = 64 << 20

// Open opens a checkpoint on an engine. A graph is compiled on the first batch of its size.
func Open(ctx context.Context, engine *compute.Engine, file checkpoint.File) (*Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if adopt.Is(file) {
		return openAdopted(ctx, file)
	}
	image, err := imageOf(file)
	if err != nil {
		return nil, err
	}
	net, err := newNet(engine, file, image)
	if err != nil {
		return nil, fmt.Errorf("opening a checkpoint of step %d: %w", file.Step, err)
	}
	m := newModel(net, file, image)
	m.Engine = engine.Name
	return m, nil
}

// newModel adds a queue and a cache to a coder.
func newModel(c coder, file checkpoint.File, image ae.Image) *Model {
	size := max(1, image.H*image.W*image.C)
	cache, _ := lru.New[string, []byte](max(256, cachedBytes/size)) // fails only for sizes below 1
	m := &Model{
		Key: keyOf(file), Config: file.Config, Step: file.Step, Meta: file.Meta, Image: image,
		coder: c, cache: cache,
		codebook: sync.OnceValue(func() [][]float32 { return codebookOf(file) }),
	}
	m.weights, m.weightsSize = sync.OnceValues(encodeWeights(file)), weightsSize(file)
	m.slots = sync.OnceValue(func() Slots { return slotsOf(file, m.codebook) })
	m.decodes = newQueue(m.decodeOne)
	return m
}

// imageOf returns the shape of a checkpoint's images: 64 × 64, as in the paper, with the channels of out.weight.
func imageOf(file checkpoint.File) (ae.Image, error) {
	out, ok := file.Tensors["out.weight"]
	if !ok || len(out.Shape) != 4 || out.Shape[0] < 1 {
		return ae.Image{}, model.Invalid{"checkpoint": "out.weight, the decoder's last convolution, is missing; not a Slotscope model"}
	}
	return ae.Image{H: 64, W: 64, C: out.Shape[0]}, nil
}

// Close stops decoding and frees the engine's memory. Callers waiting for images get an error.
func (m *Model) Close() {
	m.close.Do(func() {
		m.decodes.close()
		m.encoder.Lock()
		defer m.encoder.Unlock()
		m.coder.finalize()
	})
}

// Size returns the number of bytes of one image, H · W · C.
func (m *Model) Size() int { return m.Image.H * m.Image.W * m.Image.C }

// Encode returns the codes of images, n × H × W × C bytes: n tuples of m codes.
func (m *Model) Encode(ctx context.Context, images []byte) ([][]int, error) {
	if len(images) == 0 || len(images)%m.Size() != 0 {
		return nil, model.Invalid{"images": fmt.Sprintf("%d bytes are not a whole number of %d × %d × %d images", len(images), m.Image.H, m.Image.W, m.Image.C)}
	}
	n := len(images) / m.Size()
	out := make([][]int, 0, n)
	for start := 0; start < n; start += largestBatch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(n, start+largestBatch)
		codes, err := m.encodeBatch(images[start*m.Size() : end*m.Size()])
		if err != nil {
			return nil, err
		}
		out = append(out, codes...)
	}
	return out, nil
}

func (m *Model) encodeBatch(images []byte) ([][]int, error) {
	n := len(images) / m.Size()
	batch := batchFor(n)
	padded := make([]byte, batch*m.Size())
	copy(padded, images)
	m.encoder.Lock()
	defer m.encoder.Unlock()
	flat, err := m.coder.encode(padded, batch)
	if err != nil {
		return nil, fmt.Errorf("encoding %d images: %w", n, err)
	}
	out := make([][]int, n)
	for b := range out {
		out[b] = make([]int, m.Config.M)
		for i := range out[b] {
			out[b][i] = int(flat[b*m.Config.M+i])
		}
	}
	return out, nil
}

// Decode returns the image of every tuple, H × W × C bytes each. Callers must not modify them, because the cache shares them. The bytes of a
// tuple do not depend on the tuples decoded with it. Urgency orders waiting tuples; cancelling the context withdraws them.
func (m *Model) Decode(ctx context.Context, urgency Urgency, tuples [][]int) ([][]byte, error) {
	if err := m.Check(tuples...); err != nil {
		return nil, err
	}
	out := make([][]byte, len(tuples))
	var missing []int
	for i, t := range tuples {
		image, ok := m.cache.Get(FormatCodes(t))
		if !ok {
			missing = append(missing, i)
			continue
		}
		out[i] = image
	}
	if len(missing) == 0 {
		return out, nil
	}
	want := make([][]int, len(missing))
	for j, i := range missing {
		want[j] = slices.Clone(tuples[i])
	}
	got, err := m.decodes.wait(ctx, urgency, want)
	if err != nil {
		return nil, err
	}
	for j, i := range missing {
		out[i] = got[j]
	}
	return out, nil
}

// decodeOne is called by the queue's worker. It decodes one image at a time, because an engine may sum products in another order in larger
// batches, and the last bit of a byte would then depend on the batch. On two cores, an image takes 1.4 (paper) to
// 1.8 times (small) as long as in a batch of 16; a dragged image waits for at most one other.
func (m *Model) decodeOne(tuple []int) ([]byte, error) {
	codes := make([]int32, len(tuple))
	for i, c := range tuple {
		codes[i] = int32(c)
	}
	pixels, err := m.coder.decode(codes, 1)
	if err != nil {
		return nil, fmt.Errorf("decoding the codes %v: %w", tuple, err)
	}
	m.cache.Add(FormatCodes(tuple), pixels)
	return pixels, nil
}

// batches lists the batch sizes for which encoders are compiled; other sizes are padded.
var batches = []int{1, 4, 16, 64}

const largestBatch = 64

func batchFor(n int) int {
	for _, b := range batches {
		if n <= b {
			return b
		}
	}
	return largestBatch
}

// Package play opens a checkpoint to be handled: images become code tuples, code tuples become images, each tuple decoded once
// and kept. What somebody holds is served before what fills the page around it.
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

// Model is an open checkpoint. Its methods may be called from several goroutines at once.
type Model struct {
	Key    string       // first 16 hex digits of the file's SHA-256, or of its tensors' where it was opened from memory
	Config model.Config // what it was trained with
	Step   int          // gradient steps behind it
	Meta   map[string]string
	Image  ae.Image // of what it reads and draws; images are NHWC bytes
	Engine string   // what computes, as "cpu"

	coder   coder
	decodes *queue
	encoder sync.Mutex // one batch of images is encoded at a time
	cache   *lru.Cache[string, []byte]

	codebook    func() [][]float32
	weights     func() ([]byte, error)
	weightsSize int
	slots       func() Slots
	close       sync.Once
}

// coder is the neural part: batches of a fixed size in, the same number out. It serves one call of each kind at a time.
type coder interface {
	encode(images []byte, batch int) ([]int32, error) // batch × H × W × C → batch × m
	decode(codes []int32, batch int) ([]byte, error)  // batch × m → batch × H × W × C
	finalize()
}

// cachedBytes bounds the decoded images that one open checkpoint keeps: 5,461 images of 64 × 64 × 3.
const cachedBytes = 64 << 20

// Open prepares a checkpoint on an engine. Graphs are compiled when a batch of their size is first asked for.
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

// newModel wraps a coder in queue and cache.
func newModel(c coder, file checkpoint.File, image ae.Image) *Model {
	size := max(1, image.H*image.W*image.C)
	cache, _ := lru.New[string, []byte](max(256, cachedBytes/size)) // fails on sizes below one only
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

// imageOf is the shape of a checkpoint's images: the network of the paper is built for 64 × 64, out.weight tells the channels.
func imageOf(file checkpoint.File) (ae.Image, error) {
	out, ok := file.Tensors["out.weight"]
	if !ok || len(out.Shape) != 4 || out.Shape[0] < 1 {
		return ae.Image{}, model.Invalid{"checkpoint": "out.weight, the decoder's last convolution, is missing, so this is not a model of Slotscope"}
	}
	return ae.Image{H: 64, W: 64, C: out.Shape[0]}, nil
}

// Close ends the work under way and frees the engine's memory; callers waiting for images get an error.
func (m *Model) Close() {
	m.close.Do(func() {
		m.decodes.close()
		m.encoder.Lock()
		defer m.encoder.Unlock()
		m.coder.finalize()
	})
}

// Size is the number of bytes of one image, H · W · C.
func (m *Model) Size() int { return m.Image.H * m.Image.W * m.Image.C }

// Encode returns the code of every slot for each of the images, n × H × W × C bytes: n tuples of m codes.
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

// Decode returns the image of every tuple, H × W × C bytes each, to be read only: they are shared with the cache. The bytes of
// a tuple do not depend on what it was decoded beside. Urgency orders what waits; a context that ends withdraws its tuples.
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

// decodeOne is what the queue's worker calls. Images are decoded one at a time: an engine may add the products of a larger
// batch in another order, and the last bit of a byte would then tell what a tuple was decoded beside. It costs little (tiny: 2.4 ms
// alone, 1.8 ms among sixteen; paper: 46 and 22 ms), and what is held waits for one image at most.
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

// batches are the sizes for which encoders are compiled; what lies between is padded.
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

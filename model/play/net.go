package play

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/ae"
	"slotscope/model/checkpoint"
	"slotscope/model/compute"
)

// net is a model's encoder and decoder, compiled for an engine.
type net struct {
	m     int
	image ae.Image
	store *context.Context
	enc   *context.Exec // [B, H, W, C] bytes → [B, m] int32
	dec   *context.Exec // [B, m] int32 → logits [B, H, W, C]
}

func newNet(engine *compute.Engine, file checkpoint.File, image ae.Image) (n *net, err error) {
	defer compute.Recovered("building its graphs", &err)
	built, err := ae.New(file.Config, image)
	if err != nil {
		return nil, err
	}
	store := context.New().Checked(false)
	if err := built.Import(store, file.Tensors); err != nil {
		return nil, err
	}
	n = &net{m: file.Config.M, image: image, store: store}
	n.enc, err = context.NewExec(engine.Backend, store, func(scope *context.Context, images *Node) *Node {
		x := DivScalar(ConvertDType(images, dtypes.Float32), 255)
		return ConvertDType(built.Encode(scope, x), dtypes.Int32)
	})
	if err != nil {
		return nil, err
	}
	n.dec, err = context.NewExec(engine.Backend, store, func(scope *context.Context, codes *Node) *Node {
		return built.Decode(scope, codes)
	})
	return n, err
}

func (n *net) encode(images []byte, batch int) (codes []int32, err error) {
	defer compute.Recovered("encoding", &err)
	x := tensors.FromFlatDataAndDimensions(images, batch, n.image.H, n.image.W, n.image.C)
	out, err := run(n.enc, x)
	if err != nil {
		return nil, err
	}
	defer out.MustFinalizeAll()
	return tensors.CopyFlatData[int32](out)
}

func (n *net) decode(codes []int32, batch int) (pixels []byte, err error) {
	defer compute.Recovered("decoding", &err)
	out, err := run(n.dec, tensors.FromFlatDataAndDimensions(codes, batch, n.m))
	if err != nil {
		return nil, err
	}
	defer out.MustFinalizeAll()
	err = tensors.ConstFlatData(out, func(logits []float32) { pixels = toBytes(logits) })
	return pixels, err
}

func run(exec *context.Exec, in *tensors.Tensor) (*tensors.Tensor, error) {
	defer in.MustFinalizeAll()
	out, err := exec.Exec(in)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (n *net) finalize() {
	n.enc.Finalize()
	n.dec.Finalize()
	n.store.Finalize()
}

// toBytes rounds the probability of every logit to a byte.
//
//	u = ⌊255 σ(x) + ½⌋            σ(x) = 1 / (1 + e^−x), in float64: the same on every engine
func toBytes(logits []float32) []byte {
	out := make([]byte, len(logits))
	for i, x := range logits {
		out[i] = byte(255/(1+math.Exp(-float64(x))) + 0.5)
	}
	return out
}

// keyOf is the first 16 hex digits of a checkpoint's hash: the file's, where the one who read it left it in Meta, else that of
// configuration, step and tensors in order of name.
func keyOf(file checkpoint.File) string {
	if h := file.Meta[HashKey]; len(h) >= keyLength {
		return h[:keyLength]
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%+v %d", file.Config, file.Step)
	for _, name := range slices.Sorted(maps.Keys(file.Tensors)) {
		io.WriteString(sum, name)
		binary.Write(sum, binary.LittleEndian, file.Tensors[name].Data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyLength]
}

// HashKey is the key of Meta under which a reader leaves the hash of the file, hex SHA-256.
const HashKey = "sha256"

const keyLength = 16

// codebookOf computes the entries [k, d] from a checkpoint's tensors, or nil where they are not there under these names.
//
//	c_j = W₂ · LeakyReLU(W₁ seed_j + b₁) + b₂            paper, Algorithm 2, up to the scale √(1/d)
func codebookOf(file checkpoint.File) [][]float32 {
	seeds, ok := file.Tensors["seeds"]
	if !ok || len(seeds.Shape) != 2 {
		return nil
	}
	entries := rows(seeds)
	if file.Config.FreeCodebook {
		return entries
	}
	for layer, name := range []string{"generator1", "generator2"} {
		w, b := file.Tensors[name+".weight"], file.Tensors[name+".bias"]
		if len(w.Shape) != 2 || len(b.Data) != w.Shape[0] || w.Shape[1] != seeds.Shape[1] {
			return nil
		}
		for j, x := range entries {
			entries[j] = linear(rows(w), b.Data, x, layer == 0)
		}
	}
	return entries
}

func rows(t checkpoint.Tensor) [][]float32 {
	out := make([][]float32, t.Shape[0])
	for i := range out {
		out[i] = t.Data[i*t.Shape[1] : (i+1)*t.Shape[1]]
	}
	return out
}

// linear is W x + b, followed by LeakyReLU with slope 0.01 where rectify is set.
func linear(w [][]float32, b, x []float32, rectify bool) []float32 {
	y := make([]float32, len(w))
	for o, row := range w {
		sum := b[o]
		for i, v := range x {
			sum += row[i] * v
		}
		if rectify && sum < 0 {
			sum *= 0.01
		}
		y[o] = sum
	}
	return y
}

// Distances are the Euclidean distances of every entry to entry c, relative to the mean of the others; nil where the checkpoint
// has no codebook of this kind.
func (m *Model) Distances(c int) ([]float64, error) {
	if c < 0 || c >= m.Config.K {
		return nil, model.Invalid{"code": fmt.Sprintf("code %d does not exist; this checkpoint has codes 0 to %d", c, m.Config.K-1)}
	}
	entries := m.codebook()
	if c >= len(entries) {
		return nil, nil
	}
	out, mean := make([]float64, len(entries)), 0.0
	for j, e := range entries {
		sum := 0.0
		for n, v := range e {
			d := float64(v - entries[c][n])
			sum += d * d
		}
		out[j] = math.Sqrt(sum)
		mean += out[j] / float64(max(1, len(entries)-1))
	}
	for j := range out {
		if mean > 0 {
			out[j] /= mean
		}
	}
	return out, nil
}

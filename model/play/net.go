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

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// net is a model's encoder and decoder, compiled for an engine.
type net struct {
	m        int
	discrete bool // slots are int32, else float32
	image    ae.Image
	store    *context.Context
	enc      *context.Exec // [B, H, W, C] bytes → slots [B, m]
	dec      *ae.Decoder
}

func newNet(engine *compute.Engine, file checkpoint.File, image ae.Image) (n *net, err error) {
	defer compute.Recovered("building the model's graphs", &err)
	store := context.New().Checked(false)
	built, err := ae.Open(store, file, image)
	if err != nil {
		return nil, err
	}
	n = &net{m: file.Config.M, discrete: built.Discrete(), image: image, store: store}
	n.enc, err = context.NewExec(engine.Backend, store, func(scope *context.Context, images *Node) *Node {
		return ConvertDType(built.Encode(scope, ae.Unit(images)), ae.SlotType(built))
	})
	if err != nil {
		return nil, err
	}
	n.dec, err = ae.NewDecoder(engine.Backend, store, built)
	return n, err
}

func (n *net) encode(images []byte, batch int) (codes []int32, err error) {
	defer compute.Recovered("encoding", &err)
	x := tensors.FromFlatDataAndDimensions(images, batch, n.image.H, n.image.W, n.image.C)
	defer x.MustFinalizeAll()
	out, err := n.enc.Exec1(x)
	if err != nil {
		return nil, err
	}
	defer out.MustFinalizeAll()
	if n.discrete {
		return tensors.CopyFlatData[int32](out)
	}
	err = tensors.ConstFlatData(out, func(numbers []float32) {
		for _, v := range numbers {
			codes = append(codes, gridCode(v))
		}
	})
	return codes, err
}

// slots returns the decoder's input: codes, or the real numbers that they represent.
func (n *net) slots(codes []int32, batch int) *tensors.Tensor {
	if n.discrete {
		return tensors.FromFlatDataAndDimensions(codes, batch, n.m)
	}
	numbers := make([]float32, len(codes))
	for i, c := range codes {
		numbers[i] = float32(c-gridZero) / gridSteps
	}
	return tensors.FromFlatDataAndDimensions(numbers, batch, n.m)
}

func (n *net) decode(codes []int32, batch int) (pixels []byte, err error) {
	defer compute.Recovered("decoding", &err)
	slots := n.slots(codes, batch)
	defer slots.MustFinalizeAll()
	out, err := n.dec.Decode(slots)
	if err != nil {
		return nil, err
	}
	defer out.MustFinalizeAll()
	err = tensors.ConstFlatData(out, func(logits []float32) { pixels = toBytes(logits) })
	return pixels, err
}

func (n *net) finalize() {
	n.enc.Finalize()
	n.dec.Finalize()
	n.store.Finalize()
}

// toBytes converts logits to probabilities as bytes.
//
//	u = ⌊255 σ(x) + ½⌋            σ(x) = 1 / (1 + e^−x), in float64, so that it is the same on every engine
func toBytes(logits []float32) []byte {
	out := make([]byte, len(logits))
	for i, x := range logits {
		out[i] = byte(255/(1+math.Exp(-float64(x))) + 0.5)
	}
	return out
}

// keyOf returns the first 16 hex digits of a checkpoint's hash: that of the file if Meta has it, otherwise that of configuration, step and
// tensors in order of name.
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

// HashKey is the key in Meta of the file's SHA-256, in hex.
const HashKey = "sha256"

const keyLength = 16

// codebookOf returns the codebook of a checkpoint, read or computed from its tensors: [k, d], or [m, k] for QLAE and Tripod. It is nil if there
// is none.
//
//	c_j = W₂ · LeakyReLU(W₁ seed_j + b₁) + b₂            paper, Algorithm 2, up to the scale √(1/d)
func codebookOf(file checkpoint.File) [][]float32 {
	if c := file.Config; c.Model == "tripod" {
		return slices.Repeat([][]float32{c.Grid()}, c.M)
	}
	if learned, ok := file.Tensors["codebook"]; ok && len(learned.Shape) == 2 {
		return rows(learned)
	}
	seeds, ok := file.Tensors["seeds"]
	if !ok || len(seeds.Shape) != 2 {
		return nil
	}
	entries := rows(seeds)
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

// linear returns W x + b, followed by LeakyReLU with slope 0.01 if rectify is set.
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

// Distances returns the Euclidean distances of slot i's entries to its code c, in the order of Entries and relative to their mean over the
// other entries; nil if the checkpoint has no codebook.
func (m *Model) Distances(i, c int) ([]float64, error) {
	if err := m.CheckCode(i, c); err != nil {
		return nil, err
	}
	entries, from := m.vectors(i), []float32{float32(m.Value(c))}
	if !m.Continuous() {
		if c >= len(entries) {
			return nil, nil
		}
		from = entries[c]
	}
	out, mean := make([]float64, len(entries)), 0.0
	for j, e := range entries {
		sum := 0.0
		for n, v := range e {
			d := float64(v - from[n])
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

package play

import (
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/mat"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
)

//go:embed probe
var probes embed.FS

// Reader is the probe of a dataset for use in a browser: a network that reads the factors from an image. Its weights are those of the probe
// trained by evaluations, rounded to bytes when encoded.
type Reader struct {
	Head ReaderHead
	// conv0, conv1, conv2 [4·4·in, out]; fc1 [2048, 128]; fc2 [128, Σ sizes]
	weights []matrix
	biases  [][]float32 // of fc1 and fc2
}

// ReaderHead describes a reader's file.
type ReaderHead struct {
	H        int       `json:"h"` // of images
	W        int       `json:"w"`
	C        int       `json:"c"`
	Sizes    []int     `json:"sizes"`    // [F] values of each factor
	Accuracy []float64 `json:"accuracy"` // [F] fraction of held-out images that it reads correctly
	Matrices [][2]int  `json:"matrices"` // rows and columns of each, in file order
}

// matrix is [rows, cols], row-major.
type matrix struct {
	rows, cols int
	data       []float32
}

var readerLayers = []string{"conv0", "conv1", "conv2", "fc1", "fc2"}

// newReader returns a reader with the weights of a probe.
func newReader(file checkpoint.File, info data.Info, accuracy []float64) (*Reader, error) {
	r := &Reader{Head: ReaderHead{H: info.H, W: info.W, C: info.C, Sizes: info.Sizes(), Accuracy: accuracy}}
	for _, name := range readerLayers {
		t, ok := file.Tensors[name+".weight"]
		if !ok || len(t.Shape) < 2 {
			return nil, fmt.Errorf("the probe of %s has no weights for layer %s", info.Name, name)
		}
		cols := t.Shape[len(t.Shape)-1]
		r.weights = append(r.weights, matrix{len(t.Data) / cols, cols, t.Data})
		if bias, ok := file.Tensors[name+".bias"]; ok {
			r.biases = append(r.biases, bias.Data)
		}
	}
	if len(r.biases) != 2 {
		return nil, fmt.Errorf("the probe of %s has %d biases, not 2", info.Name, len(r.biases))
	}
	return r, nil
}

// Encode serializes the reader, in little-endian order: the length of its head (uint32), the head as JSON, the biases as float32, then each
// matrix as one scale per column (float32) and one signed byte per weight, in units of 1/127 of the column's maximum. With a rank above 0, fc1
// is written as its best approximation of that rank, a product of two matrices, in units of 1/31, and the other matrices in units of 1/63:
// fewer levels compress better.
func (r *Reader) Encode(rank int) []byte {
	weights, levels := slices.Clone(r.weights), []float32{127, 127, 127, 127, 127}
	if fc1 := weights[3]; rank > 0 && rank < fc1.cols {
		weights, levels = slices.Concat(weights[:3], fc1.factors(rank), weights[4:]), []float32{63, 63, 63, 31, 31, 63}
	}
	head := r.Head
	head.Matrices = nil
	for _, w := range weights {
		head.Matrices = append(head.Matrices, [2]int{w.rows, w.cols})
	}
	text, _ := json.Marshal(head) // only numbers: cannot fail
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, text...)
	for _, b := range r.biases {
		out = appendFloats(out, b)
	}
	for i, w := range weights {
		out = w.appendBytes(out, levels[i])
	}
	return out
}

func appendFloats(out []byte, values []float32) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func (m matrix) appendBytes(out []byte, levels float32) []byte {
	scale := make([]float32, m.cols)
	for i, v := range m.data {
		scale[i%m.cols] = max(scale[i%m.cols], v/levels, -v/levels)
	}
	out = appendFloats(out, scale)
	for i, v := range m.data {
		q := 0.0
		if s := scale[i%m.cols]; s > 0 {
			q = math.Round(float64(v / s))
		}
		out = append(out, byte(int8(q)))
	}
	return out
}

// factors returns two matrices whose product is the best approximation of a rank: U √Σ and √Σ Vᵀ.
func (m matrix) factors(rank int) []matrix {
	values := make([]float64, len(m.data))
	for i, v := range m.data {
		values[i] = float64(v)
	}
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(m.rows, m.cols, values), mat.SVDThin) {
		return []matrix{m}
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	s := svd.Values(nil)
	a := matrix{m.rows, rank, make([]float32, m.rows*rank)}
	b := matrix{rank, m.cols, make([]float32, rank*m.cols)}
	for k := range rank {
		root := math.Sqrt(s[k])
		for i := range m.rows {
			a.data[i*rank+k] = float32(u.At(i, k) * root)
		}
		for j := range m.cols {
			b.data[k*m.cols+j] = float32(v.At(j, k) * root)
		}
	}
	return []matrix{a, b}
}

// decodeReader parses the output of Encode with rank 0.
func decodeReader(raw []byte) (*Reader, error) {
	r := &Reader{}
	damaged := errors.New("the probe's file is damaged")
	if len(raw) < 4 || int(binary.LittleEndian.Uint32(raw)) > len(raw)-4 {
		return nil, damaged
	}
	n := int(binary.LittleEndian.Uint32(raw))
	if err := json.Unmarshal(raw[4:4+n], &r.Head); err != nil || len(r.Head.Matrices) != len(readerLayers) {
		return nil, damaged
	}
	rest := raw[4+n:]
	take := func(n int) []byte {
		if n > len(rest) {
			rest, damaged = nil, fmt.Errorf("%w: unexpected end of file", damaged)
			return make([]byte, n)
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}
	floats := func(n int) []float32 {
		part, out := take(4*n), make([]float32, n)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:]))
		}
		return out
	}
	r.biases = [][]float32{floats(r.Head.Matrices[3][1]), floats(r.Head.Matrices[4][1])}
	for _, size := range r.Head.Matrices {
		m := matrix{size[0], size[1], make([]float32, size[0]*size[1])}
		scale := floats(m.cols)
		for i, q := range take(len(m.data)) {
			m.data[i] = scale[i%m.cols] * float32(int8(q))
		}
		r.weights = append(r.weights, m)
	}
	if rest == nil || len(rest) > 0 {
		return nil, damaged
	}
	return r, nil
}

// Reader returns the probe of a dataset: the one saved by evaluations in the data folder, or one embedded in the program. The error wraps
// model.ErrNotFound if there is neither.
func (l *Library) Reader(ctx context.Context, dataset string) (*Reader, error) {
	set, err := l.Set(ctx, dataset)
	if err != nil {
		return nil, err
	}
	info := set.Info()
	file, accuracy, err := evaluate.OpenProbe(filepath.Join(l.dir, evaluate.ProbesDir), set)
	if err == nil {
		return newReader(file, info, accuracy)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	raw, err := probes.ReadFile(embeddedReaderPath(dataset))
	if err != nil {
		return nil, fmt.Errorf("no probe has been trained on %s yet; evaluate a run on it to train one: %w", info.Title, model.ErrNotFound)
	}
	r, err := decodeReader(raw)
	if err == nil && !slices.Equal(r.Head.Sizes, info.Sizes()) {
		err = fmt.Errorf("the embedded probe does not match the factors of %s", info.Title)
	}
	return r, err
}

func embeddedReaderPath(dataset string) string { return "probe/" + dataset + ".bin" }

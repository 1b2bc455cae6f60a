package bundle

import (
	"fmt"
	"io"
	"math"
	"slices"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/onnx"
	"slotscope/model/paper/ae"
	"slotscope/model/paper/hrr"
)

// Names of a bundle's ONNX models.
const (
	EncoderFile   = "onnx/encoder.onnx"   // images [N, C, H, W] in [0, 1] → z [N, n]
	RetrievalFile = "onnx/retrieval.onnx" // z → codes [N, m] int64, entries (the codebook); for HRR also retrieved [N, m, d]. Not for VAEs, whose slots are z
	DecoderFile   = "onnx/decoder.onnx"   // codes [N, m] int64, or numbers [N, m] → images [N, C, H, W] in [0, 1]
)

// network builds the ONNX models of a checkpoint.
type network struct {
	*onnx.Graph
	c       model.Config
	image   ae.Image
	tensors map[string]checkpoint.Tensor
	n       int     // length of z
	gain    float64 // z = f(x)·gain, and the decoder reads ẑ/gain
}

// onnxParts returns the ONNX files of the bundle, or none for models with more than maxONNX parameters.
func (b Bundle) onnxParts() ([]part, error) {
	image, err := ImageOf(b.File)
	if err != nil {
		return nil, err
	}
	c := b.File.Config
	parameters := 0
	for _, t := range b.File.Tensors {
		parameters += len(t.Data)
	}
	if parameters > maxONNX {
		return nil, nil
	}
	n, gain := c.M, 1.0
	switch c.Model {
	case "hrr":
		n, gain = c.D, math.Sqrt(float64(c.M)/float64(c.D))
	case "vqvae":
		n = c.M * c.D
	}
	build := func(name, about string, draw func(network)) part {
		return part{name, func(w io.Writer) error {
			net := network{&onnx.Graph{}, c, image, b.File.Tensors, n, gain}
			draw(net)
			return net.Write(w, name, about, [2]string{"run", b.Run}, [2]string{"step", fmt.Sprint(b.File.Step)})
		}}
	}
	parts := []part{
		build(EncoderFile, "images in [0, 1] to latents z", network.encoder),
		build(DecoderFile, "slots to images in [0, 1]", network.decoder),
	}
	if c.Discrete() {
		parts = append(parts, build(RetrievalFile, "latents z to codes, with the codebook", network.retrieval))
	}
	return parts, nil
}

// maxONNX is the maximum number of parameters of an ONNX export, because protocol buffers are limited to 2 GiB.
const maxONNX = 400 << 20

// of adds a tensor of the checkpoint.
func (n network) of(name string) string {
	return n.Weights(name, n.tensors[name].Shape, n.tensors[name].Data)
}

func (n network) in(names ...string) []string { return names }

// dense adds x Wᵀ + b.
func (n network) dense(x, name string) string {
	return n.Add("Gemm", n.in(x, n.of(name+".weight"), n.of(name+".bias")), onnx.Int("transB", 1))
}

func (n network) leaky(x string, slope float64) string {
	return n.Add("LeakyRelu", n.in(x), onnx.Float("alpha", slope))
}

func (n network) reshape(x string, shape ...int) string {
	return n.Add("Reshape", n.in(x, n.Integers(shape...)))
}

func (n network) scaled(x string, by float64) string {
	if by == 1 {
		return x
	}
	return n.Add("Mul", n.in(x, n.Scalar(by)))
}

// encoder maps images to z, for a VAE only the means.
func (n network) encoder() {
	x := n.Input("images", onnx.Float32, onnx.Batch, n.image.C, n.image.H, n.image.W)
	for i := range n.c.Widths {
		x = n.Add("Conv", n.in(x, n.of(fmt.Sprintf("encoder.%d.weight", 3*i))), onnx.Ints("kernel_shape", 4, 4), onnx.Ints("strides", 2, 2), onnx.Ints("pads", 1, 1, 1, 1))
		norm := fmt.Sprintf("encoder.%d", 3*i+1)
		x = n.Add("InstanceNormalization", n.in(x, n.of(norm+".weight"), n.of(norm+".bias")), onnx.Float("epsilon", 1e-5))
		x = n.leaky(x, 0.2)
	}
	x = n.Add("Flatten", n.in(x), onnx.Int("axis", 1))
	x = n.Add("Relu", n.in(n.dense(x, "fc1")))
	weight, bias := n.tensors["fc2.weight"], n.tensors["fc2.bias"]
	x = n.Add("Gemm", n.in(x, n.Weights("fc2.weight", []int{n.n, n.c.FC}, head(weight.Data, n.n*n.c.FC)), n.Weights("fc2.bias", []int{n.n}, head(bias.Data, n.n))), onnx.Int("transB", 1))
	n.Output("z", n.scaled(x, n.gain), onnx.Float32, onnx.Batch, n.n)
}

// head returns the first n numbers, or all if there are fewer, in which case Weights reports the mismatch.
func head(data []float32, n int) []float32 { return data[:min(n, len(data))] }

// retrieval maps z to codes.
func (n network) retrieval() {
	z, m, k, d := n.Input("z", onnx.Float32, onnx.Batch, n.n), n.c.M, n.c.K, n.c.D
	if n.c.Model == "tripod" {
		grid := n.scaled(n.Add("Add", n.in(n.Add("Tanh", n.in(z)), n.Scalar(1))), float64(k-1)/2)
		n.Output("codes", n.Add("Cast", n.in(n.Add("Round", n.in(grid))), onnx.Int("to", int(onnx.Int64))), onnx.Int64, onnx.Batch, m)
		return
	}
	if n.c.Model == "qlae" {
		codebook := n.of("codebook")
		apart := n.Add("Abs", n.in(n.Add("Sub", n.in(n.reshape(z, -1, m, 1), codebook))))
		n.Output("codes", n.Add("ArgMin", n.in(apart), onnx.Int("axis", 2), onnx.Int("keepdims", 0)), onnx.Int64, onnx.Batch, m)
		n.Output("entries", codebook, onnx.Float32, m, k)
		return
	}
	values := n.reshape(z, -1, d) // for VQ-VAE, the parts of z
	if n.c.Model == "hrr" {
		retrieved := n.Add("MatMul", n.in(z, n.operand(true)))
		n.Output("retrieved", n.reshape(retrieved, -1, m, d), onnx.Float32, onnx.Batch, m, d)
		values = n.reshape(retrieved, -1, d)
		if !n.c.NoDenoiser {
			values = n.dense(n.leaky(n.dense(values, "denoise1"), 0.01), "denoise2")
		}
	}
	entries := n.entries()
	norms := n.Add("ReduceSum", n.in(n.Add("Mul", n.in(entries, entries)), n.Integers(1)), onnx.Int("keepdims", 0))
	products := n.Add("MatMul", n.in(values, n.Add("Transpose", n.in(entries), onnx.Ints("perm", 1, 0))))
	nearest := n.Add("ArgMin", n.in(n.Add("Sub", n.in(norms, n.scaled(products, 2)))), onnx.Int("axis", 1), onnx.Int("keepdims", 0))
	n.Output("codes", n.reshape(nearest, -1, m), onnx.Int64, onnx.Batch, m)
	n.Output("entries", entries, onnx.Float32, k, d)
}

// entries adds the codebook, [k, d].
func (n network) entries() string {
	if n.c.Model == "vqvae" || n.c.FreeCodebook {
		return n.of("codebook")
	}
	hidden := n.leaky(n.dense(n.of("seeds"), "generator1"), 0.01)
	return n.scaled(n.dense(hidden, "generator2"), math.Sqrt(1/float64(n.c.D)))
}

// operand adds M_1 … M_m side by side, [d, m·d], or with unbind the matrices whose transposes retrieve.
func (n network) operand(unbind bool) string {
	return n.reshape(n.Add("Transpose", n.in(n.matrices(unbind)), onnx.Ints("perm", 1, 0, 2)), n.c.D, n.c.M*n.c.D)
}

// matrices adds M_i, [m, d, d], of z = Σ_i M_i v_i, or with unbind those whose transposes retrieve.
func (n network) matrices(unbind bool) string {
	m, d := n.c.M, n.c.D
	switch n.c.Binding {
	case "random":
		return n.of("binding")
	case "permutation":
		index := make([]int, m*d)
		for i, v := range n.tensors["binding"].Data {
			index[i] = int(v)
		}
		return n.Add("OneHot", n.in(n.reshape(n.Integers(index...), m, d), n.Integers(d), n.Weights("off, on", []int{2}, []float32{0, 1})), onnx.Int("axis", -1))
	case "concat":
		width, blocks := d/m, make([]float32, m*d*d)
		for i := range m {
			for j := range width {
				blocks[(i*d+i*width+j)*d+j] = float32(math.Sqrt(float64(m)))
			}
		}
		return n.Weights("blocks", []int{m, d, d}, blocks)
	}
	symbols := n.of("symbols")
	if unbind && n.c.Inverse == "exact" {
		symbols = n.Weights("unbinding symbols", []int{m, d}, exactOf(n.tensors["symbols"].Data, d))
	}
	// circulants: M[n, j] = s_{(n−j) mod d}
	count := make([]int, d)
	for i := range count {
		count[i] = i
	}
	row := n.Integers(count...)
	apart := n.Add("Sub", n.in(n.reshape(row, d, 1), n.reshape(row, 1, d)))
	return n.Add("Gather", n.in(symbols, n.Add("Mod", n.in(apart, n.Integers(d)))), onnx.Int("axis", 1))
}

// exactOf returns the vectors whose involution is the exact inverse of each symbol. A symbol without an inverse is returned unchanged.
func exactOf(symbols []float32, d int) []float32 {
	out := make([]float32, 0, len(symbols))
	for s := range slices.Chunk(symbols, d) {
		if inverse, err := hrr.ExactInverse(s); err == nil {
			s = hrr.Involution(inverse)
		}
		out = append(out, s...)
	}
	return out
}

// bundle adds the decoder's input, [N, n].
func (n network) bundle() string {
	m, k, d := n.c.M, n.c.K, n.c.D
	if !n.c.Discrete() {
		return n.Input("numbers", onnx.Float32, onnx.Batch, m)
	}
	codes := n.Input("codes", onnx.Int64, onnx.Batch, m)
	if n.c.Model == "tripod" {
		numbers := n.Add("Cast", n.in(codes), onnx.Int("to", int(onnx.Float32)))
		return n.Add("Add", n.in(n.scaled(numbers, 2/float64(k-1)), n.Scalar(-1)))
	}
	if n.c.Model == "qlae" {
		first := make([]int, m)
		for i := range first {
			first[i] = i * k
		}
		return n.Add("Gather", n.in(n.reshape(n.of("codebook"), m*k), n.Add("Add", n.in(codes, n.Integers(first...)))))
	}
	values := n.reshape(n.Add("Gather", n.in(n.entries(), codes)), -1, m*d)
	if n.c.Model == "vqvae" {
		return values
	}
	return n.Add("MatMul", n.in(values, n.Add("Transpose", n.in(n.operand(false)), onnx.Ints("perm", 1, 0))))
}

// decoder maps slots to images.
func (n network) decoder() {
	style := n.Add("Relu", n.in(n.dense(n.scaled(n.bundle(), 1/n.gain), "style")))
	x := n.of("canvas")
	for i := range n.c.Widths {
		up, channels := fmt.Sprintf("up.%d", i), n.c.Widths[3-i]
		x = n.Add("ConvTranspose", n.in(x, n.of(up+".conv.weight")), onnx.Ints("kernel_shape", 4, 4), onnx.Ints("strides", 2, 2), onnx.Ints("pads", 1, 1, 1, 1))
		ones := slices.Repeat([]float32{1}, channels)
		x = n.Add("InstanceNormalization", n.in(n.leaky(x, 0.2), n.Weights(fmt.Sprintf("ones:%d", channels), []int{channels}, ones),
			n.Weights(fmt.Sprintf("zeros:%d", channels), []int{channels}, make([]float32, channels))), onnx.Float("epsilon", 1e-5))
		affine := n.AddN("Split", 2, n.in(n.dense(style, up+".affine")), onnx.Int("axis", 1))
		scale := n.reshape(n.Add("Add", n.in(affine[0], n.Scalar(1))), -1, channels, 1, 1)
		x = n.Add("Add", n.in(n.Add("Mul", n.in(x, scale)), n.reshape(affine[1], -1, channels, 1, 1)))
	}
	x = n.Add("Conv", n.in(x, n.of("out.weight")), onnx.Ints("kernel_shape", 3, 3), onnx.Ints("pads", 1, 1, 1, 1))
	n.Output("images", n.Add("Sigmoid", n.in(x)), onnx.Float32, onnx.Batch, n.image.C, n.image.H, n.image.W)
}

package weights

import (
	"fmt"
	"math"
	"slices"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/hrr"
)

// packer lays out the tensors of one checkpoint in order.
type packer struct {
	file    checkpoint.File
	config  model.Config
	h, w, c int
	latent  uint32
	binding uint32
	flags   uint32
	d, n    int // length of a slot's value and of z
	gain    float32
	numbers []float32
	err     error // first error, such as a missing tensor
}

const (
	circular = 1
	matrices = 2
	gathered = 3

	hasDenoiser = 1
	hasInverses = 2
	squashes    = 4
)

// newPacker returns a packer with the header fields set.
func newPacker(file checkpoint.File) (*packer, error) {
	c := file.Config
	latent, known := latents[c.Model]
	if !known {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("model %q cannot be exported for browsers; supported models are %v", c.Model, model.ModelNames())}
	}
	out, canvas := file.Tensors["out.weight"].Shape, file.Tensors["canvas"].Shape
	if len(out) != 4 || len(canvas) != 4 {
		return nil, model.Invalid{"checkpoint": "tensor out.weight or canvas is missing; this is not a checkpoint of a complete model"}
	}
	p := &packer{file: file, config: c, h: 16 * canvas[2], w: 16 * canvas[3], c: out[0], latent: latent, d: 1, n: c.M, gain: 1}
	if p.h < 32 || p.h > 128 || p.w < 32 || p.w > 128 || (p.c != 1 && p.c != 3) {
		return nil, model.Invalid{"checkpoint": fmt.Sprintf("images of %d×%d×%d are not supported in browsers; sides must be 32 to 128 and channels 1 or 3", p.h, p.w, p.c)}
	}
	switch c.Model {
	case "hrr":
		p.d, p.n, p.gain, p.binding = c.D, c.D, float32(math.Sqrt(float64(c.M)/float64(c.D))), circular
		switch c.Binding {
		case "random":
			p.binding = matrices
		case "permutation", "concat":
			p.binding = gathered
		}
		if !c.NoDenoiser {
			p.flags |= hasDenoiser
		}
		if c.Inverse == "exact" {
			p.flags |= hasInverses
		}
	case "tripod":
		p.flags |= squashes
	case "vqvae":
		p.d, p.n = c.D, c.M*c.D
	}
	return p, nil
}

// pack lays out all tensors in the order of the file.
func (p *packer) pack() error {
	p.encoder()
	p.bottleneck()
	p.decoder()
	return p.err
}

func (p *packer) encoder() {
	in := p.c
	for l, out := range p.config.Widths {
		conv, norm := fmt.Sprintf("encoder.%d.weight", 3*l), fmt.Sprintf("encoder.%d", 3*l+1)
		p.kernel(conv, out, in, 4, pad(out), false)
		p.vector(norm+".weight", out)
		p.vector(norm+".bias", out)
		in = out
	}
	fc := p.config.FC
	p.image("fc1.weight", fc, in)
	p.vector("fc1.bias", fc)
	outputs := p.n
	if p.config.Variational() {
		outputs = 2 * p.n // the second half is log-variances
	}
	p.rows(p.get("fc2.weight", outputs, fc), p.n, fc)
	p.add(p.get("fc2.bias", outputs), p.n)
}

func (p *packer) bottleneck() {
	m, k, d := p.config.M, p.config.K, p.d
	switch p.config.Model {
	case "hrr":
		p.bind()
		if p.flags&hasDenoiser != 0 {
			p.linear("denoise1", 2*d, d)
			p.linear("denoise2", d, 2*d)
		}
		p.rows(p.entries(), k, d)
	case "vqvae":
		p.rows(p.get("codebook", k, d), k, d)
	case "qlae":
		p.add(p.get("codebook", m, k), m*k)
	case "tripod":
		p.add(slices.Repeat(p.config.Grid(), m), m*k)
	}
}

// bind lays out the numbers that determine every M_i.
func (p *packer) bind() {
	m, d := p.config.M, p.d
	switch p.binding {
	case matrices:
		p.rows(p.get("binding", m, d, d), m*d, d)
	case gathered:
		p.gather()
	default:
		p.circulants(p.get("symbols", m, d))
	}
}

func (p *packer) circulants(symbols []float32) {
	m, d := p.config.M, p.d
	p.add(symbols, m*d)
	if p.flags&hasInverses == 0 || p.err != nil {
		return
	}
	inverses := make([]float32, 0, m*d)
	for i := range m {
		inverse, err := hrr.ExactInverse(symbols[i*d : (i+1)*d])
		if err != nil {
			p.fail(model.Invalid{"checkpoint": fmt.Sprintf("slot %d: %v", i, err)})
			return
		}
		inverses = append(inverses, hrr.Involution(inverse)...)
	}
	p.add(inverses, m*d)
}

// gather lays out a permutation or the blocks of concatenation, as the component of a slot's value for each component of z.
func (p *packer) gather() {
	m, d := p.config.M, p.d
	factor, from := float32(1), make([]int, m*d) // 1 + component, 0 for none
	if p.config.Binding == "permutation" {
		for at, j := range p.get("binding", m, d) {
			from[at] = 1 + int(j)
		}
	} else {
		factor = float32(math.Sqrt(float64(m)))
		for i, width := 0, d/m; i < m; i++ {
			for j := range width {
				from[i*d+i*width+j] = 1 + j
			}
		}
	}
	low, high := make([]float32, m*d), make([]float32, m*d) // float16 is exact for integers up to 2048
	for at, n := range from {
		low[at], high[at] = float32(n%2048), float32(n/2048)
	}
	p.add(low, m*d)
	p.add(high, m*d)
	p.add([]float32{factor}, 1)
}

func (p *packer) decoder() {
	fc, top := p.config.FC, p.config.Widths[3]
	p.linear("style", fc, p.n)
	p.image("canvas", 1, top)
	in := top
	for l := range p.config.Widths {
		up, out := fmt.Sprintf("up.%d", l), p.config.Widths[3-l]
		p.kernel(up+".conv.weight", in, out, 4, pad(out), true)
		weight, bias := p.get(up+".affine.weight", 2*out, fc), p.get(up+".affine.bias", 2*out)
		for half := range 2 { // scale, then shift
			p.rows(part(weight, half*out*fc, out*fc), out, fc)
			p.zeros((pad(out) - out) * pad(fc))
			p.add(part(bias, half*out, out), out)
		}
		in = out
	}
	p.kernel("out.weight", p.c, in, 3, 4, false)
}

// entries returns the codebook, computed in float64 if it is generated.
//
//	C = φ(S)·√(1/d),  φ(s) = W₂ LeakyReLU(W₁ s + b₁) + b₂      paper, Algorithm 2, line 8
func (p *packer) entries() []float32 {
	k, d := p.config.K, p.d
	if p.config.FreeCodebook {
		return p.get("codebook", k, d)
	}
	seeds := p.get("seeds", k, d)
	w1, b1, w2, b2 := p.get("generator1.weight", d, d), p.get("generator1.bias", d), p.get("generator2.weight", d, d), p.get("generator2.bias", d)
	if p.err != nil {
		return nil
	}
	out, scale := make([]float32, 0, k*d), 1/math.Sqrt(float64(d))
	for j := range k {
		seed := make([]float64, d)
		for i := range seed {
			seed[i] = float64(seeds[j*d+i])
		}
		hidden := product(w1, b1, seed)
		for i, v := range hidden {
			hidden[i] = max(v, 0.01*v)
		}
		for _, v := range product(w2, b2, hidden) {
			out = append(out, float32(v*scale))
		}
	}
	return out
}

// product returns W x + b.
func product(w, b []float32, x []float64) []float64 {
	out := make([]float64, len(b))
	for o := range out {
		sum := float64(b[o])
		for i, v := range x {
			sum += float64(w[o*len(x)+i]) * v
		}
		out[o] = sum
	}
	return out
}

// get returns a tensor of the checkpoint, or nil after an error.
func (p *packer) get(name string, shape ...int) []float32 {
	if p.err != nil {
		return nil
	}
	data, err := p.tensor(name, shape...)
	p.fail(err)
	return data
}

func (p *packer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// add appends count numbers and padding.
func (p *packer) add(data []float32, count int) {
	if p.err != nil {
		return
	}
	p.numbers = append(p.numbers, data[:count]...)
	p.zeros(pad(len(p.numbers)) - len(p.numbers))
}

func (p *packer) zeros(n int) {
	if p.err == nil {
		p.numbers = append(p.numbers, make([]float32, n)...)
	}
}

// vector appends a tensor of n numbers, padded.
func (p *packer) vector(name string, n int) { p.add(p.get(name, n), n) }

// rows appends a matrix with padded rows.
func (p *packer) rows(data []float32, rows, columns int) {
	for r := range rows {
		p.add(part(data, r*columns, columns), columns)
	}
}

func (p *packer) linear(name string, out, in int) {
	p.rows(p.get(name+".weight", out, in), out, in)
	p.vector(name+".bias", out)
}

// kernel appends a convolution kernel as [k, k, in, width]. PyTorch uses [out, in, k, k], or [in, out, k, k] for transposed convolutions.
func (p *packer) kernel(name string, first, second, k, width int, transposed bool) {
	data := p.get(name, first, second, k, k)
	if p.err != nil {
		return
	}
	out, in := first, second
	if transposed {
		out, in = second, first
	}
	laid := make([]float32, k*k*in*width)
	for o := range out {
		for i := range in {
			at := o*in + i
			if transposed {
				at = i*out + o
			}
			for tap := range k * k {
				laid[(tap*in+i)*width+o] = data[at*k*k+tap]
			}
		}
	}
	p.add(laid, len(laid))
}

// image appends count images of the size of the smallest feature map, channels last and padded. PyTorch uses [count, c, h, w].
func (p *packer) image(name string, count, c int) {
	h, w := p.h/16, p.w/16
	shape := []int{count, c * h * w}
	if name == "canvas" {
		shape = []int{1, c, h, w}
	}
	data := p.get(name, shape...)
	if p.err != nil {
		return
	}
	laid := make([]float32, count*h*w*pad(c))
	for n := range count {
		for ch := range c {
			for at := range h * w {
				laid[(n*h*w+at)*pad(c)+ch] = data[(n*c+ch)*h*w+at]
			}
		}
	}
	p.add(laid, len(laid))
}

func part(data []float32, from, count int) []float32 {
	if data == nil {
		return nil
	}
	return data[from : from+count]
}

func pad(n int) int { return (n + 3) &^ 3 }

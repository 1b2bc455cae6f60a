package net

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute"
	"slotscope/model/paper/layer"
)

// image is a batch of feature maps in plain Go, [b, h, w, c].
type image struct {
	b, h, w, c int
	data       []float32
}

func newImage(b, h, w, c int) image { return image{b, h, w, c, make([]float32, b*h*w*c)} }

func (m image) at(b, y, x, c int) *float32 { return &m.data[((b*m.h+y)*m.w+x)*m.c+c] }

func (m image) inside(y, x int) bool { return y >= 0 && y < m.h && x >= 0 && x < m.w }

func (m image) tensor() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(m.data, m.b, m.h, m.w, m.c)
}

func (m image) noise(rng *rand.Rand) image {
	for i := range m.data {
		m.data[i] = float32(rng.NormFloat64())
	}
	return m
}

// taps calls fn for every product of a convolution with padding 1: x[stride·n + k - 1] w[k] → y[n].
func taps(x, y image, k, stride int, fn func(b, xi, xj, yi, yj, ki, kj int)) {
	for b := range y.b {
		for yi := range y.h {
			for yj := range y.w {
				for ki := range k {
					for kj := range k {
						if xi, xj := stride*yi+ki-1, stride*yj+kj-1; x.inside(xi, xj) {
							fn(b, xi, xj, yi, yj, ki, kj)
						}
					}
				}
			}
		}
	}
}

// The values and both gradients of the network's convolutions match loops over the definition; the adjoint is random.
func TestConvAgainstItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ k, stride, b, h, w, in, out int }{
		{4, 2, 2, 8, 6, 3, 5}, {4, 2, 1, 2, 2, 1, 1}, {4, 2, 3, 4, 16, 7, 2},
		{3, 1, 2, 5, 4, 3, 2}, {3, 1, 1, 1, 1, 1, 1}, {2, 1, 2, 4, 3, 3, 8}, {2, 1, 1, 1, 1, 2, 4},
	} {
		t.Run(fmt.Sprintf("%dx%d stride %d of %d×%d×%d×%d to %d", c.k, c.k, c.stride, c.b, c.h, c.w, c.in, c.out), func(t *testing.T) {
			x, w := newImage(c.b, c.h, c.w, c.in).noise(rng), newImage(c.k, c.k, c.in, c.out).noise(rng)
			y := newImage(c.b, (c.h+2-c.k)/c.stride+1, (c.w+2-c.k)/c.stride+1, c.out)
			v := newImage(y.b, y.h, y.w, y.c).noise(rng)
			dx, dw := newImage(c.b, c.h, c.w, c.in), newImage(c.k, c.k, c.in, c.out)
			taps(x, y, c.k, c.stride, func(b, xi, xj, yi, yj, ki, kj int) {
				for i := range c.in {
					for o := range c.out {
						*y.at(b, yi, yj, o) += *x.at(b, xi, xj, i) * *w.at(ki, kj, i, o)
						*dx.at(b, xi, xj, i) += *v.at(b, yi, yj, o) * *w.at(ki, kj, i, o)
						*dw.at(ki, kj, i, o) += *v.at(b, yi, yj, o) * *x.at(b, xi, xj, i)
					}
				}
			})
			got := withGradients(t, func(x, w *Node) *Node { return conv(x, w, c.stride) }, x.tensor(), w.tensor(), v.tensor())
			same(t, "value", got[0], y.data)
			same(t, "input's gradient", got[1], dx.data)
			same(t, "kernel's gradient", got[2], dw.data)
		})
	}
}

// PyTorch's ConvTranspose2d(4, 2, 1): y[2p + k - 1] += x[p] w[i, o, k], w in IOHW, through the layout that checkpoints use.
func TestConvTransposeAgainstItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ b, h, w, in, out int }{{2, 4, 4, 3, 5}, {1, 1, 1, 1, 1}, {3, 2, 5, 4, 2}, {1, 8, 8, 2, 7}} {
		t.Run(fmt.Sprintf("%d×%d×%d×%d to %d", c.b, c.h, c.w, c.in, c.out), func(t *testing.T) {
			param := layer.ConvTranspose("up", c.in, c.out)
			x, w := newImage(c.b, c.h, c.w, c.in).noise(rng), newImage(c.in, c.out, 4, 4).noise(rng)
			y := newImage(c.b, 2*c.h, 2*c.w, c.out)
			v := newImage(y.b, y.h, y.w, y.c).noise(rng)
			dx, dw := newImage(c.b, c.h, c.w, c.in), newImage(c.in, c.out, 4, 4)
			taps(y, x, 4, 2, func(b, yi, yj, xi, xj, ki, kj int) {
				for i := range c.in {
					for o := range c.out {
						*y.at(b, yi, yj, o) += *x.at(b, xi, xj, i) * *w.at(i, o, ki, kj)
						*dx.at(b, xi, xj, i) += *v.at(b, yi, yj, o) * *w.at(i, o, ki, kj)
						*dw.at(i, o, ki, kj) += *v.at(b, yi, yj, o) * *x.at(b, xi, xj, i)
					}
				}
			})
			kernel := tensors.FromFlatDataAndDimensions(param.FromTorch(w.data), param.Shape...)
			got := withGradients(t, ConvTranspose, x.tensor(), kernel, v.tensor())
			same(t, "value", got[0], y.data)
			same(t, "input's gradient", got[1], dx.data)
			same(t, "kernel's gradient", param.ToTorch(got[2]), dw.data)
		})
	}
}

// plainNorm is InstanceNorm without a gradient of its own.
func plainNorm(x *Node) *Node {
	centred := Sub(x, spatialMean(x))
	return Div(centred, Sqrt(AddScalar(spatialMean(Square(centred)), epsilon)))
}

// bright returns noise with a standard deviation of 3 around 2.
func bright(rng *rand.Rand, b, h, w, c int) image {
	x := newImage(b, h, w, c).noise(rng)
	for i := range x.data {
		x.data[i] = 3*x.data[i] + 2
	}
	return x
}

// The written-out gradient matches automatic differentiation of the formula; the result has mean 0 and variance 1.
func TestInstanceNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x, gain, v := bright(rng, 2, 4, 3, 5), newImage(1, 1, 1, 5).noise(rng), newImage(2, 4, 3, 5).noise(rng)
	var got, want [3][]float32
	copy(got[:], withGradients(t, func(x, gain *Node) *Node { return Mul(InstanceNorm(x), gain) }, x.tensor(), gain.tensor(), v.tensor()))
	copy(want[:], withGradients(t, func(x, gain *Node) *Node { return Mul(plainNorm(x), gain) }, x.tensor(), gain.tensor(), v.tensor()))
	for i, what := range []string{"value", "input's gradient", "gain's gradient"} {
		same(t, what, got[i], want[i])
	}
	for c := range x.c {
		var sum, squares float64
		for p := range x.h * x.w {
			n := float64(got[0][p*x.c+c] / gain.data[c])
			sum, squares = sum+n, squares+n*n
		}
		if n := float64(x.h * x.w); math.Abs(sum/n) > 1e-5 || math.Abs(squares/n-1) > 1e-4 {
			t.Errorf("channel %d: mean %v, mean square %v, want 0 and 1", c, sum/n, squares/n)
		}
	}
}

// The written-out gradients of x, gain and bias match automatic differentiation, for factors of each image and of all images.
func TestModulate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, batch := range []int{1, 3} {
		x, affine, v := bright(rng, 3, 4, 5, 6), newImage(batch, 1, 1, 12).noise(rng), newImage(3, 4, 5, 6).noise(rng)
		modulated := func(modulate func(x, gain, bias *Node) *Node) [][]float32 {
			return withGradients(t, func(x, affine *Node) *Node {
				halves := Split(affine, -1, 2)
				return modulate(x, halves[0], halves[1])
			}, x.tensor(), affine.tensor(), v.tensor())
		}
		got := modulated(Modulate)
		want := modulated(func(x, gain, bias *Node) *Node { return Add(Mul(plainNorm(x), gain), bias) })
		for i, what := range []string{"value", "input's gradient", "gradient of gain and bias"} {
			same(t, fmt.Sprintf("%s, %d factors", what, batch), got[i], want[i])
		}
	}
}

// A constant image has no variance: ε keeps it finite.
func TestInstanceNormOfAConstant(t *testing.T) {
	x := newImage(1, 2, 2, 1)
	for i := range x.data {
		x.data[i] = 7
	}
	got := MustExecOnce(engine(t), InstanceNorm, x.tensor())
	same(t, "value", tensors.MustCopyFlatData[float32](got), []float32{0, 0, 0, 0})
}

// withGradients returns f(x, w) and the gradients of Σ v∘f with respect to x and w.
func withGradients(t *testing.T, f func(x, w *Node) *Node, x, w, v *tensors.Tensor) [][]float32 {
	t.Helper()
	outputs := MustExecOnceN(engine(t), func(x, w, v *Node) []*Node {
		y := f(x, w)
		return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, v)), x, w)...)
	}, x, w, v)
	var flat [][]float32
	for _, o := range outputs {
		flat = append(flat, tensors.MustCopyFlatData[float32](o))
	}
	return flat
}

// same allows for float32 rounding of sums of up to some hundred products of numbers around 1.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func engine(t *testing.T) backends.Backend {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e.Backend
}

// Package layer implements the building blocks shared by all models: parameters, with their layouts in PyTorch and here, their
// initialization, the linear layer and the activations.
package layer

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute/cpu/move"
)

// Rate selects the learning rate of a tensor.
type Rate int

const (
	Shared        Rate = iota // the run's learning rate
	Codebook                  // the run's learning rate times Config.CodebookLR
	Discriminator             // the run's learning rate times Config.DiscLR, in the discriminator's optimizer
	Frozen                    // not learned
)

// Draw fills a tensor with its initial values, in PyTorch's order.
type Draw func(rng *rand.Rand, out []float32)

// Param describes one parameter tensor. Name and Torch are PyTorch's name and shape; graphs use Shape, with kernels as HWIO and
// linear layers as [in, out].
type Param struct {
	Name  string
	Torch []int // shape in PyTorch
	Shape []int // shape of the variable here
	Draw  Draw
	Rate  Rate

	split []int // PyTorch's axes, some split in two
	perm  []int // their order here
}

// Size returns the number of elements.
func (p Param) Size() int { return product(p.Torch) }

// ToTorch returns a copy of the variable's data in PyTorch's order.
func (p Param) ToTorch(data []float32) []float32 {
	here, back := make([]int, len(p.perm)), make([]int, len(p.perm))
	for i, axis := range p.perm {
		here[i], back[axis] = p.split[axis], i
	}
	return transposed(data, here, back)
}

// FromTorch is the inverse of ToTorch.
func (p Param) FromTorch(data []float32) []float32 { return transposed(data, p.split, p.perm) }

// transposed returns a copy whose axis i is axis perm[i] of the data.
func transposed(data []float32, shape, perm []int) []float32 {
	out := make([]float32, len(data))
	transpose(out, data, shape, perm)
	return out
}

// transpose copies data so that axis i of out is its axis perm[i].
func transpose(out, data []float32, shape, perm []int) {
	plan := move.PlanTranspose(4, shape, perm)
	plan.Run(move.Bytes(out), move.Bytes(data), 0, plan.N)
}

// Initial draws the variable's initial value. Each name has its own random stream, so that adding, removing or transposing a tensor
// does not change any other:
//
//	PCG(seed, FNV-1a(name)), elements in PyTorch's order
func (p Param) Initial(seed int64) []float32 {
	out := make([]float32, p.Size())
	p.fill(out, seed)
	return out
}

func (p Param) fill(out []float32, seed int64) {
	name := fnv.New64a()
	name.Write([]byte(p.Name))
	draw := func(out []float32) { p.Draw(rand.New(rand.NewPCG(uint64(seed), name.Sum64())), out) }
	if slices.IsSorted(p.perm) {
		draw(out)
		return
	}
	torch := make([]float32, len(out))
	draw(torch)
	transpose(out, torch, p.split, p.perm)
}

// Tensor returns Initial as a tensor for graphs of a backend.
func (p Param) Tensor(backend backends.Backend, seed int64) *tensors.Tensor {
	return TensorOf(backend, shapes.Make(dtypes.Float32, p.Shape...), func(flat []float32) { p.fill(flat, seed) })
}

// ZeroTensor returns a tensor of float32 zeros for graphs of a backend.
func ZeroTensor(backend backends.Backend, shape shapes.Shape) *tensors.Tensor {
	return TensorOf(backend, shape, func([]float32) {})
}

// TensorOf returns a tensor with what fill writes over zeros, in a buffer of the backend if its buffers are host memory, which saves a copy. T is the Go type of
// the shape's data type. The backend may be nil.
func TensorOf[T dtypes.Supported](backend backends.Backend, shape shapes.Shape, fill func(flat []T)) *tensors.Tensor {
	if backend != nil && backend.HasSharedBuffers() {
		if buffer, flat, err := backend.NewSharedBuffer(0, shape); err == nil {
			fill(flat.([]T))
			if t, err := tensors.FromBuffer(backend, buffer); err == nil {
				return t
			}
		}
	}
	t := tensors.FromShape(shape)
	tensors.MustMutableFlatData(t, fill)
	return t
}

// At returns the params with another rate.
func At(rate Rate, params []Param) []Param {
	params = slices.Clone(params)
	for i := range params {
		params[i].Rate = rate
	}
	return params
}

// Plain returns a tensor with the same layout in PyTorch and here.
func Plain(name string, draw Draw, shape ...int) Param {
	perm := make([]int, len(shape))
	for i := range perm {
		perm[i] = i
	}
	return Param{Name: name, Torch: shape, Shape: shape, Draw: draw, split: shape, perm: perm}
}

// Linear returns the weight and bias of y = W x + b, both initialized as in PyTorch.
//
//	W, b ~ U(±1/√in)        PyTorch: W [out, in]; here [in, out]
func Linear(name string, in, out int) []Param {
	draw := Uniform(1 / math.Sqrt(float64(in)))
	weight := Plain(name+".weight", draw, out, in)
	weight.Shape, weight.perm = []int{in, out}, []int{1, 0}
	return []Param{weight, Plain(name+".bias", draw, out)}
}

// LinearOfImage returns Linear for a flattened image of h × w × c, which PyTorch flattens channels first and this package channels last.
//
//	PyTorch: W [out, c·h·w]; here [h·w·c, out]
func LinearOfImage(name string, h, w, c, out int) []Param {
	params := Linear(name, h*w*c, out)
	params[0].split, params[0].perm = []int{out, c, h, w}, []int{2, 3, 1, 0}
	return params
}

// Conv returns the k × k kernel of a convolution without bias.
//
//	w ~ U(±1/√(in·k²))      PyTorch: OIHW; here HWIO
func Conv(name string, in, out, k int) Param {
	w := Plain(name+".weight", Uniform(1/math.Sqrt(float64(in*k*k))), out, in, k, k)
	w.Shape, w.perm = []int{k, k, in, out}, []int{2, 3, 1, 0}
	return w
}

// ConvTranspose returns the kernel of a transposed convolution (kernel 4, stride 2, padding 1, no bias).
//
//	w ~ U(±1/√(out·16))     PyTorch computes the fan from the second axis of IOHW; here HWIO
func ConvTranspose(name string, in, out int) Param {
	w := Plain(name+".weight", Uniform(1/math.Sqrt(float64(out*16))), in, out, 4, 4)
	w.Shape, w.perm = []int{4, 4, in, out}, []int{2, 3, 0, 1}
	return w
}

// Canvas returns a learned image: PyTorch [1, c, h, w]; here [1, h, w, c].
func Canvas(name string, h, w, c int) Param {
	p := Plain(name, Normal(1), 1, c, h, w)
	p.Shape, p.perm = []int{1, h, w, c}, []int{0, 2, 3, 1}
	return p
}

// Uniform draws from U(-bound, bound).
func Uniform(bound float64) Draw {
	return func(rng *rand.Rand, out []float32) {
		for i := range out {
			out[i] = float32(bound * (2*rng.Float64() - 1))
		}
	}
}

// Normal draws from N(0, std²).
func Normal(std float64) Draw {
	return func(rng *rand.Rand, out []float32) {
		for i := range out {
			out[i] = float32(std * rng.NormFloat64())
		}
	}
}

// Constant sets every element to v.
func Constant(v float32) Draw {
	return func(_ *rand.Rand, out []float32) {
		for i := range out {
			out[i] = v
		}
	}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

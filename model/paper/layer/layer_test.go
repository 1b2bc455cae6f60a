package layer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
)

// Each layout matches its formula, in both directions.
func TestLayouts(t *testing.T) {
	const h, w = 3, 2
	for _, c := range []struct {
		param Param
		torch func(i []int) []int // PyTorch's index of the element that lies at index i here
	}{
		{Linear("l", 3, 4)[0], func(i []int) []int { return []int{i[1], i[0]} }},
		{Linear("l", 3, 4)[1], func(i []int) []int { return i }},
		{Linear("l", 5, 35)[0], func(i []int) []int { return []int{i[1], i[0]} }},
		{Plain("scalar", Constant(0)), func(i []int) []int { return i }},
		{Plain("empty", Constant(0), 2, 0), func(i []int) []int { return i }},
		{Conv("c", 2, 3, 4), func(i []int) []int { return []int{i[3], i[2], i[0], i[1]} }},
		{Canvas("canvas", h, w, 5), func(i []int) []int { return []int{0, i[3], i[1], i[2]} }},
		{Plain("p", Constant(0), 2, 3), func(i []int) []int { return i }},
		{LinearOfImage("fc", h, w, 5, 4)[0], func(i []int) []int { // i[0] = (y·w + x)·5 + c
			y, x, c := i[0]/5/w, i[0]/5%w, i[0]%5
			return []int{i[1], (c*h+y)*w + x}
		}},
		{ConvTranspose("t", 2, 3), func(i []int) []int { return []int{i[2], i[3], i[0], i[1]} }},
	} {
		t.Run(fmt.Sprint(c.param.Name, c.param.Torch), func(t *testing.T) {
			if product(c.param.Shape) != product(c.param.Torch) {
				t.Fatalf("shape %v here, %v under PyTorch", c.param.Shape, c.param.Torch)
			}
			torch := make([]float32, c.param.Size())
			for i := range torch {
				torch[i] = float32(i)
			}
			here := c.param.FromTorch(torch)
			for at := range here {
				if want := offset(c.param.Torch, c.torch(index(c.param.Shape, at))); here[at] != float32(want) {
					t.Fatalf("element %v here is PyTorch's %v, want %d", index(c.param.Shape, at), here[at], want)
				}
			}
			if !slices.Equal(c.param.ToTorch(here), torch) {
				t.Error("ToTorch is not the inverse of FromTorch")
			}
		})
	}
}

func index(shape []int, at int) []int {
	i := make([]int, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		i[axis], at = at%shape[axis], at/shape[axis]
	}
	return i
}

func offset(shape, index []int) (at int) {
	for axis, n := range shape {
		at = at*n + index[axis]
	}
	return at
}

// PyTorch's default bounds, checked by the standard deviation of a uniform distribution: bound/√3. Fans are Linear: in; Conv2d: in·k²;
// ConvTranspose2d: out·k², since PyTorch computes the fan from the second axis.
func TestInitialDistributions(t *testing.T) {
	for _, c := range []struct {
		param Param
		bound float64
	}{
		{Linear("l", 64, 500)[0], 1 / math.Sqrt(64)},
		{Linear("l", 64, 5000)[1], 1 / math.Sqrt(64)},
		{Conv("c", 16, 64, 4), 1 / math.Sqrt(16*16)},
		{ConvTranspose("t", 64, 16), 1 / math.Sqrt(16*16)},
	} {
		var sum, squares, largest float64
		values := c.param.Initial(1)
		for _, v := range values {
			sum, squares, largest = sum+float64(v), squares+float64(v)*float64(v), math.Max(largest, math.Abs(float64(v)))
		}
		n := float64(len(values))
		deviation, want := math.Sqrt(squares/n), c.bound/math.Sqrt(3)
		if math.Abs(deviation/want-1) > 0.04 || math.Abs(sum/n) > 4*want/math.Sqrt(n) || largest > c.bound || largest < 0.99*c.bound {
			t.Errorf("%s %v: mean %.2g, deviation %.4f, largest %.4f; want 0, %.4f, %.4f",
				c.param.Name, c.param.Torch, sum/n, deviation, largest, want, c.bound)
		}
	}
}

// Every name has its own stream, and a seed reproduces it.
func TestInitialStreams(t *testing.T) {
	a, b := Plain("a", Normal(1), 8), Plain("b", Normal(1), 8)
	if !slices.Equal(a.Initial(1), a.Initial(1)) {
		t.Error("a seed gave two different tensors")
	}
	if slices.Equal(a.Initial(1), b.Initial(1)) || slices.Equal(a.Initial(1), a.Initial(2)) {
		t.Error("two names or two seeds gave the same tensor")
	}
	// A pinned draw: changing it would change the result of every stored seed.
	want := []float32{-0.08014559, 0.8902773, 0.026361274}
	if got := Plain("pinned", Uniform(1), 3).Initial(7); !slices.Equal(got, want) {
		t.Errorf("the stream of seed 7 is %v, want %v", got, want)
	}
	// Elements are drawn in PyTorch's order, whatever the layout here.
	for _, p := range []Param{Linear("l", 4, 3)[0], LinearOfImage("i", 2, 3, 4, 5)[0], Conv("c", 2, 3, 4), ConvTranspose("t", 2, 3), Canvas("v", 2, 3, 4)} {
		if slices.Equal(p.Torch, p.Shape) {
			t.Fatalf("%s has the same layout in PyTorch and here", p.Name)
		}
		if got, want := p.ToTorch(p.Initial(7)), Plain(p.Name, p.Draw, p.Torch...).Initial(7); !slices.Equal(got, want) {
			t.Errorf("%s is drawn in another order than PyTorch's: %v, want %v", p.Name, got[:3], want[:3])
		}
	}
}

func TestLeakyReLU(t *testing.T) {
	got := execute(t, func(x *Node) []*Node {
		y := LeakyReLU(x, 0.2)
		return []*Node{y, Gradient(ReduceAllSum(y), x)[0]}
	}, []float32{-2, 0, 3})
	if want := []float32{-0.4, 0, 3}; !slices.Equal(got[0], want) {
		t.Errorf("values %v, want %v", got[0], want)
	}
	if want := []float32{0.2, 0.2, 1}; !slices.Equal(got[1], want) {
		t.Errorf("gradients %v, want %v, as PyTorch has them", got[1], want)
	}
}

// The rules replace the function's own gradient, and non-finite inputs do not affect the value.
func TestWithGradient(t *testing.T) {
	got := execute(t, func(x *Node) []*Node {
		w := MulScalar(x, 2)
		y := WithGradient(Mul(x, w), []*Node{x, w},
			func(v *Node) *Node { return MulScalar(v, 10) },
			func(v *Node) *Node { return MulScalar(v, 100) })
		return []*Node{y, Gradient(ReduceAllSum(MulScalar(y, 3)), x)[0]}
	}, []float32{2, float32(math.Inf(1))})
	if got[0][0] != 8 || !math.IsInf(float64(got[0][1]), 1) {
		t.Errorf("values %v, want 8 and +Inf", got[0])
	}
	if want := float32(3 * (10 + 2*100)); got[1][0] != want || got[1][1] != want {
		t.Errorf("gradients %v, want %v", got[1], want)
	}
}

func TestMissingVariable(t *testing.T) {
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	_, err = context.ExecOnce(e.Backend, context.New(), func(scope *context.Context, x *Node) *Node {
		return Dense(scope, "fc1", x)
	}, [][]float32{{1}})
	if err == nil {
		t.Error("a graph was built with a missing variable")
	}
}

func execute(t *testing.T, f func(x *Node) []*Node, x []float32) (flat [][]float32) {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range MustExecOnceN(e.Backend, f, x) {
		flat = append(flat, tensors.MustCopyFlatData[float32](o))
	}
	return flat
}

func BenchmarkFromTorch(b *testing.B) {
	for _, p := range []Param{Plain("plain", Constant(0), 512, 4608), Linear("linear", 512, 4608)[0], LinearOfImage("image", 4, 4, 512, 512)[0], Conv("conv", 256, 512, 4), ConvTranspose("up", 512, 256)} {
		b.Run(p.Name, func(b *testing.B) {
			torch := make([]float32, p.Size())
			b.SetBytes(int64(4 * len(torch)))
			for b.Loop() {
				p.FromTorch(torch)
			}
		})
	}
}

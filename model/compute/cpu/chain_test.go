//go:build cgo

package cpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"pgregory.net/rapid"
)

// plain is a tensor without an engine: operations on it follow their definitions, element by element.
type plain struct {
	dims   []int
	values []float32
}

func (p plain) at(index []int) float32 {
	flat := 0
	for a, i := range index {
		flat = flat*p.dims[a] + i
	}
	return p.values[flat]
}

// plainOf makes a tensor of dims with the elements that from returns.
func plainOf(dims []int, from func(index []int) float32) plain {
	out := plain{dims: dims}
	index := make([]int, len(dims))
	size := 1
	for _, d := range dims {
		size *= d
	}
	for range size {
		out.values = append(out.values, from(index))
		for a := len(dims) - 1; a >= 0; a-- {
			if index[a]++; index[a] < dims[a] {
				break
			}
			index[a] = 0
		}
	}
	return out
}

// link is an operation, on plain tensors and on a graph.
type link struct {
	name  string
	plain func(plain) plain
	graph func(*Node) *Node
}

// links has functions that draw an operation for a tensor of given dims.
var links = []func(*rapid.T, []int) link{drawSlice, drawPad, drawReverse, drawTranspose, drawBroadcast, drawJoin, drawSum, drawGreatest, drawDouble}

func drawAxis(t *rapid.T, dims []int) int { return rapid.IntRange(0, len(dims)-1).Draw(t, "axis") }

func drawSlice(t *rapid.T, dims []int) link {
	if slices.Contains(dims, 0) { // GoMLX rejects slices of empty axes
		return drawDouble(t, dims)
	}
	from, stride, specs, out := make([]int, len(dims)), make([]int, len(dims)), make([]SliceAxisSpec, len(dims)), make([]int, len(dims))
	for a, d := range dims {
		from[a] = rapid.IntRange(0, d-1).Draw(t, "from")
		to := rapid.IntRange(from[a], d).Draw(t, "to")
		stride[a] = rapid.IntRange(1, 4).Draw(t, "stride")
		out[a] = (to - from[a] + stride[a] - 1) / stride[a]
		specs[a] = AxisRange(from[a], to).Stride(stride[a])
	}
	return link{fmt.Sprint("slice from ", from, " to ", out, " by ", stride), func(p plain) plain {
		return plainOf(out, func(index []int) float32 {
			source := make([]int, len(index))
			for a, i := range index {
				source[a] = from[a] + i*stride[a]
			}
			return p.at(source)
		})
	}, func(x *Node) *Node { return Slice(x, specs...) }}
}

func drawPad(t *rapid.T, dims []int) link {
	pads, out := make([]backends.PadAxis, len(dims)), make([]int, len(dims))
	for a, d := range dims {
		p := backends.PadAxis{Start: rapid.IntRange(-2, 3).Draw(t, "start"), End: rapid.IntRange(-2, 3).Draw(t, "end"), Interior: rapid.IntRange(0, 2).Draw(t, "interior")}
		wide := d + max(d-1, 0)*p.Interior
		p.Start = max(p.Start, -wide)
		p.End = max(p.End, -wide-p.Start)
		pads[a], out[a] = p, wide+p.Start+p.End
	}
	return link{fmt.Sprintf("pad %+v", pads), func(p plain) plain {
		return plainOf(out, func(index []int) float32 {
			source := make([]int, len(index))
			for a, i := range index {
				i -= pads[a].Start
				if i < 0 || i%(pads[a].Interior+1) != 0 || i/(pads[a].Interior+1) >= p.dims[a] {
					return -7
				}
				source[a] = i / (pads[a].Interior + 1)
			}
			return p.at(source)
		})
	}, func(x *Node) *Node { return Pad(x, Scalar(x.Graph(), x.DType(), -7), pads...) }}
}

func drawReverse(t *rapid.T, dims []int) link {
	axis := drawAxis(t, dims)
	return link{fmt.Sprint("reverse ", axis), func(p plain) plain {
		return plainOf(p.dims, func(index []int) float32 {
			source := slices.Clone(index)
			source[axis] = p.dims[axis] - 1 - index[axis]
			return p.at(source)
		})
	}, func(x *Node) *Node { return Reverse(x, axis) }}
}

func drawTranspose(t *rapid.T, dims []int) link {
	order := make([]int, len(dims))
	for a := range order {
		order[a] = a
	}
	order = rapid.Permutation(order).Draw(t, "order")
	out := make([]int, len(dims))
	for a, o := range order {
		out[a] = dims[o]
	}
	return link{fmt.Sprint("transpose ", order), func(p plain) plain {
		return plainOf(out, func(index []int) float32 {
			source := make([]int, len(index))
			for a, i := range index {
				source[order[a]] = i
			}
			return p.at(source)
		})
	}, func(x *Node) *Node { return TransposeAllAxes(x, order...) }}
}

func drawBroadcast(t *rapid.T, dims []int) link {
	n := rapid.IntRange(1, 3).Draw(t, "times")
	return link{fmt.Sprint("broadcast to ", n), func(p plain) plain {
		return plainOf(append([]int{n}, p.dims...), func(index []int) float32 { return p.at(index[1:]) })
	}, func(x *Node) *Node { return BroadcastPrefix(x, n) }}
}

func drawJoin(t *rapid.T, dims []int) link {
	axis := drawAxis(t, dims)
	out := slices.Clone(dims)
	out[axis] *= 2
	return link{fmt.Sprint("join with its negative along ", axis), func(p plain) plain {
		return plainOf(out, func(index []int) float32 {
			if index[axis] < dims[axis] {
				return p.at(index)
			}
			source := slices.Clone(index)
			source[axis] -= dims[axis]
			return -p.at(source)
		})
	}, func(x *Node) *Node { return Concatenate([]*Node{x, Neg(x)}, axis) }}
}

// over makes a reduction of one axis.
func over(t *rapid.T, dims []int, name string, start float32, join func(a, b float32) float32, graph func(*Node, ...int) *Node) link {
	axis := drawAxis(t, dims)
	return link{fmt.Sprint(name, " over ", axis), func(p plain) plain {
		return plainOf(slices.Delete(slices.Clone(dims), axis, axis+1), func(index []int) float32 {
			all := start
			for i := range dims[axis] {
				all = join(all, p.at(slices.Insert(slices.Clone(index), axis, i)))
			}
			return all
		})
	}, func(x *Node) *Node { return graph(x, axis) }}
}

func drawSum(t *rapid.T, dims []int) link {
	return over(t, dims, "sum", 0, func(a, b float32) float32 { return a + b }, ReduceSum)
}

func drawGreatest(t *rapid.T, dims []int) link { // with a lower bound, since backends differ in the maximum of no elements
	return over(t, dims, "greatest", -9, func(a, b float32) float32 { return max(a, b) }, func(x *Node, axes ...int) *Node {
		return MaxScalar(ReduceMax(x, axes...), -9)
	})
}

func drawDouble(_ *rapid.T, _ []int) link {
	return link{"x + x", func(p plain) plain {
		return plainOf(p.dims, func(index []int) float32 { return p.at(index) + p.at(index) })
	}, func(x *Node) *Node { return Add(x, x) }}
}

// drawChain draws a tensor, which may have axes of size 0 and 1 or no axes, and a chain of operations.
func drawChain(t *rapid.T) (plain, []link) {
	number := float32(0)
	x := plainOf(rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "dims"), func([]int) float32 { number++; return number })
	var chain []link
	for at := x; len(chain) < 6 && len(at.values) <= 20_000; {
		draws := links
		if len(at.dims) == 0 {
			draws = links[len(links)-1:] // the other operations need an axis or make one
			if rapid.Bool().Draw(t, "repeat") {
				draws = []func(*rapid.T, []int) link{drawBroadcast}
			}
		}
		l := draws[rapid.IntRange(0, len(draws)-1).Draw(t, "operation")](t, at.dims)
		at = l.plain(at)
		chain = append(chain, l)
	}
	return x, chain
}

// checkChain compares every tensor of a chain with its definition; the sums of small integers are exact.
func checkChain(b backends.Backend) func(*rapid.T) {
	return func(t *rapid.T) {
		x, chain := drawChain(t)
		exec, err := NewExecAny(b, func(x *Node) (all []*Node) {
			for _, l := range chain {
				x = l.graph(x)
				all = append(all, x)
			}
			return all
		})
		if err != nil {
			t.Fatal(err)
		}
		defer exec.Finalize()
		out, err := exec.Exec(tensors.FromFlatDataAndDimensions(slices.Clone(x.values), x.dims...))
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range chain {
			x = l.plain(x)
			got := floats(out[i])
			if !slices.Equal(out[i].Shape().Dimensions, x.dims) || len(got) != len(x.values) {
				t.Fatalf("%s: shape %s, want %v", l.name, out[i].Shape(), x.dims)
			}
			for j, want := range x.values {
				if float32(got[j]) != want {
					t.Fatalf("%s: element %d of %v is %g, want %g", l.name, j, x.dims, got[j], want)
				}
			}
		}
	}
}

func TestChains(t *testing.T) { rapid.Check(t, checkChain(engine(t))) }

func FuzzChains(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkChain(engine(f)))) }

//go:build cgo

package cpu

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"pgregory.net/rapid"

	"slotscope/model/compute/cpu/kernel"
)

// withoutBackground runs f while no steps are planned to be computed in the background.
func withoutBackground(f func()) {
	before := backgroundSoon
	backgroundSoon = math.MaxInt
	defer func() { backgroundSoon = before }()
	f()
}

// behind returns the steps that are computed in the background.
func behind(e *Executable) (steps []int) {
	for i, s := range e.steps {
		if s.until > 0 {
			steps = append(steps, i)
		}
	}
	return steps
}

// memoryOf returns where an argument lies: which arena or buffer, and its bytes. Outputs may use the memory of a donated input.
func memoryOf(e *Executable, h home) (where, at, end int) {
	switch h.kind {
	case inArena:
		return -1, h.at, h.at + h.bytes
	case inOutput:
		if in := e.layout.reuse[h.index]; in >= 0 {
			return in, 0, h.bytes
		}
		return 1000 + h.index, 0, h.bytes
	case inInput:
		return h.index, 0, h.bytes
	}
	return -2, 0, 0
}

// checkApart checks that no step writes what a step in the background reads or writes meanwhile, or reads what it writes, unless it waits for that step.
func checkApart(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, e *Executable) {
	t.Helper()
	meet := func(a, b []home) bool {
		for _, x := range a {
			for _, y := range b {
				w, at, end := memoryOf(e, x)
				if v, from, to := memoryOf(e, y); v == w && max(at, from) < min(end, to) {
					return true
				}
			}
		}
		return false
	}
	reads := func(k, i int) bool {
		return slices.ContainsFunc(e.steps[k].in, func(n *node) bool { return slices.Contains(e.steps[i].out, n) })
	}
	for _, i := range behind(e) {
		waits := make([]bool, len(e.steps)) // those that begin when step i has ended
		for k := i + 1; k < e.steps[i].until; k++ {
			for j := i; j < k; j++ {
				waits[k] = waits[k] || (j == i || waits[j]) && reads(k, j)
			}
			if waits[k] && e.steps[k].until == 0 {
				t.Fatalf("step %d (%s) reads step %d (%s) before it ends", k, e.steps[k].title(), i, e.steps[i].title())
			}
			if !waits[k] && (meet(e.layout.out[k], e.layout.in[i]) || meet(e.layout.out[k], e.layout.out[i]) || meet(e.layout.in[k], e.layout.out[i])) {
				t.Fatalf("step %d (%s) uses the memory of step %d (%s), which is in the background until step %d", k, e.steps[k].title(), i, e.steps[i].title(), e.steps[i].until)
			}
		}
	}
}

// layers returns a step of gradient descent on three convolutions.
func layers(in []*Node) []*Node {
	y := in[0]
	for _, w := range in[1:] {
		y = Max(Convolve(y, w).PadSame().Done(), MulScalar(y, 0.2))
	}
	loss := ReduceAllMean(Square(y))
	outs := []*Node{loss}
	for i, g := range Gradient(loss, in[1:]...) {
		outs = append(outs, Sub(in[1+i], MulScalar(g, 0.1)))
	}
	return outs
}

var layersOf = []shapes.Shape{f32(16, 16, 16, 8), f32(3, 3, 8, 8), f32(3, 3, 8, 8), f32(3, 3, 8, 8)}

// TestBackground checks that the gradient for the last kernel is computed in the background while those of the layers before it are, but not by one thread, and no
// gradient that the next layer reads.
func TestBackground(t *testing.T) {
	e := build(t, engineOf(t, "3"), layersOf, layers)
	checkApart(t, e)
	gradients := 0
	for _, i := range behind(e) {
		switch s := e.steps[i]; {
		case s.nodes[0].op == backends.OpTypeConvGeneral && s.out[0].shape.Dimensions[0] == 3:
			gradients++
		case s.out[0].shape.Rank() == 4:
			t.Errorf("in the background: %s", s.title())
		}
	}
	if gradients != 1 { // the other two begin at the same time
		t.Errorf("%d gradients are in the background: %v", gradients, work(e))
	}
	if e := build(t, engineOf(t, "1"), layersOf, layers); len(behind(e)) > 0 {
		t.Error("one thread has steps in the background")
	}
}

// TestBackgroundMemory checks that steps in the background end early enough to keep little memory in use.
func TestBackgroundMemory(t *testing.T) {
	of := []shapes.Shape{f32(8192, 256)} // 8 MiB
	for range 16 {
		of = append(of, f32(256, 256))
	}
	dense := func(in []*Node) []*Node {
		y := in[0]
		for _, w := range in[1:] {
			y = Tanh(Dot(y, w))
		}
		return Gradient(ReduceAllMean(Square(y)), in[1:]...)
	}
	b := engineOf(t, "2")
	var alone *Executable
	withoutBackground(func() { alone = build(t, b, of, dense) })
	e := build(t, b, of, dense)
	checkApart(t, e)
	if len(behind(e)) == 0 || e.layout.arena > alone.layout.arena+4*backgroundMost {
		t.Errorf("%d bytes with %d steps in the background, %d bytes without", e.layout.arena, len(behind(e)), alone.layout.arena)
	}
}

// withProducts returns the results of networks, one after the other, and products of what each reads and computes, one of them of another one.
func withProducts(networks []func(x, kernel, bias *Node) []*Node, in []*Node) (outs []*Node) {
	x := in[0]
	for _, fn := range networks {
		all := fn(x, in[1], in[2])
		y := all[len(all)-1]
		if y.Shape().Equal(x.Shape()) {
			left, right := Reshape(x, -1, 8), Reshape(y, -1, 8)
			product := Dot(Transpose(left, 0, 1), right)
			outs = append(outs, Dot(product, AddScalar(product, 1)), Einsum("nhwc,nhwd->cd", x, y)) // the latter uses scratch
		}
		outs, x = append(outs, all...), y
	}
	return outs
}

// TestBackgroundChangesNothing compares random networks with and without steps in the background, bit by bit, in new and in used
// memory, with and without a donated input, and with simulated threads.
func TestBackgroundChangesNothing(t *testing.T) {
	found, chained := 0, 0 // steps in the background, and those that wait for others there
	engines := []backends.Backend{engineOf(t, "2"), engineOf(t, "5"), Simulate(3)}
	rapid.Check(t, func(t *rapid.T) {
		n, first := drawNetwork(t)
		networks := []func(x, kernel, bias *Node) []*Node{first}
		for range 3 {
			_, fn := drawNetwork(t)
			networks = append(networks, fn)
		}
		b := engines[rapid.IntRange(0, len(engines)-1).Draw(t, "engine")]
		donate := rapid.Bool().Draw(t, "donate")
		params := []shapes.Shape{f32(n, 8, 8, 8), f32(3, 3, 8, 8), f32(1, 1, 1, 8)}
		var want [][]float32
		compare := func() {
			e := build(t, b, params, func(in []*Node) []*Node { return withProducts(networks, in) })
			checkApart(t, e)
			found += len(behind(e))
			for _, i := range behind(e) {
				if len(e.steps[i].after) > 0 {
					chained++
				}
			}
			for range 3 {
				got := computed(t, b, e, []bool{donate, false, false})
				if want == nil {
					want = got
				}
				for k, x := range got {
					for j := range x {
						if want := want[k][j]; math.Float32bits(x[j]) != math.Float32bits(want) {
							t.Fatalf("element %d of result %d is %v instead of %v with %d steps in the background", j, k, x[j], want, len(behind(e)))
						}
					}
				}
			}
		}
		withoutBackground(compare)
		compare()
	})
	if found == 0 || chained == 0 {
		t.Errorf("all networks had %d steps in the background, and %d that wait for another", found, chained)
	}
}

// TestFailingBackground checks that a step that fails in the background is named, that an execution ends only when its steps in the background have, and
// that the engine stays usable.
func TestFailingBackground(t *testing.T) {
	b := engineOf(t, "3")
	e := build(t, b, layersOf, layers)
	i := behind(e)[0]
	execute := func() error {
		var in []backends.Buffer
		for _, s := range layersOf {
			in = append(in, upload(t, b, flat{ramp(s.Size()), s}))
		}
		_, err := e.Execute(in, nil, 0)
		return err
	}
	good, next := e.steps[i].run, e.steps[i+1].run
	e.steps[i].run = func(*kernel.Pool, [][]byte, [][]byte) { panic("on purpose") }
	if err := execute(); err == nil || !strings.Contains(err.Error(), "on purpose") || !strings.Contains(err.Error(), e.steps[i].describe()) {
		t.Errorf("%v; want an error of %s", err, e.steps[i].describe())
	}
	var ended atomic.Bool
	e.steps[i].run = func(*kernel.Pool, [][]byte, [][]byte) {
		time.Sleep(30 * time.Millisecond)
		ended.Store(true)
	}
	e.steps[i+1].run = func(*kernel.Pool, [][]byte, [][]byte) { panic("on purpose") }
	if err := execute(); err == nil || !ended.Load() {
		t.Errorf("%v; the step in the background has ended: %v", err, ended.Load())
	}
	e.steps[i].run, e.steps[i+1].run = good, next
	if err := execute(); err != nil {
		t.Error(err)
	}
}

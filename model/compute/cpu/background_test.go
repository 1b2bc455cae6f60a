//go:build cgo

package cpu

import (
	"math"
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

// withBackground sets the number of operations from which steps are computed in the background, while f runs.
func withBackground(least int, f func()) {
	before := backgroundLeast
	backgroundLeast = least
	defer func() { backgroundLeast = before }()
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

// checkApart checks that no step writes what a step in the background reads or writes meanwhile, or reads what it writes.
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
	for _, i := range behind(e) {
		for k := i + 1; k < e.steps[i].until; k++ {
			if meet(e.layout.out[k], e.layout.in[i]) || meet(e.layout.out[k], e.layout.out[i]) || meet(e.layout.in[k], e.layout.out[i]) {
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

// TestBackground checks that the gradients for kernels are computed in the background until the optimizer reads them, but not by one thread, and no product that
// the next step reads.
func TestBackground(t *testing.T) {
	withBackground(1, func() {
		e := build(t, engineOf(t, "3"), layersOf, layers)
		checkApart(t, e)
		for _, i := range behind(e) {
			if s := e.steps[i]; s.nodes[0].op != backends.OpTypeConvGeneral || s.out[0].shape.Dimensions[0] != 3 {
				t.Errorf("in the background: %s", s.title())
			}
		}
		if n := len(behind(e)); n != 2 { // the third one has no later gradients to wait for
			t.Errorf("%d steps are in the background: %v", n, work(e))
		}
		if e := build(t, engineOf(t, "1"), layersOf, layers); len(behind(e)) > 0 {
			t.Error("one thread has steps in the background")
		}
	})
	if e := build(t, engineOf(t, "3"), layersOf[:2], layers); len(behind(e)) > 0 {
		t.Error("small products are in the background")
	}
}

// withProducts returns the results of networks, one after the other, and products of what each reads and computes.
func withProducts(networks []func(x, kernel, bias *Node) []*Node, in []*Node) (outs []*Node) {
	x := in[0]
	for _, fn := range networks {
		all := fn(x, in[1], in[2])
		y := all[len(all)-1]
		if y.Shape().Equal(x.Shape()) {
			left, right := Reshape(x, -1, 8), Reshape(y, -1, 8)
			outs = append(outs, Dot(Transpose(left, 0, 1), right), Einsum("nhwc,nwhd->cd", x, y)) // the latter uses scratch
		}
		outs, x = append(outs, all...), y
	}
	return outs
}

// TestBackgroundChangesNothing compares random networks with and without steps in the background, bit by bit, in new and in used
// memory, with and without a donated input, and with simulated threads.
func TestBackgroundChangesNothing(t *testing.T) {
	found := 0
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
		var results [2][][]float32
		for i, least := range []int{math.MaxInt, 1} {
			withBackground(least, func() {
				e := build(t, b, params, func(in []*Node) []*Node { return withProducts(networks, in) })
				checkApart(t, e)
				found += len(behind(e))
				for range 3 {
					got := computed(t, b, e, []bool{donate, false, false})
					if results[i] == nil {
						results[i] = got
					}
					for k, x := range got {
						for j := range x {
							if want := results[0][k][j]; math.Float32bits(x[j]) != math.Float32bits(want) {
								t.Fatalf("element %d of result %d is %v instead of %v with %d steps in the background", j, k, x[j], want, len(behind(e)))
							}
						}
					}
				}
			})
		}
	})
	if found == 0 {
		t.Error("no network had a step in the background")
	}
}

// TestFailingBackground checks that a step that fails in the background is named, that an execution ends only when its steps in the background have, and
// that the engine stays usable.
func TestFailingBackground(t *testing.T) {
	withBackground(1, func() {
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
	})
}

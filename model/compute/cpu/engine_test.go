//go:build cgo

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// engine opens the backend under test with two workers.
func engine(t testing.TB) backends.Backend { return engineOf(t, "2") }

// engineOf opens the backend under test.
func engineOf(t testing.TB, config string) backends.Backend {
	t.Helper()
	b, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// reference opens GoMLX's Go backend.
func reference(t testing.TB) backends.Backend {
	t.Helper()
	b, err := simplego.New("ops_sequential") // has data races when parallel
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// eval computes a graph function on a backend.
func eval(t testing.TB, b backends.Backend, fn any, inputs ...any) []*tensors.Tensor {
	t.Helper()
	exec, err := NewExecAny(b, fn)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Exec(copies(inputs)...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

// eval1 computes a graph function with one result, as a Go value.
func eval1(t testing.TB, b backends.Backend, fn any, inputs ...any) any {
	t.Helper()
	return eval(t, b, fn, inputs...)[0].Value()
}

// ramp returns n values in [−0.5, 0.5) without an obvious pattern.
func ramp(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i*7919)%101)/101 - 0.5
	}
	return v
}

// random fills a tensor: normally distributed floats, small integers and booleans.
func random(rng *rand.Rand, shape shapes.Shape) *tensors.Tensor {
	t := tensors.FromShape(shape)
	t.MustMutableFlatData(func(flat any) {
		v := reflect.ValueOf(flat)
		for i := range v.Len() {
			e := v.Index(i)
			switch {
			case shape.DType == dtypes.Bool:
				e.SetBool(rng.IntN(2) == 1)
			case e.CanFloat():
				e.SetFloat(rng.NormFloat64())
			case shape.DType.IsUnsigned():
				e.SetUint(uint64(rng.IntN(20)))
			case shape.DType.IsInt():
				e.SetInt(int64(rng.IntN(40) - 20))
			default: // 16-bit floats
				e.Set(reflect.ValueOf(shapes.CastAsDType(rng.NormFloat64(), shape.DType)))
			}
		}
	})
	return t
}

// floats returns the elements of a tensor as float64.
func floats(t *tensors.Tensor) []float64 {
	var out []float64
	t.MustConstFlatData(func(flat any) {
		v := reflect.ValueOf(flat)
		for i := range v.Len() {
			out = append(out, toFloat(v.Index(i)))
		}
	})
	return out
}

func toFloat(e reflect.Value) float64 {
	if half, ok := e.Interface().(interface{ Float32() float32 }); ok {
		return float64(half.Float32())
	}
	switch {
	case e.Kind() == reflect.Bool:
		if e.Bool() {
			return 1
		}
		return 0
	case e.CanInt():
		return float64(e.Int())
	case e.CanUint():
		return float64(e.Uint())
	}
	return e.Float()
}

// near compares tensors; differences up to tolerance times the larger of 1 and the value are allowed.
func near(got, want *tensors.Tensor, tolerance float64) error {
	if !got.Shape().Equal(want.Shape()) {
		return fmt.Errorf("shape %s, want %s", got.Shape(), want.Shape())
	}
	g, w := floats(got), floats(want)
	for i := range g {
		if g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i]) {
			continue
		}
		if d := math.Abs(g[i] - w[i]); !(d <= tolerance*max(1, math.Abs(w[i]))) {
			return fmt.Errorf("element %d of %s is %g, want %g (off by %g)", i, got.Shape(), g[i], w[i], d)
		}
	}
	return nil
}

// copies detaches tensors, which belong to the first backend that uses them.
func copies(inputs []any) []any {
	out := make([]any, len(inputs))
	for i, v := range inputs {
		out[i] = v
		if t, ok := v.(*tensors.Tensor); ok {
			c, err := t.LocalClone()
			if err != nil {
				panic(err)
			}
			out[i] = c
		}
	}
	return out
}

// agree computes on both backends and compares all results.
func agree(t *testing.T, name string, tolerance float64, fn any, inputs ...any) {
	t.Helper()
	got, want := eval(t, engine(t), fn, inputs...), eval(t, reference(t), fn, inputs...)
	for i := range want {
		if err := near(got[i], want[i], tolerance); err != nil {
			t.Errorf("%s: result %d: %v", name, i, err)
		}
	}
}

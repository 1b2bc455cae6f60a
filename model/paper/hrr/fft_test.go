package hrr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/paper/hrr"
	"slotscope/model/paper/hrr/hrrtest"
)

// draw returns random HRR vectors of d components, as a tensor and as rows.
func draw(rng *rand.Rand, d int, counts ...int) (*tensors.Tensor, [][]float64) {
	n := 1
	for _, c := range counts {
		n *= c
	}
	rows := make([][]float64, n)
	var flat []float64
	for i := range rows {
		rows[i] = hrr.Symbol[float64](rng, d)
		flat = append(flat, rows[i]...)
	}
	return tensors.FromFlatDataAndDimensions(flat, append(counts, d)...), rows
}

// dimensions has even and odd, prime and composite values, and the smallest.
var dimensions = []int{1, 2, 3, 8, 13, 24, 25, 31, 64}

// The forms of binding all slots, products with circulants or with their halves and products of spectra, agree with the definition. So do
// the halves of known symbols, and those of single slots.
func TestFormsOfBindingAgree(t *testing.T) {
	const m, batch = 3, 4
	b := engine(t)
	for _, d := range dimensions {
		rng := rand.New(rand.NewPCG(uint64(d), 21))
		symbolTensor, symbolRows := draw(rng, d, m)
		zTensor, z := draw(rng, d, batch)
		valueTensor, values := draw(rng, d, batch, m)
		got := MustExecOnceN(b, func(symbols, z, values *Node) []*Node {
			circulants := hrr.CirculantsOf(symbols)
			unbound := []*Node{hrr.UnbindAll(circulants, z), hrr.UnbindAllFFT(symbols, z)}
			bundles := []*Node{hrr.BindAll(circulants, values), hrr.BindAllFFT(symbols, values)}
			if d%2 == 0 {
				sum, difference := hrr.HalfCirculants(slices.Concat(symbolRows...), m)
				constant := func(x []float64) *Node {
					return ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(x, d/2, m*d/2))
				}
				learned, known := hrr.HalvesOf(symbols), hrr.Halves{Sum: constant(sum), Difference: constant(difference)}
				var retrieved []*Node
				single := ZerosLike(bundles[0])
				for i := range m {
					retrieved = append(retrieved, known.Slot(i).UnbindAll(z))
					single = Add(single, learned.Slot(i).BindAll(Slice(values, AxisRange(), AxisElem(i), AxisRange())))
				}
				unbound = append(unbound, learned.UnbindAll(z), known.UnbindAll(z), Concatenate(retrieved, 1))
				bundles = append(bundles, learned.BindAll(values), known.BindAll(values), single)
			}
			return append(unbound, bundles...)
		}, symbolTensor, zTensor, valueTensor)
		var unbound, bundled []float64
		for i := range batch {
			pairs := make([][]float64, m)
			for k, s := range symbolRows {
				unbound = append(unbound, hrrtest.Unbind(s, z[i])...)
				pairs[k] = hrrtest.Bind(s, values[i*m+k])
			}
			bundled = append(bundled, hrrtest.Bundle(pairs...)...)
		}
		for k, out := range got {
			want := unbound
			if k >= len(got)/2 {
				want = bundled
			}
			same(t, tensors.MustCopyFlatData[float64](out), want, 1e-12) // a few hundred roundings of numbers around 1
		}
	}
}

// In float32, which the model uses, the forms differ only by rounding.
func TestFormsOfBindingAgreeInSingle(t *testing.T) {
	w := newWorld()
	got := MustExecOnceN(engine(t), func(symbols, z, values *Node) []*Node {
		circulants := hrr.CirculantsOf(symbols)
		return []*Node{
			hrr.UnbindAll(circulants, z), hrr.BindAll(circulants, values), hrr.UnbindAllFFT(symbols, z), hrr.BindAllFFT(symbols, values),
		}
	}, w.symbolTensor, w.zTensor, w.valuesTensor)
	for k := range 2 {
		same(t, tensors.MustCopyFlatData[float32](got[2+k]), tensors.MustCopyFlatData[float32](got[k]), 2e-6)
	}
}

// Gradients with respect to symbols, latents and values agree between the forms; those of the circulants are checked against
// finite differences elsewhere.
func TestFormsOfBindingHaveOneGradient(t *testing.T) {
	const m, batch = 3, 4
	b := engine(t)
	loss := func(symbols, z, values *Node, form string) *Node {
		var retrieved, bundle *Node
		switch form {
		case "spectra":
			retrieved, bundle = hrr.UnbindAllFFT(symbols, z), hrr.BindAllFFT(symbols, values)
		case "halves":
			halves := hrr.HalvesOf(symbols)
			retrieved, bundle = halves.UnbindAll(z), halves.BindAll(values)
		default:
			circulants := hrr.CirculantsOf(symbols)
			retrieved, bundle = hrr.UnbindAll(circulants, z), hrr.BindAll(circulants, values)
		}
		return Add(ReduceAllSum(Sin(MulScalar(retrieved, 3))), ReduceAllSum(Mul(Square(bundle), Cos(bundle))))
	}
	for _, d := range dimensions {
		rng := rand.New(rand.NewPCG(uint64(d), 22))
		symbols, _ := draw(rng, d, m)
		z, _ := draw(rng, d, batch)
		values, _ := draw(rng, d, batch, m)
		got := MustExecOnceN(b, func(symbols, z, values *Node) (all []*Node) {
			for _, form := range []string{"circulants", "spectra", "halves"}[:3-d%2] {
				all = append(all, Gradient(loss(symbols, z, values, form), symbols, z, values)...)
			}
			return all
		}, symbols, z, values)
		for k := range len(got) - 3 {
			same(t, tensors.MustCopyFlatData[float64](got[3+k]), tensors.MustCopyFlatData[float64](got[k%3]), 1e-11)
		}
	}
}

// The exact inverse has one value and gradient with Fourier matrices and with FFTs, at even and odd d.
func TestFormsOfExactInverseAgree(t *testing.T) {
	const m = 3
	for _, d := range dimensions {
		symbols, _ := draw(rand.New(rand.NewPCG(uint64(d), 25)), d, m)
		got := MustExecOnceN(engine(t), func(symbols *Node) (all []*Node) {
			for _, inverse := range []func(*Node) *Node{hrr.ExactOf, hrr.ExactFFT} {
				exact := inverse(symbols)
				all = append(all, exact, Gradient(ReduceAllSum(Sin(exact)), symbols)[0])
			}
			return all
		}, symbols)
		for k, of := range []string{"inverse", "gradient"} {
			want, have := tensors.MustCopyFlatData[float64](got[k]), tensors.MustCopyFlatData[float64](got[2+k])
			var largest float64 // the weakest frequency magnifies rounding
			for _, v := range want {
				largest = max(largest, math.Abs(v))
			}
			t.Logf("d=%d: %s up to %.3g", d, of, largest)
			same(t, have, want, 1e-10*(1+largest))
		}
	}
}

// BenchmarkForms times unbinding and binding of m = 9 slots with frozen symbols, including gradients with respect to z and the values.
// It reports the fastest iteration in milliseconds, which is robust to other load on the machine.
func BenchmarkForms(b *testing.B) {
	const m = 9
	e := engine(b)
	for _, s := range []struct{ d, batch int }{{64, 64}, {128, 32}, {256, 32}, {512, 32}, {768, 32}, {1024, 32}, {1536, 32}, {2048, 32}, {2058, 32}, {3072, 32}, {4096, 32}, {8192, 32}} {
		rng := rand.New(rand.NewPCG(23, 24))
		symbols := make([]float32, 0, m*s.d)
		for range m {
			symbols = append(symbols, hrr.Symbol[float32](rng, s.d)...)
		}
		z := tensors.FromFlatDataAndDimensions(hrr.Symbol[float32](rng, s.batch*s.d), s.batch, s.d)
		values := tensors.FromFlatDataAndDimensions(hrr.Symbol[float32](rng, s.batch*m*s.d), s.batch, m, s.d)
		for _, form := range []string{"circulant", "halves", "fft"} {
			b.Run(fmt.Sprintf("d%d/B%d/%s", s.d, s.batch, form), func(b *testing.B) {
				step := MustNewExec(e, func(z, values *Node) []*Node {
					var retrieved, bundle *Node
					switch form {
					case "halves":
						sum, difference := hrr.HalfCirculants(symbols, m)
						c := hrr.Halves{Sum: ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(sum, s.d/2, m*s.d/2)),
							Difference: ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(difference, s.d/2, m*s.d/2))}
						retrieved, bundle = c.UnbindAll(z), c.BindAll(values)
					case "fft":
						constant := ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(symbols, m, s.d))
						retrieved, bundle = hrr.UnbindAllFFT(constant, z), hrr.BindAllFFT(constant, values)
					default:
						constant := ConstTensor(z.Graph(), tensors.FromFlatDataAndDimensions(hrr.Circulants(symbols, m), s.d, m*s.d))
						retrieved, bundle = hrr.UnbindAll(constant, z), hrr.BindAll(constant, values)
					}
					loss := Add(ReduceAllSum(Square(retrieved)), ReduceAllSum(Square(bundle)))
					return Gradient(loss, z, values)
				})
				step.MustExec(z, values)
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					for _, out := range step.MustExec(z, values) {
						out.MustFinalizeAll()
					}
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
			})
		}
	}
}

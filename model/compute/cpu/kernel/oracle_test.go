//go:build cgo

package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// random returns n floats between −1 and 1 that depend only on the seed.
func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n)
	for i := range out {
		out[i] = r.Float32()*2 - 1
	}
	return out
}

// forEachSet runs a test once with each instruction set of this machine.
func forEachSet(t *testing.T, test func(t *testing.T)) {
	for set, name := range sets {
		if selectSet(set) != set {
			continue
		}
		t.Run(name, test)
	}
	selectSet(len(sets) - 1)
}

// closeTo is close32 with an allowance for what the operands omit.
func closeTo(o Operands, got float32, want, scale float64) bool {
	if o == Split && !math.IsNaN(want) && !math.IsInf(want, 0) {
		return math.Abs(float64(got)-want) <= (4e-6+splitLeaves)*scale+1e-30
	}
	return close32(got, want, scale)
}

// splitLeaves is the maximum relative error of a term if each operand is split into two bfloat16 parts: a part is at most 2⁻⁸ of the
// previous one, so the product of the low parts is up to 2⁻¹⁶, and so is the remainder of either operand.
const splitLeaves = 3 * 0x1p-16

// close32 reports whether a float32 result equals the float64 value within the rounding of a sum whose terms' absolute values
// add up to scale.
func close32(got float32, want, scale float64) bool {
	if math.IsNaN(want) {
		return math.IsNaN(float64(got))
	}
	if math.IsInf(want, 0) {
		return float64(got) == want
	}
	return math.Abs(float64(got)-want) <= 4e-6*scale+1e-30
}

// naiveGemm returns an element of the product and the sum of the absolute terms, in float64.
func naiveGemm(g Gemm, batch, i, j int) (sum, scale float64) {
	for k := range g.K {
		x := float64(g.A[batch*g.ABatch+i*g.ARow+k*g.ACol]) * float64(g.B[batch*g.BBatch+k*g.BRow+j*g.BCol])
		sum += x
		scale += math.Abs(x)
	}
	return sum, scale
}

// drawStored draws which operands are stored as bfloat16.
func drawStored(t *rapid.T) Stored {
	return Stored{rapid.Bool().Draw(t, "first stored as bfloat16"), rapid.Bool().Draw(t, "second stored as bfloat16")}
}

// store returns operand i as it is stored, after truncating its values if that is as bfloat16.
func (s Stored) store(i int, x []float32) []float32 {
	if !s[i] {
		return x
	}
	to := make([]float32, (len(x)+1)/2)
	halves := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(to))), 2*len(to))
	for j, v := range toHalf(x) {
		halves[j] = uint16(math.Float32bits(v) >> 16)
	}
	return to
}

func checkGemm(t failer, p *Pool, g Gemm) {
	t.Helper()
	before := append([]float32(nil), g.C...)
	run := g
	run.A, run.B = g.Stored.store(0, g.A), g.Stored.store(1, g.B)
	p.Gemm(run)
	touched := make([]bool, len(g.C))
	for b := range max(g.Batch, 1) {
		for i := range g.M {
			for j := range g.N {
				at := b*g.CBatch + i*g.CRow + j
				touched[at] = true
				want, scale := naiveGemm(g, b, i, j)
				if g.Accumulate {
					want += float64(before[at])
					scale += math.Abs(float64(before[at]))
				}
				if !closeTo(g.Operands, g.C[at], want, scale) {
					t.Fatalf("item %d, C[%d, %d] = %v, want %v\n%+v", b, i, j, g.C[at], want, shapeOf(g))
				}
			}
		}
	}
	for at, ok := range touched {
		if !ok && g.C[at] != before[at] {
			t.Fatalf("C[%d] is outside the matrix but changed\n%+v", at, shapeOf(g))
		}
	}
}

func shapeOf(g Gemm) Gemm {
	g.A, g.B, g.C = nil, nil, nil
	return g
}

// naiveConv returns one output of a convolution and the sum of the absolute terms, in float64.
func naiveConv(s ConvSpec, input, kernel []float32, b, o int, at []int) (sum, scale float64) {
	groups := s.Groups * s.BatchGroups
	group := o / (s.OutChannels / groups)
	channels, firstChannel := s.InChannels/s.Groups, 0
	if s.Groups > 1 {
		firstChannel = group * channels
	} else {
		b += group * (s.Batch / groups)
	}
	taps := 1
	for _, k := range s.Kernel {
		taps *= k
	}
	for tap := range taps {
		in, ker, ok := b*s.InStrides.Batch, o*s.KernelStrides.Batch, true
		rest := tap
		for d := len(s.Kernel) - 1; d >= 0; d-- {
			k := rest % s.Kernel[d]
			rest /= s.Kernel[d]
			q := at[d]*s.Stride[d] + k*s.KernelDilation[d] - s.PadLow[d]
			ok = ok && q >= 0 && q%s.InDilation[d] == 0 && q/s.InDilation[d] < s.In[d]
			in += q / s.InDilation[d] * s.InStrides.Spatial[d]
			if s.Reverse[d] {
				k = s.Kernel[d] - 1 - k
			}
			ker += k * s.KernelStrides.Spatial[d]
		}
		for i := range channels {
			if !ok {
				break
			}
			x := float64(input[in+(firstChannel+i)*s.InStrides.Channel]) * float64(kernel[ker+i*s.KernelStrides.Channel])
			sum += x
			scale += math.Abs(x)
		}
	}
	return sum, scale
}

func checkConv(t failer, p *Pool, spec ConvSpec) {
	t.Helper()
	c, err := PlanConv(spec)
	if err != nil {
		t.Fatalf("%v\n%+v", err, spec)
	}
	input, kernel := random(1, c.reach[0]), random(2, c.reach[1])
	if spec.Operands == Halves {
		toHalf(input)
		toHalf(kernel)
	}
	output := random(3, c.reach[2])
	before := append([]float32(nil), output...)
	c.Run(p, spec.Stored.store(0, input), spec.Stored.store(1, kernel), output)
	touched := make([]bool, len(output))
	s := c.spec
	outputs := 1
	for _, n := range c.out {
		outputs *= n
	}
	for b := range s.Batch / s.BatchGroups {
		for o := range s.OutChannels {
			for i := range outputs {
				at, index, rest := make([]int, len(c.out)), b*s.OutStrides.Batch+o*s.OutStrides.Channel, i
				for d := len(at) - 1; d >= 0; d-- {
					at[d] = rest % c.out[d]
					rest /= c.out[d]
					index += at[d] * s.OutStrides.Spatial[d]
				}
				touched[index] = true
				want, scale := naiveConv(s, input, kernel, b, o, at)
				if !closeTo(s.Operands, output[index], want, scale) {
					t.Fatalf("out[%d, %v, %d] = %v, want %v\n%+v", b, at, o, output[index], want, spec)
				}
			}
		}
	}
	for i, ok := range touched {
		if !ok && output[i] != before[i] {
			t.Fatalf("float %d is outside the output but changed\n%+v", i, spec)
		}
	}
	if c.Rounds() {
		checkRounded(t, p, spec, spec.Stored.store(0, input), spec.Stored.store(1, kernel), before, output)
	}
}

// checkRounded checks that a convolution rounds output, which it computes from these operands, if it stores bfloat16, and leaves what is between before.
func checkRounded(t failer, p *Pool, spec ConvSpec, input, kernel, before, output []float32) {
	t.Helper()
	spec.Rounds = true
	c, err := PlanConv(spec)
	if err != nil {
		t.Fatalf("%v\n%+v", err, spec)
	}
	memory, free := guarded(t, (len(output)+1)/2)
	defer free()
	copy(memory, Stored{true}.store(0, append([]float32(nil), before...)))
	c.Run(p, input, kernel, memory)
	for i, got := range widened(Bytes(memory))[:len(output)] {
		want := truth(RoundBF16, float64(output[i]), 0, 0)
		if output[i] == before[i] {
			want = float64(math.Float32frombits(math.Float32bits(before[i]) &^ 0xffff))
		}
		if float64(got) != want && (got == got || want == want) {
			t.Fatalf("output %d is %v as float32, %v as bfloat16, want %v\n%+v", i, output[i], got, want, spec)
		}
	}
}

// failer is a test, or one case of a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// cpuTime returns the processor time of the process, on all threads; on a busy machine it is more meaningful than wall time.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rate runs a benchmark and reports units of work, in billions per second of wall time and of one core's time.
func rate(b *testing.B, unit string, work float64, run func()) {
	run()
	cpu := cpuTime()
	for b.Loop() {
		run()
	}
	cpu = cpuTime() - cpu
	b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, unit+"/s")
	b.ReportMetric(work*float64(b.N)/cpu.Seconds()/1e9, unit+"/core-s")
}

//go:build cgo && amd64 && (linux || darwin)

package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawSums returns a program whose sums machine code computes in most cases: short rows, long ones, and single numbers. Some have no sums, but rows that
// share values.
func drawSums(t *rapid.T) ProgramSpec {
	dims := []int{rapid.IntRange(1, 3).Draw(t, "outer"), rapid.IntRange(1, 15).Draw(t, "lines"), rapid.IntRange(1, 15).Draw(t, "columns"),
		rapid.SampledFrom([]int{8, 16, 24, 40, 64, 128, 12, 1}).Draw(t, "inner")}
	if dims[3] == 1 {
		dims[1], dims[2] = rapid.SampledFrom([]int{4, 6, 16, 17, 20}).Draw(t, "runs"), rapid.SampledFrom([]int{512, 527}).Draw(t, "run")
	}
	ops := []Op{Neg, Abs, Rsqrt, RoundBF16, Add, Sub, Mul, Div, Max, Min, Greater, Select, Clamp, FMA}
	s := drawProgramOver(t, dims, ops, 6, 30)
	s.Outputs = s.Outputs[:rapid.IntRange(0, len(s.Outputs)).Draw(t, "kept")]
	for i := range s.Inputs {
		if s.Inputs[i].Strides != nil && rapid.Bool().Draw(t, "shared") {
			s.Inputs[i].Strides = []int{rapid.SampledFrom([]int{0, dims[3]}).Draw(t, "of images"), 0, 0, 1}
		}
	}
	s.ReduceAxes = [2]int{1, 3}
	if rapid.Bool().Draw(t, "without sums") {
		if v, ok := drawValue(t, kindsOf(t, s), float); ok {
			s.Code = append(s.Code, Instruction{Op: RoundBF16, Args: [3]Value{v}})
			s.Outputs = append(s.Outputs, Output{Value: Value(len(s.Inputs) + len(s.Code) - 1), Type: BFloat16})
		}
		return s
	}
	for range rapid.IntRange(1, 5).Draw(t, "sums") {
		if v, ok := drawValue(t, kindsOf(t, s), float); ok {
			s.Reductions = append(s.Reductions, Reduction{v, Sum})
		}
	}
	return s
}

// TestMachineCodeGivesTheSameBits: programs with more values than registers, with every operation and with operands that are difficult,
// give the same results as machine code and interpreted.
func TestMachineCodeGivesTheSameBits(t *testing.T) {
	if programSet() == 0 {
		t.Skip("this processor has no AVX2")
	}
	p := NewPool(2)
	defer p.Close()
	var ops []Op
	for op := Copy; op <= FMA; op++ {
		if op != Sin && op != Cos { // one large argument changes how its neighbors in the vector are computed
			ops = append(ops, op)
		}
	}
	// Sums of machine code are in the order of AVX2, and of AVX-512 if its vectors fill rows.
	defer func(set int) { machineCode = true; selectProgramSet(set) }(programSet())
	translated, summed, rowed := 0, map[int]int{}, 0
	check := func(t *rapid.T) {
		s := drawSums(t)
		most := 1
		if inner := s.Dims[3]; inner == 1 || inner%16 == 0 { // rows of whole vectors of AVX-512 have the same order
			most = 2
		}
		if rapid.Bool().Draw(t, "all operations") {
			s, most = reducing(t, drawProgramOf(t, ops, 24, 60)), 1
		}
		selectProgramSet(rapid.IntRange(1, most).Draw(t, "set"))
		var in [][]byte
		for i, x := range s.Inputs {
			a := newArray(x.Type, x.reach(s.Dims), uint64(i))
			if x.Type == Float32 {
				for j, x := range Floats(a.memory) {
					if j%3 == i%3 {
						Floats(a.memory)[j] = specials[int(math.Abs(float64(x))*1e6)%len(specials)]
					}
				}
			}
			in = append(in, a.memory)
		}
		var out [2][][]byte
		for i := range out {
			machineCode = i == 1
			program := mustProgram(t, s)
			translated += min(len(program.stretches), 1)
			if program.c.summed > 0 {
				summed[int(program.c.inner)]++
			}
			rowed += int(program.c.rowed)
			for _, o := range s.Outputs {
				out[i] = append(out[i], make([]byte, product64(s.Dims)*o.Type.size()))
			}
			for range s.Reductions {
				out[i] = append(out[i], make([]byte, 4*program.outer*int(program.c.inner)))
			}
			program.Run(p, in, out[i])
		}
		for i := range out[0] {
			if i < len(s.Outputs) && s.Outputs[i].Type == Bool {
				if string(out[0][i]) != string(out[1][i]) {
					t.Fatalf("output %d differs", i)
				}
				continue
			}
			floats := Floats
			if i < len(s.Outputs) && s.Outputs[i].Type == BFloat16 {
				floats = widened
			}
			a, b := floats(out[0][i]), floats(out[1][i])
			for j := range a {
				if math.Float32bits(a[j]) != math.Float32bits(b[j]) && (a[j] == a[j] || b[j] == b[j]) {
					t.Fatalf("%+v\nresult %d, element %d: %v (%x) interpreted, %v (%x) as machine code", s, i, j, a[j], math.Float32bits(a[j]), b[j], math.Float32bits(b[j]))
				}
			}
		}
	}
	covered := func() bool { return translated > 0 && summed[8] > 0 && summed[64] > 0 && summed[1] > 0 && rowed > 0 }
	// 100 programs are too few to read shared values from the wrong rows, and now and then 2,000 have no sum over one kind of row.
	for i := 0; i < 20 || i < 400 && !covered(); i++ {
		rapid.Check(t, check)
	}
	if !covered() {
		t.Errorf("%d programs were translated, with sums by the length of a row: %v; %d with rows that share values", translated, summed, rowed)
	}
}

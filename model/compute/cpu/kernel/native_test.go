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

// wayOf names how a program's machine code walks over the elements, one of so many ways.
func wayOf(p *Program) string {
	switch {
	case p.c.rowed > 0:
		return "rows that share values"
	case p.c.summed == 0 && len(p.stretches) > 0:
		return "vectors"
	case p.c.summed == 0:
		return "interpreted"
	case p.c.inner == 1:
		return "runs of one sum"
	case p.c.inner > longestRow:
		return "sums in memory"
	}
	return "sums in registers"
}

const ways = 6

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
	best := programSet()
	defer func() { machineCode = true; selectProgramSet(best) }()
	translated, summed, rowed, halves := map[int]int{}, map[int]int{}, map[int]int{}, map[string]int{}
	check := func(t *rapid.T) {
		s := drawSums(t)
		most := 1
		if inner := s.Dims[3]; inner == 1 || inner%16 == 0 { // rows of whole vectors of AVX-512 have the same order
			most = 2
		}
		if rapid.Bool().Draw(t, "all operations") {
			s, most = drawProgramOf(t, ops, 24, 60), 2
			if rapid.Bool().Draw(t, "sums in the order of AVX2") {
				s, most = reducing(t, s), 1
			}
		}
		selectProgramSet(rapid.IntRange(1, most).Draw(t, "set"))
		var in [][]byte
		for i, x := range s.Inputs {
			a := newArray(x.Type, x.reach(s.Dims), uint64(i))
			switch x.Type {
			case Float32:
				for j, x := range Floats(a.memory) {
					if j%3 == i%3 {
						Floats(a.memory)[j] = specials[int(math.Abs(float64(x))*1e6)%len(specials)]
					}
				}
			case BFloat16:
				for j := i % 3; j < len(a.values); j += 3 {
					bits := math.Float32bits(specials[int(math.Abs(a.values[j])*1e6)%len(specials)])
					a.memory[2*j], a.memory[2*j+1] = byte(bits>>16), byte(bits>>24)
				}
			}
			in = append(in, a.memory)
		}
		var out [2][][]byte
		for i := range out {
			machineCode = i == 1
			program := mustProgram(t, s)
			if len(program.stretches) > 0 {
				translated[int(program.c.lanes)]++
				rowed[int(program.c.lanes)] += int(program.c.rowed)
			}
			if program.c.summed > 0 {
				summed[int(program.c.inner)]++
			}
			for _, x := range s.Inputs {
				if x.Type == BFloat16 && x.Strides == nil && program.readsHalves() {
					halves[wayOf(program)]++
				}
			}
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
	covered := func() bool {
		wide := best < 2 || translated[16] > 0 && rowed[16] > 0
		return wide && translated[8] > 0 && rowed[8] > 0 && summed[8] > 0 && summed[64] > 0 && summed[1] > 0 && len(halves) == ways
	}
	// 100 programs are too few to read shared values from the wrong rows, and now and then 2,000 have no sum over one kind of row.
	for i := 0; i < 20 || i < 400 && !covered(); i++ {
		rapid.Check(t, check)
	}
	if !covered() {
		t.Errorf("programs that were translated, by floats of a vector: %v; with sums, by the length of a row: %v; with rows that share values: %v; arrays of bfloat16 that are read in place: %v",
			translated, summed, rowed, halves)
	}
}

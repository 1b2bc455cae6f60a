//go:build cgo && amd64 && (linux || darwin)

package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

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
	defer func() { machineCode = true }()
	translated := 0
	rapid.Check(t, func(t *rapid.T) {
		s := reducing(t, drawProgramOf(t, ops, 24, 60))
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
			if len(program.stretches) > 0 {
				translated++
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
			a, b := Floats(out[0][i]), Floats(out[1][i])
			for j := range a {
				if math.Float32bits(a[j]) != math.Float32bits(b[j]) && (a[j] == a[j] || b[j] == b[j]) {
					t.Fatalf("%+v\nresult %d, element %d: %v (%x) interpreted, %v (%x) as machine code", s, i, j, a[j], math.Float32bits(a[j]), b[j], math.Float32bits(b[j]))
				}
			}
		}
	})
	if translated == 0 {
		t.Error("no program was translated")
	}
}

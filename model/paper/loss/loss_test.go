package loss

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model/compute"
)

// Every term on numbers small enough to work by hand.
func TestTermsByHand(t *testing.T) {
	logit := []float64{2, -1} // logits, for images 1 and 0.25
	bce := (math.Log1p(math.Exp(-logit[0])) + math.Log1p(math.Exp(logit[1])) - 0.25*logit[1]) / 2
	for name, c := range map[string]struct {
		term func(a, b *Node) *Node
		a, b any
		want float64
	}{
		"recon": {Reconstruction, [][][][]float32{{{{2, -1}}}}, [][][][]float32{{{{1, 0.25}}}}, bce},
		// squared distances 1+4 and 0+9, mean over two slots
		"vq":     {VQ, [][][]float32{{{1, 2}, {0, 3}}}, [][][]float32{{{0, 0}, {0, 0}}}, 7},
		"commit": {Commit, [][][]float32{{{1, 2}, {0, 3}}}, [][][]float32{{{0, 0}, {0, 0}}}, 7},
		// rows (1, 2), (3, 0): norms² 5 and 9, mean 1.5, variance 1.25; (7-1)² + 1.5² + (1.25-0.5)²
		"value":    {alone(Value), [][][]float32{{{1, 2}, {3, 0}}}, float32(0), 36 + 2.25 + 0.5625},
		"codebook": {alone(Codebook), [][]float32{{1, 2}, {3, 0}}, float32(0), 36 + 2.25 + 0.5625},
		// cosines .6, 0 and .8 between three entries, each pair twice among nine
		"orthogonality": {alone(Orthogonality), [][]float32{{1, 0}, {3, 4}, {0, 2}}, float32(0), 2 * (0.36 + 0.64) / 9},
		// squared distances 1+4 and 0+9, mean over two images
		"tie": {Tie, [][]float32{{1, 2}, {0, 3}}, [][]float32{{0, 0}, {0, 0}}, 7},
		// two images with m = 3, d = 2, targets 3 and 1.5: (5-3)²+1.5²+(0.25-1.5)² and (9-3)²+1.5²+(2.25-1.5)², averaged
		"latent": {alone(func(z *Node) *Node { return Latent(z, 3) }), [][]float32{{1, 2}, {3, 0}}, float32(0),
			(4 + 2.25 + 1.5625 + 36 + 2.25 + 0.5625) / 2},
	} {
		got := run(t, c.term, c.a, c.b)[0][0]
		if math.Abs(float64(got)-c.want) > 1e-6*math.Abs(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Each of the two quantization terms has a gradient for one side only.
func TestWhoLearns(t *testing.T) {
	q, v := [][][]float32{{{1, 2}, {0, 3}}}, [][][]float32{{{0, 0}, {0, 0}}}
	for name, c := range map[string]struct {
		term           func(a, b *Node) *Node
		toCode, toSlot []float32 // 2 (q - v) / (B·m), and its negative
	}{
		"vq":     {VQ, []float32{1, 2, 0, 3}, []float32{0, 0, 0, 0}},
		"commit": {Commit, []float32{0, 0, 0, 0}, []float32{-1, -2, 0, -3}},
	} {
		got := run(t, c.term, q, v)
		for i := range 4 {
			if got[1][i] != c.toCode[i] || got[2][i] != c.toSlot[i] {
				t.Errorf("%s: gradients %v and %v, want %v and %v", name, got[1], got[2], c.toCode, c.toSlot)
				break
			}
		}
	}
}

// The tie has a gradient for the encoder only, 2 (z - ẑ)/B, and none for ẑ.
func TestTieTeachesTheEncoder(t *testing.T) {
	got := run(t, Tie, [][]float32{{1, 2}, {0, 3}}, [][]float32{{0, 1}, {1, 0}})
	if !slices.Equal(got[1], []float32{1, 1, -1, 3}) || !slices.Equal(got[2], []float32{0, 0, 0, 0}) {
		t.Errorf("gradients %v and %v", got[1], got[2])
	}
}

// Of the entries (1,0), (3,4), (0,2), (5,5) the batch uses the first three: cosines .6, 0, .8. Unused entries and lengths do
// not count, and one entry in use has no pair.
func TestCoherenceByHand(t *testing.T) {
	entries := [][]float32{{1, 0}, {3, 4}, {0, 2}, {5, 5}}
	for _, c := range []struct {
		codes [][]int32
		want  float64
	}{
		{[][]int32{{0, 1}, {2, 0}}, (0.36 + 0.64) / 3},
		{[][]int32{{1, 1}, {1, 1}}, 0},
		{[][]int32{{0, 2}, {2, 0}}, 0},
	} {
		of := func(entries, codes *Node) *Node { return Coherence(entries, ConvertDType(codes, dtypes.Int32)) }
		codes := make([][]float32, len(c.codes))
		for i, row := range c.codes {
			for _, j := range row {
				codes[i] = append(codes[i], float32(j))
			}
		}
		got := run(t, func(a, b *Node) *Node { return of(a, StopGradient(b)) }, entries, codes)
		if math.Abs(float64(got[0][0])-c.want) > 1e-6 {
			t.Errorf("codes %v: %v, want %v", c.codes, got[0][0], c.want)
		}
		if g := got[1][6:8]; g[0] != 0 || g[1] != 0 {
			t.Errorf("codes %v: the unused entry has gradient %v", c.codes, g)
		}
	}
}

// The same pairs count, and have the same gradients, whether the batch has more or fewer codes than there are entries.
func TestCoherenceOfFewCodes(t *testing.T) {
	entries := [][]float32{{1, 0, 2}, {3, 4, 0}, {0, 2, 1}, {5, 5, 5}, {1, -2, 0}, {-1, 3, 2}, {4, 0, 1}}
	of := func(codes ...float32) [][]float32 {
		return run(t, func(a, b *Node) *Node { return Coherence(a, ConvertDType(StopGradient(b), dtypes.Int32)) }, entries, [][]float32{codes})
	}
	few, many := of(5, 0, 5, 2, 4, 5), of(5, 0, 5, 2, 4, 5, 2, 0)
	if math.Abs(float64(few[0][0]-many[0][0])) > 1e-6 || few[0][0] == 0 {
		t.Errorf("%v with six codes, %v with eight of the same entries", few[0][0], many[0][0])
	}
	for i, want := range many[1] {
		if math.Abs(float64(few[1][i]-want)) > 1e-6 {
			t.Errorf("gradient of component %d: %v with six codes, %v with eight", i, few[1][i], want)
		}
	}
}

// Logits of any size give finite numbers, and the gradient is σ(l) - x over the count.
func TestReconstructionIsStable(t *testing.T) {
	logits := []float32{-1000, -30, 0, 30, 1000}
	got := run(t, Reconstruction, [][][][]float32{{{logits}}}, [][][][]float32{{{{0, 0.5, 1, 0.5, 0}}}})
	if want := (0 + 15 + math.Ln2 + 15 + 1000) / 5; math.Abs(float64(got[0][0])-want) > 1e-3 {
		t.Errorf("value %v, want %v", got[0][0], want)
	}
	for i, want := range []float64{0, -0.5, -0.5, 0.5, 1} {
		if math.Abs(float64(got[1][i])-want/5) > 1e-6 {
			t.Errorf("gradient at logit %v is %v, want %v", logits[i], got[1][i], want/5)
		}
	}
}

// The structural gradient matches central differences of the same function.
func TestStructuralGradient(t *testing.T) {
	x := []float32{0.3, -1.2, 0.8, 0.1, 0.9, -0.4, 1.1, 0.2, -0.7, 0.6, 0.5, -0.3}
	at := func(x []float32) [][]float32 {
		batch := tensors.FromFlatDataAndDimensions(x, 2, 3, 2)
		return run(t, alone(func(x *Node) *Node { return Structural(x, 1, 0.5) }), batch, float32(0))
	}
	gradient := at(x)[1]
	for i := range x {
		const h = 1e-2
		up, down := append([]float32{}, x...), append([]float32{}, x...)
		up[i], down[i] = up[i]+h, down[i]-h
		want := (at(up)[0][0] - at(down)[0][0]) / (2 * h)
		if math.Abs(float64(gradient[i]-want)) > 2e-3 { // h² of the cubic term, and float32 over 2h
			t.Errorf("gradient %d is %v, differences give %v", i, gradient[i], want)
		}
	}
}

// alone adapts a term of one matrix to two arguments and ignores the second.
func alone(term func(x *Node) *Node) func(a, b *Node) *Node {
	return func(a, _ *Node) *Node { return term(a) }
}

// run returns a term's value and its gradients for a and b.
func run(t *testing.T, term func(a, b *Node) *Node, a, b any) [][]float32 {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var flat [][]float32
	for _, o := range MustExecOnceN(e.Backend, func(a, b *Node) []*Node {
		value := term(a, b)
		value.AssertScalar()
		return append([]*Node{value}, Gradient(value, a, b)...)
	}, a, b) {
		flat = append(flat, tensors.MustCopyFlatData[float32](o))
	}
	return flat
}

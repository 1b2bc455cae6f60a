//go:build cgo

package cpu

import (
	"strings"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// TestProfile checks that a profile counts the executions while it is running, and none afterwards.
func TestProfile(t *testing.T) {
	b := engine(t).(*Backend)
	exec := MustNewExec(b, func(x, y *Node) *Node { return ReduceAllSum(Sin(Dot(x, y))) })
	x := tensors.FromFlatDataAndDimensions(ramp(200*300), 200, 300)
	y := tensors.FromFlatDataAndDimensions(ramp(300*400), 300, 400)
	exec.MustExec(x, y)
	p := b.StartProfile()
	for range 3 {
		exec.MustExec(x, y)
	}
	p.Stop()
	exec.MustExec(x, y)
	r := p.Report()
	if r.Executions != 3 || r.Threads != b.Threads() || r.Wall <= 0 || len(r.Steps) != 2 || len(r.Kinds) != 2 {
		t.Fatalf("%d executions on %d threads in %v, %d steps of %d kinds; want 3, %d, some, 2, 2",
			r.Executions, r.Threads, r.Wall, len(r.Steps), len(r.Kinds), b.Threads())
	}
	for _, s := range r.Kinds {
		want := StepTime{Kind: "element-wise, with reductions", Calls: 3, Bytes: 3 * 4 * (200*400 + 1)}
		if s.Kind == "matrix product" {
			want = StepTime{Kind: s.Kind, Calls: 3, FLOPs: 3 * 2 * 200 * 300 * 400, Bytes: 3 * 4 * (200*300 + 300*400 + 200*400)}
			if s.Packing <= 0 {
				t.Errorf("no packing time: %+v", s)
			}
		}
		if s.Kind != want.Kind || s.Calls != want.Calls || s.FLOPs != want.FLOPs || s.Bytes != want.Bytes || s.Busy <= 0 || s.Wall <= 0 {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	for i := range r.Kinds { // 20 ns per byte: 0.05 GB/s, half of the limit below
		r.Kinds[i].Busy = time.Duration(2*r.Kinds[i].Bytes) * 10
	}
	r.Roof = Roof{FLOPs: 1e12, Bytes: 1e8, Shared: 8.75}
	var text strings.Builder
	if err := r.Write(&text, 2); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"3 executions", "matrix product", "GFLOP/s", "1000.0 GFLOP/s in registers, 0.1 GB/s of memory", "written in 8.8 ns", "50%      1 matrix product", "[200×300] [300×400] → [200×400]: DotGeneral"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, text.String())
		}
	}
}

// TestProfileOfCascade checks that the links of a cascade are reported like other steps.
func TestProfileOfCascade(t *testing.T) {
	withCascades(t, 1)
	b := engine(t).(*Backend)
	exec := MustNewExec(b, func(x, w *Node) *Node { return Exp(normed(Convolve(x, w).PadSame().Done())) })
	x := tensors.FromFlatDataAndDimensions(ramp(16*16*16*4), 16, 16, 16, 4)
	w := tensors.FromFlatDataAndDimensions(ramp(3*3*4*8), 3, 3, 4, 8)
	p := b.StartProfile()
	for range 3 {
		exec.MustExec(x, w)
	}
	p.Stop()
	r := p.Report()
	var busy, wall time.Duration
	for _, s := range r.Steps {
		busy, wall = busy+s.Busy, wall+s.Wall
		if s.Kind == "convolution" && (s.Calls != 3 || s.FLOPs != 3*2*16*16*16*8*3*3*4 || s.What != "[16×16×16×4] [3×3×4×8] → [16×16×16×8]: ConvGeneral") {
			t.Errorf("convolution %+v", s)
		}
	}
	if len(r.Steps) < 5 || len(r.Kinds) < 3 || wall < r.Wall*9/10 || wall > r.Wall || busy <= 0 || busy > wall*time.Duration(r.Threads) {
		t.Errorf("%d steps of %d kinds, %v of %v, %v of computing", len(r.Steps), len(r.Kinds), wall, r.Wall, busy)
	}
}

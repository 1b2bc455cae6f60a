//go:build cgo

package cpu

import (
	"fmt"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// BenchmarkConvStep runs a 4×4 convolution with stride 2 forward and backward (3 products of equal size). It reports GFLOP/s of all
// steps and of the best one, which is the meaningful number on a shared machine.
func BenchmarkConvStep(b *testing.B) {
	for _, s := range []struct{ batch, side, in, out int }{{16, 32, 64, 128}, {16, 16, 128, 256}, {16, 64, 3, 64}} {
		b.Run(fmt.Sprintf("B%d_%dx%dx%d_to_%d", s.batch, s.side, s.side, s.in, s.out), func(b *testing.B) {
			step := MustNewExec(engine(b), func(x, k *Node) []*Node {
				y := Convolve(x, k).Strides(2).PaddingPerDim([][2]int{{1, 1}, {1, 1}}).Done()
				loss := ReduceAllSum(Mul(y, y))
				return append([]*Node{loss}, Gradient(loss, x, k)...)
			})
			x := tensors.FromFlatDataAndDimensions(ramp(s.batch*s.side*s.side*s.in), s.batch, s.side, s.side, s.in)
			k := tensors.FromFlatDataAndDimensions(ramp(16*s.in*s.out), 4, 4, s.in, s.out)
			step.MustExec(x, k)
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				for _, t := range step.MustExec(x, k) {
					t.MustFinalizeAll()
				}
				best = min(best, time.Since(start))
			}
			flops := 3 * 2 * 16 * float64(s.in*s.out) * float64(s.batch*s.side*s.side/4)
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			b.ReportMetric(flops/best.Seconds()/1e9, "best-GFLOP/s")
		})
	}
}

package ae

import (
	"cmp"
	"os"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model"
	"slotscope/model/compute"
)

// Other engines and precisions can be compared with PyTorch too.
var (
	engineName = cmp.Or(os.Getenv("SLOTSCOPE_TEST_ENGINE"), "cpu")
	precision  = cmp.Or(os.Getenv("SLOTSCOPE_TEST_PRECISION"), model.Float32)
)

// looser is the factor on the tolerance for products that are less precise than float32.
var looser = 1.0

var opened = sync.OnceValues(func() (*compute.Engine, error) {
	return compute.OpenFor(model.Config{Engine: engineName, Precision: precision})
})

func engine(t *testing.T) backends.Backend {
	t.Helper()
	e, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	return e.Backend
}

// tolerance is the largest relative error against PyTorch's float64: max|a-b| over max|b|, per tensor. It is relative to the
// tensor's largest element because the rounding error of an element scales with its summed terms, which have the tensor's scale, and not
// with the sum, which may nearly cancel. TF32 operands have a 10-bit mantissa, 13 bits fewer than float32; on an H200 the gradients of
// the decoder's first layers differ most, by up to 0.09 (docs/measurements/gpu.md).
func tolerance() float64 {
	if rounds() {
		return 0.15
	}
	return 1e-4 * looser
}

// rounds reports whether products are computed in TF32.
func rounds() bool { return engineName == "xla:cuda" && precision == model.TF32 }

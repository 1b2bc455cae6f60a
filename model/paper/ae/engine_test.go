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

// Another engine than the one that every machine has, and the precision of its products, can be held to PyTorch too.
var (
	engineName = cmp.Or(os.Getenv("SLOTSCOPE_TEST_ENGINE"), "cpu")
	precision  = cmp.Or(os.Getenv("SLOTSCOPE_TEST_PRECISION"), model.Float32)
)

// looser is by how much products that leave out more than float32's may be farther away.
var looser = 1.0

var opened = sync.OnceValues(func() (*compute.Engine, error) { return compute.OpenFor(engineName, precision) })

func engine(t *testing.T) backends.Backend {
	t.Helper()
	e, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	return e.Backend
}

// tolerance is the largest relative error against PyTorch's float64: max|a-b| over max|b|, per tensor. It is relative to the
// tensor's largest element because the rounding of an element follows the terms that were summed for it, which are of
// the tensor's scale, and not the sum, which may cancel to nearly nothing. Operands of TF32 have 10 bits of fraction, 13 fewer.
func tolerance() float64 {
	if engineName == "xla:cuda" && precision == model.TF32 {
		return 2e-2
	}
	return 1e-4 * looser
}

//go:build cgo

package cpu

import (
	"os"
	"strconv"

	"github.com/pkg/errors"

	"slotscope/model/compute/cpu/kernel"
)

// BF16 returns which kernels compute products of bfloat16, and the reasons, as sentences.
func BF16() string { return kernel.ForHalves().String() }

// BF16x3 returns the same for products of float32 in an engine with SplitProducts, and whether they use bfloat16 kernels at all.
func BF16x3() (why string, used bool) { return kernel.ForSplit().String(), kernel.Split.AsHalves() }

// Cores returns the number of cores that the process could use when it started.
func Cores() int { return kernel.Cores() }

// SpareProcessors should be called once at startup by programs that compute: threads of this engine then keep their processor in
// Go's scheduler. See kernel.Spare.
func SpareProcessors() { kernel.Spare() }

// threads returns the number of workers from the config, else from the environment, else the number of cores that the process may use.
func threads(config string) (int, error) {
	from := "config of the cpu engine"
	if config == "" {
		config, from = os.Getenv(ThreadsEnv), "$"+ThreadsEnv
	}
	if config == "" {
		return kernel.Cores(), nil
	}
	n, err := strconv.Atoi(config)
	if err != nil || n < 1 || n > 1024 {
		return 0, errors.Errorf("%s: %q is not a number of threads from 1 to 1,024", from, config)
	}
	return n, nil
}

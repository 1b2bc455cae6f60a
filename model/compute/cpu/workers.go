//go:build cgo

package cpu

import (
	"os"
	"strconv"

	"github.com/pkg/errors"

	"slotscope/model/compute/cpu/kernel"
)

// BF16 says which kernels products of bfloat16 use and why, in sentences.
func BF16() string { return kernel.ForHalves().String() }

// BF16x3 says the same of products of float32 in an engine with SplitProducts, and whether these use kernels for bfloat16 at all.
func BF16x3() (why string, used bool) { return kernel.ForSplit().String(), kernel.Split.AsHalves() }

// Cores is how many cores the process might use when it started.
func Cores() int { return kernel.Cores() }

// SpareProcessors is what a program that computes calls once, before all else: threads of this engine then keep their places in
// Go's scheduler; see kernel.Spare.
func SpareProcessors() { kernel.Spare() }

// threads reads the number of workers from the config, else the environment, else what the process may use.
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
		return 0, errors.Errorf("%s: %q is not a number of threads between 1 and 1024", from, config)
	}
	return n, nil
}

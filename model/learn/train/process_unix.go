//go:build unix

package train

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// processUse is the processor time that this process has taken, and the bytes of memory that it holds; 0 for what is not told. Only
// Linux tells the memory.
func processUse() (used time.Duration, held float64) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) == nil {
		used = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident float64
		if _, err := fmt.Sscan(string(statm), &size, &resident); err == nil {
			held = resident * float64(os.Getpagesize())
		}
	}
	return used, held
}

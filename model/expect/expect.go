// Package expect is what tests of several packages ask for in the same words.
package expect

import (
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
)

// go test runs as many packages at once as there are cores, so that one thread is enough for the engine of each: more of them wait in turns
// for the same cores. With every test asked for, -race among them, the engine is as users have it.
func init() {
	const threads = "SLOTSCOPE_THREADS"
	if _, said := os.LookupEnv(threads); !said && os.Getenv("SLOTSCOPE_TESTS") != "all" {
		os.Setenv(threads, "1")
	}
}

// Long skips a test that takes long, unless SLOTSCOPE_TESTS is "all", as it is in .ci/run.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("This takes long: it runs with SLOTSCOPE_TESTS=all, and never with -short.")
	}
}

// All is whether tests were asked for in full: with every case, image and step.
func All() bool { return os.Getenv("SLOTSCOPE_TESTS") == "all" && !testing.Short() }

// Says fails the test unless err has every part in its sentence.
func Says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// Open opens a file that can be opened, until the test ends.
func Open[T io.Closer](t testing.TB, open func(path string) (T, error), path string) T {
	t.Helper()
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Frugal fails the test where work on an input of size bytes allocates more than times as many bytes, beside 8 MB of buffers: what a file
// says of its sizes must not decide what is taken for it.
func Frugal(t testing.TB, size, times int, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(size*times)+8<<20 {
		t.Errorf("%d bytes of input took %d bytes of memory", size, took)
	}
}

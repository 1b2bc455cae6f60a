// Package expect has helpers shared by the tests of several packages.
package expect

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// go test runs as many packages in parallel as there are cores, so one engine thread per package is enough; more would compete for the
// same cores. Full test runs, with -race or not, use the engine's default.
func init() {
	const threads = "SLOTSCOPE_THREADS"
	if _, said := os.LookupEnv(threads); !said && os.Getenv("SLOTSCOPE_TESTS") != "all" {
		os.Setenv(threads, "1")
	}
}

// Long skips a long test unless SLOTSCOPE_TESTS is "all", as in .ci/run.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("Long test: runs only with SLOTSCOPE_TESTS=all and without -short.")
	}
}

// All reports whether the full tests were requested: every case, image and step.
func All() bool { return os.Getenv("SLOTSCOPE_TESTS") == "all" && !testing.Short() }

// Says fails the test unless err's message contains every part.
func Says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

// Open opens a file for the duration of the test.
func Open[T io.Closer](t testing.TB, open func(path string) (T, error), path string) T {
	t.Helper()
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Child runs the test in another process with an environment variable that makes it take the child's part. It waits for the first line that
// the child prints, and returns it and a function that kills the child; the end of the test does so, too.
func Child(t testing.TB, variable string) (line string, kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	t.Cleanup(kill)
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child printed %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n"), kill
}

// Frugal fails the test if work on an input of size bytes allocates more than times as many bytes, plus 8 MB for buffers: sizes declared in a
// file must not determine allocations.
func Frugal(t testing.TB, size, times int, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(size*times)+8<<20 {
		t.Errorf("%d bytes of input allocated %d bytes", size, took)
	}
}

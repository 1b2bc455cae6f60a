package kernel

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

func TestMemory(t *testing.T) {
	for _, align := range []int{64, 4096} {
		for _, n := range []int{1, 64, 4095, hugePage - 1, hugePage, hugePage + 1, 5*hugePage + 12} {
			mem := Memory(n, align)
			at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
			if len(mem) != n || cap(mem) != n || at%uintptr(align) != 0 || n >= hugePage && at%hugePage != 0 {
				t.Errorf("%d bytes aligned to %d: %d of %d bytes at %#x", n, align, len(mem), cap(mem), at)
			}
			for i := range mem {
				if mem[i]++; mem[i] != 1 {
					t.Fatalf("%d bytes aligned to %d: byte %d is not zero", n, align, i)
				}
			}
			if whole := uintptr(n / hugePage * hugePage); whole > 0 {
				checkHuge(t, at, at+whole)
			}
		}
	}
}

// checkHuge checks that Linux was asked for large pages in an interval of addresses.
func checkHuge(t *testing.T, at, end uintptr) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if _, none := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || none != nil {
		t.Skip("This system has no large pages, or does not tell.")
	}
	defer f.Close()
	var from, to uintptr
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "VmFlags:") {
			var a, b uintptr
			if n, _ := fmt.Sscanf(line, "%x-%x ", &a, &b); n == 2 {
				from, to = a, b
			}
		} else if flags := strings.Fields(line); from < end && at < to {
			asked := false
			for _, f := range flags {
				asked = asked || f == "hg"
			}
			if !asked {
				t.Errorf("memory at %#x to %#x: flags %v", from, to, flags)
			}
		}
	}
}

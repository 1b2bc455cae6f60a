//go:build linux

package kernel

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMemory(t *testing.T) {
	probe, err := unix.Mmap(-1, 0, 3*hugePage, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(probe) }()
	tells := unix.Madvise(probe, unix.MADV_HUGEPAGE) == nil && asksForHuge(probe) // not in an emulator
	for _, align := range []int{64, 4096} {
		for _, n := range []int{1, 64, 4095, hugePage - 1, hugePage, hugePage + 1, 5*hugePage + 12} {
			mem := Memory(n, align)
			at := addressOf(mem)
			if len(mem) != n || cap(mem) != n || at%uintptr(align) != 0 || n >= hugePage && at%hugePage != 0 {
				t.Errorf("%d bytes aligned to %d: %d of %d bytes at %#x", n, align, len(mem), cap(mem), at)
			}
			for i := range mem {
				if mem[i]++; mem[i] != 1 {
					t.Fatalf("%d bytes aligned to %d: byte %d is not zero", n, align, i)
				}
			}
			if whole := mem[:n/hugePage*hugePage]; tells && !asksForHuge(whole) {
				t.Errorf("%d bytes aligned to %d are not in large pages", n, align)
			}
		}
	}
	if !tells {
		t.Log("This system has no large pages, or does not tell.")
	}
}

func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// asksForHuge reports whether Linux was asked for large pages in all of mem.
func asksForHuge(mem []byte) bool {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return false
	}
	defer f.Close()
	var from, to uintptr
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok {
			if from < addressOf(mem)+uintptr(len(mem)) && addressOf(mem) < to && len(mem) > 0 && !slices.Contains(strings.Fields(flags), "hg") {
				return false
			}
			continue
		}
		var a, b uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &a, &b); n == 2 {
			from, to = a, b
		}
	}
	return true
}

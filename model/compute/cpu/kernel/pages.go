package kernel

import "unsafe"

// hugePage is the size of a large page of memory on x86-64 and most ARM64 systems.
const hugePage = 2 << 20

// Memory returns n unused bytes, aligned to a power of two of at least 8 and at most a page. On Linux, whole large pages in it are requested as such: arrays that are read
// once per step otherwise spend much of their time on translating addresses, above all in virtual machines.
func Memory(n, align int) []byte {
	if n >= hugePage {
		align = hugePage
	}
	words := make([]uint64, (n+align+7)/8)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & (align - 1)
	mem := raw[skip : skip+n : skip+n]
	if n >= hugePage {
		useHugePages(mem[:n/hugePage*hugePage])
	}
	return mem
}

//go:build cgo && amx_emulation && linux && amd64

package kernel

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestAMXDecode decodes what GNU as makes of each form of operands, with every register as base and as index.
func TestAMXDecode(t *testing.T) {
	const rip = 0x400000
	const rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	var r [16]uint64
	for i := range r {
		r[i] = uint64(i+1) << 40
	}
	none := func(kind amxKind) amxInstruction { return amxInstruction{kind, 5, -1, -1, -1, 0, 0} }
	of := func(kind amxKind, tile, a, b int) amxInstruction { return amxInstruction{kind, 5, tile, a, b, 0, 0} }
	at := func(kind amxKind, tile, length int, memory, stride uint64) amxInstruction {
		return amxInstruction{kind, length, tile, -1, -1, memory, stride}
	}
	for _, c := range []struct {
		assembly, code string
		want           amxInstruction
	}{
		{"ldtilecfg 0x1000(%rip)", "c4e278490500100000", at(ldtilecfg, -1, 9, rip+0x1009, 0)},
		{"ldtilecfg (%rax)", "c4e2784900", at(ldtilecfg, -1, 5, r[rax], 0)},
		{"ldtilecfg (%r8)", "c4c2784900", at(ldtilecfg, -1, 5, r[r8], 0)},
		{"ldtilecfg -8(%rbp)", "c4e2784945f8", at(ldtilecfg, -1, 6, r[rbp]-8, 0)},
		{"ldtilecfg 0x12345(%r13)", "c4c278498545230100", at(ldtilecfg, -1, 9, r[r13]+0x12345, 0)},
		{"ldtilecfg (%rsp)", "c4e278490424", at(ldtilecfg, -1, 6, r[rsp], 0)},
		{"ldtilecfg 64(%r12)", "c4c27849442440", at(ldtilecfg, -1, 7, r[r12]+64, 0)},
		{"ldtilecfg (%rdx,%r9,4)", "c4a27849048a", at(ldtilecfg, -1, 6, r[rdx]+4*r[r9], 0)},
		{"ldtilecfg 0x7000", "c4e27849042500700000", at(ldtilecfg, -1, 10, 0x7000, 0)},
		{"sttilecfg (%rdi)", "c4e2794907", at(sttilecfg, -1, 5, r[rdi], 0)},
		{"sttilecfg 0x40(%rsp)", "c4e27949442440", at(sttilecfg, -1, 7, r[rsp]+0x40, 0)},
		{"sttilecfg (%r10,%r12,8)", "c482794904e2", at(sttilecfg, -1, 6, r[r10]+8*r[r12], 0)},
		{"tilerelease", "c4e27849c0", none(tilerelease)},
		{"tilezero %tmm0", "c4e27b49c0", of(tilezero, 0, -1, -1)},
		{"tilezero %tmm7", "c4e27b49f8", of(tilezero, 7, -1, -1)},
		{"tileloadd (%rdi,%rdx,1), %tmm4", "c4e27b4b2417", at(tileloadd, 4, 6, r[rdi], r[rdx])},
		{"tileloadd (%rax,%rcx,2), %tmm1", "c4e27b4b0c48", at(tileloadd, 1, 6, r[rax], 2*r[rcx])},
		{"tileloadd 0x0(%rbp,%rbx,1), %tmm6", "c4e27b4b741d00", at(tileloadd, 6, 7, r[rbp], r[rbx])},
		{"tileloadd (%rsp,%rbp,8), %tmm0", "c4e27b4b04ec", at(tileloadd, 0, 6, r[rsp], 8*r[rbp])},
		{"tileloadd (%r8,%rbx,1), %tmm6", "c4c27b4b3418", at(tileloadd, 6, 6, r[r8], r[rbx])},
		{"tileloadd (%rsi,%r9,1), %tmm4", "c4a27b4b240e", at(tileloadd, 4, 6, r[rsi], r[r9])},
		{"tileloadd (%r10,%r9,1), %tmm5", "c4827b4b2c0a", at(tileloadd, 5, 6, r[r10], r[r9])},
		{"tileloadd 0x400(%rax,%r9,1), %tmm5", "c4a27b4bac0800040000", at(tileloadd, 5, 10, r[rax]+0x400, r[r9])},
		{"tileloadd -0x80(%r11,%r12,4), %tmm2", "c4827b4b54a380", at(tileloadd, 2, 7, r[r11]-0x80, 4*r[r12])},
		{"tileloadd (%r12,%rsi,2), %tmm3", "c4c27b4b1c74", at(tileloadd, 3, 6, r[r12], 2*r[rsi])},
		{"tileloadd 0x0(%r13,%r8,1), %tmm7", "c4827b4b7c0500", at(tileloadd, 7, 7, r[r13], r[r8])},
		{"tileloadd -0x12345678(%r14,%r15,8), %tmm1", "c4827b4b8cfe88a9cbed", at(tileloadd, 1, 10, r[r14]-0x12345678, 8*r[r15])},
		{"tileloadd 0x7f(%r15,%r14,1), %tmm0", "c4827b4b44377f", at(tileloadd, 0, 7, r[r15]+0x7f, r[r14])},
		{"tileloadd (%rbx,%r10,1), %tmm0", "c4a27b4b0413", at(tileloadd, 0, 6, r[rbx], r[r10])},
		{"tileloadd (%rcx,%r11,1), %tmm0", "c4a27b4b0419", at(tileloadd, 0, 6, r[rcx], r[r11])},
		{"tileloadd (%r9,%r13,1), %tmm0", "c4827b4b0429", at(tileloadd, 0, 6, r[r9], r[r13])},
		{"tileloadd (%rdx,%rdi,1), %tmm0", "c4e27b4b043a", at(tileloadd, 0, 6, r[rdx], r[rdi])},
		{"tileloadd (,%rax,4), %tmm3", "c4e27b4b1c8500000000", at(tileloadd, 3, 10, 0, 4*r[rax])},
		{"tileloadd 0x1234(,%r13,1), %tmm3", "c4a27b4b1c2d34120000", at(tileloadd, 3, 10, 0x1234, r[r13])},
		{"tileloadd (%rsi), %tmm2", "c4e27b4b1426", at(tileloadd, 2, 6, r[rsi], 0)},
		{"tileloadd 0x5000, %tmm2", "c4e27b4b142500500000", at(tileloadd, 2, 10, 0x5000, 0)},
		{"tileloaddt1 0x10(%rax,%rdx,1), %tmm3", "c4e2794b5c1010", at(tileloadd, 3, 7, r[rax]+0x10, r[rdx])},
		{"tilestored %tmm0, (%rdx,%rax,1)", "c4e27a4b0402", at(tilestored, 0, 6, r[rdx], r[rax])},
		{"tilestored %tmm7, 0x40(%r9,%r11,2)", "c4827a4b7c5940", at(tilestored, 7, 7, r[r9]+0x40, 2*r[r11])},
		{"tdpbf16ps %tmm6, %tmm4, %tmm0", "c4e24a5cc4", of(tdpbf16ps, 0, 4, 6)},
		{"tdpbf16ps %tmm7, %tmm5, %tmm3", "c4e2425cdd", of(tdpbf16ps, 3, 5, 7)},
		{"tdpbf16ps %tmm0, %tmm7, %tmm1", "c4e27a5ccf", of(tdpbf16ps, 1, 7, 0)},

		{"tdpbssd %tmm6, %tmm4, %tmm0", "c4e24b5ec4", amxInstruction{}},
		{"tdpfp16ps %tmm6, %tmm4, %tmm0", "c4e24b5cc4", amxInstruction{}},
		{"andn %eax, %ecx, %edx", "c4e270f2d0", amxInstruction{}},
		{"ud2", "0f0b", amxInstruction{}},
		{"tileloadd without SIB", "c4e27b4b00", amxInstruction{}},
		{"tilezero of tile 8", "c4627b49c0", amxInstruction{}},
		{"tdpbf16ps of tile 8", "c4c24a5cc4", amxInstruction{}},
		{"tdpbf16ps of tile 14", "c4e20a5cc4", amxInstruction{}},
		{"tilezero of two operands", "c4e24b49c0", amxInstruction{}},
		{"tilerelease with W", "c4e2f849c0", amxInstruction{}},
		{"tilerelease with L", "c4e27c49c0", amxInstruction{}},
	} {
		code, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := decodeAMX(code, rip, r); got != c.want && (c.want.kind != amxNone || got.kind != amxNone) {
			t.Errorf("%s: %+v, want %+v", c.assembly, got, c.want)
		}
	}
}

// amxMemory is what the instructions of these tests read and write: its address does not change.
var amxMemory [2 * 16 * 64]byte

func amxAddress(offset int) uint64 { return uint64(uintptr(unsafe.Pointer(&amxMemory[offset]))) }

// tileSize is the number of rows, and of bytes in a row.
type tileSize struct{ rows, bytes int }

// configureAMX writes the configuration of the first tiles, changed by edit, and loads it.
func configureAMX(edit func(c []byte), tiles ...tileSize) string {
	c := amxMemory[:64]
	clear(c)
	c[0] = 1
	for i, s := range tiles {
		binary.LittleEndian.PutUint16(c[16+2*i:], uint16(s.bytes))
		c[48+i] = byte(s.rows)
	}
	if edit != nil {
		edit(c)
	}
	return executeAMX(amxInstruction{kind: ldtilecfg, memory: amxAddress(0)})
}

// onThread locks the test to a thread, and makes it have no tiles at the end.
func onThread(t *testing.T) {
	runtime.LockOSThread()
	t.Cleanup(func() {
		executeAMX(amxInstruction{kind: tilerelease})
		runtime.UnlockOSThread()
	})
}

// TestAMXRefuses checks that instructions that raise an exception on a processor are refused, with the reason.
func TestAMXRefuses(t *testing.T) {
	onThread(t)
	whole := []tileSize{{16, 64}, {16, 64}, {16, 64}}
	set := func(at int, to byte) func([]byte) { return func(c []byte) { c[at] = to } }
	for _, c := range []struct {
		edit  func([]byte)
		tiles []tileSize
		want  string
	}{
		{nil, whole, ""}, {set(0, 0), []tileSize{{99, 99}}, ""}, {set(0, 2), whole, "unknown palette"}, {set(2, 1), whole, "reserved"}, {set(15, 1), whole, "reserved"},
		{set(32, 1), whole, "reserved"}, {set(47, 1), whole, "reserved"}, {set(56, 1), whole, "reserved"}, {set(63, 1), whole, "reserved"},
		{nil, []tileSize{{17, 64}}, "too large"}, {nil, []tileSize{{16, 65}}, "too large"}, {nil, []tileSize{{16, 0}}, "not both"}, {nil, []tileSize{{0, 64}}, "not both"},
		{nil, []tileSize{{1, 1}}, ""},
	} {
		if got := configureAMX(c.edit, c.tiles...); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("configuration %+v of % x: %q, want %q", c.tiles, amxMemory[:64], got, c.want)
		}
	}
	zero := amxInstruction{kind: tilezero, tile: 1}
	load := amxInstruction{kind: tileloadd, tile: 1, memory: amxAddress(0)}
	store := amxInstruction{kind: tilestored, tile: 1, memory: amxAddress(64)}
	dot := amxInstruction{kind: tdpbf16ps, tile: 0, a: 1, b: 2}
	twice := amxInstruction{kind: tdpbf16ps, tile: 0, a: 1, b: 1}
	const odd, unmatched = "not whole words", "do not match"
	for _, c := range []struct {
		what  string
		do    amxInstruction
		edit  func([]byte)
		tiles []tileSize
		want  string
	}{
		{"zero", zero, nil, []tileSize{{16, 64}}, "not configured"}, {"load", load, nil, []tileSize{{16, 64}}, "not configured"},
		{"store", store, nil, []tileSize{{16, 64}}, "not configured"}, {"dot", dot, nil, []tileSize{{16, 64}, {16, 64}}, "not configured"},
		{"zero", zero, nil, []tileSize{{16, 64}, {2, 3}}, ""}, {"load", load, nil, []tileSize{{16, 64}, {2, 3}}, odd}, {"store", store, nil, []tileSize{{16, 64}, {2, 3}}, odd},
		{"load", load, set(1, 2), []tileSize{{16, 64}, {2, 4}}, "start row"}, {"load", load, set(1, 1), []tileSize{{16, 64}, {2, 4}}, ""},
		{"dot", dot, nil, whole, ""}, {"dot", dot, nil, []tileSize{{3, 8}, {3, 20}, {5, 8}}, ""}, {"dot of a tile twice", twice, nil, whole, "same tile twice"},
		{"dot", dot, nil, []tileSize{{4, 8}, {3, 20}, {5, 8}}, unmatched}, {"dot", dot, nil, []tileSize{{3, 8}, {3, 20}, {4, 8}}, unmatched},
		{"dot", dot, nil, []tileSize{{3, 8}, {3, 20}, {5, 12}}, unmatched}, {"dot", dot, nil, []tileSize{{3, 7}, {3, 20}, {5, 7}}, odd},
	} {
		if why := configureAMX(c.edit, c.tiles...); why != "" {
			t.Fatal(why)
		}
		if got := executeAMX(c.do); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %+v: %q, want %q", c.what, c.tiles, got, c.want)
		}
	}
	executeAMX(amxInstruction{kind: tilerelease})
	for _, i := range []amxInstruction{zero, load, store, dot} {
		if got := executeAMX(i); !strings.Contains(got, "without a configuration on this thread") {
			t.Errorf("%+v after the release: %q", i, got)
		}
	}
}

// TestAMXTiles checks that a tile holds its configured rows and columns and zeros elsewhere, and which bytes a store writes.
func TestAMXTiles(t *testing.T) {
	onThread(t)
	const rows, width, stride = 5, 12, 100
	for _, start := range []int{0, 2} {
		for i := range amxMemory {
			amxMemory[i] = byte(i%255 + 1)
		}
		image := amxMemory
		configureAMX(nil, tileSize{16, 64}, tileSize{16, 64}) // what this loads is gone after the next configuration
		executeAMX(amxInstruction{kind: tileloadd, tile: 1, memory: amxAddress(64), stride: 64})
		if why := configureAMX(func(c []byte) { c[1] = byte(start) }, tileSize{16, 64}, tileSize{rows, width}); why != "" {
			t.Fatal(why)
		}
		amxMemory = image
		if why := executeAMX(amxInstruction{kind: tileloadd, tile: 1, memory: amxAddress(3), stride: stride}); why != "" {
			t.Fatal(why)
		}
		for i, row := range amxTile(1) {
			for j, got := range row {
				want := uint32(0)
				if i >= start && i < rows && j < width/4 {
					want = binary.LittleEndian.Uint32(amxMemory[3+i*stride+4*j:])
				}
				if got != want {
					t.Errorf("start %d: word %d, %d is %x, want %x", start, i, j, got, want)
				}
			}
		}
		const unwritten = 0xee
		for i := range amxMemory {
			amxMemory[i] = unwritten
		}
		last := 3 + (rows-1)*stride // a negative stride reverses the rows
		if why := executeAMX(amxInstruction{kind: tilestored, tile: 1, memory: amxAddress(last), stride: math.MaxUint64 - stride + 1}); why != "" {
			t.Fatal(why)
		}
		for i, got := range amxMemory {
			want := byte(unwritten)
			if row, col := (i-3)/stride, (i-3)%stride; i >= 3 && row < rows && col < width {
				if want = 0; rows-1-row >= start {
					want = image[3+(rows-1-row)*stride+col]
				}
			}
			if got != want {
				t.Fatalf("start %d: byte %d is %x, want %x", start, i, got, want)
			}
		}
		if executeAMX(amxInstruction{kind: tilezero, tile: 1}); amxTile(1) != ([16][16]uint32{}) {
			t.Error("TILEZERO left something")
		}
	}
	executeAMX(amxInstruction{kind: sttilecfg, memory: amxAddress(0)})
	if c := amxMemory; c[0] != 1 || c[1] != 0 || c[16] != 64 || c[18] != width || c[48] != 16 || c[49] != rows {
		t.Errorf("STTILECFG wrote % x", c[:64])
	}
	executeAMX(amxInstruction{kind: tilerelease})
	executeAMX(amxInstruction{kind: sttilecfg, memory: amxAddress(0)})
	if [64]byte(amxMemory[:64]) != ([64]byte{}) {
		t.Errorf("STTILECFG without a configuration wrote % x", amxMemory[:64])
	}
}

// amxLoad loads a tile from words.
func amxLoad(t failer, tile int, words [][]uint32) {
	for i, row := range words {
		for j, word := range row {
			binary.LittleEndian.PutUint32(amxMemory[64*i+4*j:], word)
		}
	}
	if why := executeAMX(amxInstruction{kind: tileloadd, tile: tile, memory: amxAddress(0), stride: 64}); why != "" {
		t.Fatalf("%s", why)
	}
}

// amxDot returns C + A B as TDPBF16PS computes it.
func amxDot(t failer, c, a, b [][]uint32) [16][16]uint32 {
	size := func(x [][]uint32) tileSize { return tileSize{len(x), 4 * len(x[0])} }
	if why := configureAMX(nil, size(c), size(a), size(b)); why != "" {
		t.Fatalf("%s", why)
	}
	amxLoad(t, 0, c)
	amxLoad(t, 1, a)
	amxLoad(t, 2, b)
	if why := executeAMX(amxInstruction{kind: tdpbf16ps, tile: 0, a: 1, b: 2}); why != "" {
		t.Fatalf("%s", why)
	}
	return amxTile(0)
}

// TestAMXRounding checks single sums whose result depends on the order of the additions and the treatment of denormals.
func TestAMXRounding(t *testing.T) {
	onThread(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const smallest, ulp = 0x1p-126, 0x1p-23
	type pair struct{ a0, a1, b0, b1 float32 }
	for _, c := range []struct {
		what  string
		c     float32
		pairs []pair
		want  float32
	}{
		{"products of a pair are added before C", 1, []pair{{0x1p-12, 0x1p-12, 0x1p-12, 0x1p-12}}, 1 + ulp},
		{"all first products are added before the second", 0, []pair{{1, 1, 1, -1}, {0x1p-12, 0, 0x1p-12, 0}}, 0},
		{"a tie becomes even", 1, []pair{{0x1p-12, 0, 0x1p-12, 0}}, 1},
		{"a tie becomes even, upward", 1 + ulp, []pair{{0x1p-12, 0, 0x1p-12, 0}}, 1 + 2*ulp},
		{"products are not rounded before they are added", 0, []pair{{0x1p-63, 0, 0x1p-63, 0}, {0x1p-75, 0, 0x1p-74, 0}}, smallest * (1 + ulp)},
		{"a denormal operand is zero", 0, []pair{{0x1p-130, 0, 0x1p100, 0}}, 0},
		{"a denormal operand is zero, so with infinity it is NaN", 0, []pair{{0x1p-130, 0, inf, 0}}, nan},
		{"a denormal product becomes zero", 0, []pair{{0x1p-70, 0, 0x1p-70, 0}}, 0},
		{"a denormal difference becomes zero", 0, []pair{{0x1.8p-63, -0x1p-63, 0x1p-63, 0x1p-63}}, 0},
		{"a denormal result becomes zero", 0x1.8p-126, []pair{{0x1p-63, 0, -0x1p-63, 0}}, 0},
		{"a denormal C is zero", 0x1p-130, []pair{{0, 0, 0, 0}}, 0},
		{"the smallest normal value stays", smallest, []pair{{0, 0, 0, 0}}, smallest},
		{"a sum that is too large is infinite", 0, []pair{{0x1p100, 0, 0x1p100, 0}}, inf},
		{"infinities of opposite sign are NaN", 0, []pair{{0x1p100, 0x1p100, 0x1p100, -0x1p100}}, nan},
		{"infinity times zero is NaN", 0, []pair{{inf, 0, 0, 0}}, nan},
	} {
		var a, b [][]uint32
		halves := func(low, high float32) uint32 { return math.Float32bits(low)>>16 | math.Float32bits(high)&0xffff0000 }
		a = append(a, nil)
		for _, p := range c.pairs {
			a[0] = append(a[0], halves(p.a0, p.a1))
			b = append(b, []uint32{halves(p.b0, p.b1)})
		}
		tile := amxDot(t, [][]uint32{{math.Float32bits(c.c)}}, a, b)
		got := math.Float32frombits(tile[0][0])
		if got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%s: %b, want %b", c.what, got, c.want)
		}
		if tile[0][0] = 0; tile != ([16][16]uint32{}) {
			t.Errorf("%s: more than one element is not zero: %x", c.what, tile)
		}
	}
}

// TestAMXDot compares every bit of TDPBF16PS on tiles of any size with its definition, in which each sum is exact before it is rounded.
func TestAMXDot(t *testing.T) {
	onThread(t)
	rapid.Check(t, func(t *rapid.T) {
		rows, pairs, cols := rapid.IntRange(1, 16).Draw(t, "rows"), rapid.IntRange(1, 16).Draw(t, "pairs"), rapid.IntRange(1, 16).Draw(t, "cols")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		spread := rapid.IntRange(1, 63).Draw(t, "spread")
		low := rapid.SampledFrom([]int{-126, -64 - spread, -spread / 2}).Draw(t, "exponent")
		number := func(digits int) uint32 {
			x := math.Ldexp(float64(1+r.IntN(1<<digits)), low+r.IntN(spread)-digits)
			return math.Float32bits(float32(x * float64(1-2*r.IntN(2))))
		}
		fill := func(rows, cols int, word func() uint32) [][]uint32 {
			x := make([][]uint32, rows)
			for i := range x {
				for range cols {
					x[i] = append(x[i], word())
				}
			}
			return x
		}
		two := func() uint32 { return number(7)>>16 | number(7)&0xffff0000 }
		c, a, b := fill(rows, cols, func() uint32 { return number(23) }), fill(rows, pairs, two), fill(pairs, cols, two)
		got := amxDot(t, c, a, b)
		for i := range 16 {
			for j := range 16 {
				want := float32(0)
				if i < rows && j < cols {
					var sum [2]float32
					for k := range pairs {
						sum[0] = fused(a[i][k]<<16, b[k][j]<<16, sum[0])
						sum[1] = fused(a[i][k]&0xffff0000, b[k][j]&0xffff0000, sum[1])
					}
					one := math.Float32bits(1)
					want = fused(one, math.Float32bits(fused(one, math.Float32bits(sum[1]), sum[0])), math.Float32frombits(c[i][j]))
				}
				if got := math.Float32frombits(got[i][j]); got != want {
					t.Fatalf("[%d, %d] is %b, want %b", i, j, got, want)
				}
			}
		}
	})
}

// fused returns x y + z rounded once, with denormals as zero.
func fused(x, y uint32, z float32) float32 {
	exact := func(f float32) *big.Float {
		if abs32(f) < 0x1p-126 {
			f = 0
		}
		return big.NewFloat(float64(f))
	}
	product := new(big.Float).SetPrec(64).Mul(exact(math.Float32frombits(x)), exact(math.Float32frombits(y)))
	sum := new(big.Float).SetPrec(24).Add(product, exact(z))
	if f, _ := sum.Float64(); math.Abs(f) >= 0x1p-126 {
		return float32(f)
	}
	return 0
}

// TestAMXEqualsPlainC checks that the instructions compute the same bits as the tiles in C if there are no denormals, also on a processor with AMX.
func TestAMXEqualsPlainC(t *testing.T) {
	if !runsHalf()[halfAMX] && amxIsEmulated {
		t.Error("AMX is emulated but fails its test, so other tests skip it")
	} else if !runsHalf()[halfAMX] {
		t.Skip("this processor has neither AMX nor FMA")
	}
	p := NewPool(2)
	defer p.Close()
	for _, o := range asHalves {
		for _, s := range [][3]int{{40, 35, 70}, {16, 16, 32}, {13, 70, 525}, {70, 13, 300}} {
			var got [2][]float32
			for i, set := range []int{halfPlain, halfAMX} {
				g := halfGemm(dense(s[0], s[1], s[2], false, false), o)
				withHalf(set, func() { p.Gemm(g) })
				got[i] = g.C
			}
			for i, want := range got[0] {
				if got := got[1][i]; got != want {
					t.Fatalf("%v, operands %d: element %d is %b, want %b", s, o, i, got, want)
				}
			}
		}
	}
}

// TestAMXReleases checks that every call that configures tiles releases them, on whatever thread it runs.
func TestAMXReleases(t *testing.T) {
	needsAMXEmulation(t)
	p := NewPool(3)
	defer p.Close()
	for _, s := range [][3]int{{200, 70, 90}, {70, 200, 90}, {20, 20, 600}, {2000, 30, 40}} {
		begun, ended, dots := amxCount(ldtilecfg), amxCount(tilerelease), amxCount(tdpbf16ps)
		withHalf(halfAMX, func() { p.Gemm(halfGemm(dense(s[0], s[1], s[2], false, false), Split)) })
		begun, ended, dots = amxCount(ldtilecfg)-begun, amxCount(tilerelease)-ended, amxCount(tdpbf16ps)-dots
		if begun != ended || begun == 0 || dots == 0 {
			t.Errorf("%v: %d configurations, %d releases, %d products", s, begun, ended, dots)
		}
	}
}

func needsAMXEmulation(t *testing.T) {
	t.Helper()
	if !amxIsEmulated {
		t.Skip("not emulated: this processor has AMX itself, or no FMA")
	}
}

// amxEnv makes the test binary do something that kills the process.
const amxEnv = "KERNEL_TEST_AMX"

// TestAMXSignals checks that what the emulator refuses, or does not know, ends the process with a message.
func TestAMXSignals(t *testing.T) {
	needsAMXEmulation(t)
	if do := os.Getenv(amxEnv); do != "" {
		amxSignal(do)
		return
	}
	for _, c := range []struct{ do, says, saysNot string }{
		{"whole", "PASS", "AMX:"}, {"no configuration", "AMX: tile used without a configuration on this thread\nSIGILL", "PASS"},
		{"another thread", "AMX: tile used without a configuration on this thread\nSIGILL", "PASS"},
		{"released", "AMX: tile used without a configuration on this thread\nSIGILL", "PASS"}, {"undefined", "SIGILL", "AMX:"},
	} {
		child := exec.Command(os.Args[0], "-test.run=^TestAMXSignals$")
		child.Env = append(os.Environ(), amxEnv+"="+c.do)
		out, err := child.CombinedOutput()
		if got := string(out); !strings.Contains(got, c.says) || strings.Contains(got, c.saysNot) || (err == nil) != (c.do == "whole") {
			t.Errorf("%s: %v\n%s", c.do, err, got)
		}
	}
}

func amxSignal(do string) {
	runtime.LockOSThread()
	switch do {
	case "whole":
		amxBegin()
		amxTiles()
		amxEnd()
	case "no configuration":
		amxTiles()
	case "another thread":
		amxBegin()
		done := make(chan bool)
		go func() {
			runtime.LockOSThread()
			amxTiles()
			close(done)
		}()
		<-done
	case "released":
		amxBegin()
		amxEnd()
		amxTiles()
	case "undefined":
		amxUndefined()
	}
}

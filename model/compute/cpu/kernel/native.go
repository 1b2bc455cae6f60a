//go:build cgo && amd64 && (linux || darwin)

package kernel

/*
#include "program.h"
*/
import "C"

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	lanes        = 8    // floats of a vector of AVX2
	vectors      = 16   // vector registers of AVX2; of those of AVX-512, as many hold values
	spare        = 16   // one more of AVX-512
	mostScalars  = 5    // single values that stay in registers
	leastStretch = 2    // instructions for which machine code is worthwhile
	longestRow   = 32   // floats of a row whose sums stay in registers
	leastSummed  = 2048 // elements of a result for which sums in memory are worthwhile
	ahead        = 4096 // bytes between a vector that is read and the one that is fetched, in another page
	aheadStored  = 2048 // the same for one that is stored
	leastRows    = 16   // rows of a block, and rows that share values, for which reading these once is worthwhile
	mostFixed    = 10   // registers with single values, sums and values that all rows share; an operation takes up to 6 more
)

// bases are the registers that hold addresses of arrays. Addresses of further arrays are loaded for each access. The last two hold the address
// of the sums and the offset of a column, if there are any.
var bases = []int{8, 9, 10, r11, rdx}

// translate returns a program's instructions in stretches: those with operations that the assembler knows become machine code, the others
// are interpreted. It returns nil if all are interpreted.
func translate(p *Program) []C.stretch {
	if !machineCode || programSet() == 0 {
		return nil
	}
	var out []C.stretch
	var code []byte
	p.setRows(p.sharedRows())
	for from := 0; from < len(p.code); {
		n, known := from+1, translatable(Op(p.code[from].op))
		for n < len(p.code) && translatable(Op(p.code[n].op)) == known {
			n++
		}
		s := C.stretch{first: C.int64_t(from), last: C.int64_t(n)}
		if known && (n-from >= leastStretch || n-from == len(p.code) && p.sums()) {
			s.native = C.uintptr_t(len(code)) + 1
			code = append(code, generate(p, from, n)...)
		}
		out = append(out, s)
		from = n
	}
	if len(code) == 0 {
		return nil
	}
	if len(out) == 1 && p.sums() {
		p.sum()
		code = generate(p, 0, len(p.code))
	}
	p.c.lanes = C.int64_t(p.lanes())
	region, err := executable(code)
	if err != nil { // some systems forbid it
		p.c.summed = 0
		p.setRows(0, 0)
		return nil
	}
	runtime.AddCleanup(p, func(region []byte) { _ = unix.Munmap(region) }, region)
	start := C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(region))))
	for i := range out {
		if out[i].native != 0 {
			out[i].native += start - 1
		}
	}
	return out
}

// sums reports whether machine code can compute the reductions, too: a few sums, each over enough whole vectors, with no block in two results.
func (p *Program) sums() bool {
	n, r, inner := len(p.reductions), p.c.r, p.c.inner
	switch {
	case programSet() == 0 || n == 0 || n > C.MOST_SUMS,
		slices.ContainsFunc(p.reductions, func(r C.reducing) bool { return r.kind != C.REDUCE_SUM }),
		slices.ContainsFunc(p.code, func(c C.instruction) bool { return !translatable(Op(c.op)) }):
		return false
	case inner == 1: // the elements after the last run are interpreted
		return r >= leastSummed && (r%C.SUMMED_RUN == 0 || r >= 16*C.SUMMED_RUN)
	case inner <= longestRow:
		return inner%lanes == 0 && r*inner >= p.c.block
	}
	return inner%lanes == 0 && r*inner >= leastSummed
}

// sumsRows reports whether machine code computes sums row by row, in memory, with up to summedBlock elements at a time.
func (p *Program) sumsRows() bool {
	return (p.c.inner == 1 || p.c.inner > longestRow) && p.sums()
}

// sum prepares for machine code that computes the reductions.
func (p *Program) sum() {
	p.c.summed = p.c.inner
	if p.c.inner == 1 {
		p.c.summed = C.int64_t(16 << programSet()) // four vectors
	}
	for i := range p.loads {
		l := &p.loads[i]
		if p.sumsRows() && p.sharedRow(l) && !p.storesSlot(l.slot) {
			l.once = 1
		}
	}
}

// sharedRows returns the length of rows that share loaded values in a program without reductions, and their number, if machine code can read these values once
// for all of them; 0 if not.
func (p *Program) sharedRows() (inner, r int) {
	if !machineCode || programSet() == 0 || len(p.reductions) > 0 || len(p.code) < leastStretch ||
		slices.ContainsFunc(p.code, func(c C.instruction) bool { return !translatable(Op(c.op)) }) {
		return 0, 0
	}
	for _, l := range p.loads {
		n, rows := int(l.n[0]), int(l.n[1])
		switch {
		case l.axes < 2 || l.stride[1] != 0 || n%lanes != 0 || inner > 0 && n != inner:
		case inner == 0:
			inner, r = n, rows
		default:
			r = gcd(r, rows)
		}
	}
	if r < leastRows || inner*leastRows > mostBlock {
		return 0, 0
	}
	return inner, r
}

// setRows makes machine code read values that so many rows share once, or every time if inner is 0.
func (p *Program) setRows(inner, r int) {
	for i := range p.loads {
		p.loads[i].once = 0
	}
	if p.c.rowed = bit(inner > 0); inner == 0 {
		return
	}
	p.c.inner, p.c.r = C.int64_t(inner), C.int64_t(r)
	for i := range p.loads {
		l := &p.loads[i]
		l.once = bit(p.sharedRow(l) && !p.storesSlot(l.slot))
	}
}

// storesSlot reports whether a slot's value is an output that is copied from it.
func (p *Program) storesSlot(slot C.int64_t) bool {
	return slices.ContainsFunc(p.stores, func(s C.storing) bool { return s.slot == slot })
}

// sharedRow reports whether a loaded value is the same in all rows of a result.
func (p *Program) sharedRow(l *C.loading) bool {
	return l.axes > 1 && l.n[0] == p.c.inner && l.stride[1] == 0 && l.n[1]%p.c.r == 0
}

// readsHalves reports whether machine code computes all instructions, so that it can convert bfloat16 as it reads it.
func (p *Program) readsHalves() bool {
	return machineCode && programSet() != 0 && !slices.ContainsFunc(p.spec.Code, func(in Instruction) bool { return !translatable(in.Op) })
}

// lanes returns the number of floats of the machine code's vectors: those of AVX-512 if they fill the rows of sums or of values that are shared.
func (p *Program) lanes() int {
	if programSet() == 2 && (p.c.rowed == 0 && p.c.summed == 0 || p.c.inner == 1 || p.c.inner%16 == 0) {
		return 16
	}
	return lanes
}

// executable returns memory with the code, which can be executed but no longer written.
func executable(code []byte) ([]byte, error) {
	region, err := unix.Mmap(-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	copy(region, code)
	if err := unix.Mprotect(region, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		_ = unix.Munmap(region)
		return nil, err
	}
	return region, nil
}

func translatable(op Op) bool {
	switch op {
	case Exp, Expm1, Log, Log1p, Tanh, Logistic, Erf, Sin, Cos, Pow, Rem:
		return false
	}
	return true
}

// generator writes the machine code of a stretch of instructions. A value stays in a register from the instruction that computes it to
// those that read it. It is stored if it is read after the stretch, if it is an output, or if registers are needed.
type generator struct {
	assembler
	p       *Program
	n, now  int           // the stretch ends before instruction n; now is the one being written
	slot    [vectors]int  // slot whose value a register holds, −1 if none
	unsaved [vectors]bool // whether the slot's memory does not have that value
	pinned  [vectors]bool // whether the current instruction uses the register
	fixed   [vectors]bool // whether the register holds a single value, a sum or a shared value for the whole stretch
	rows    bool          // whether the code computes sums row by row
	base    map[int]int   // registers with the addresses of slots

	columns []column // the vectors of columns that each pass over the rows computes, with sums in registers
	column  int      // the one being written
}

// column has the registers of a vector of columns.
type column struct {
	sums   []int       // of the reductions
	shared map[int]int // of values that all rows share, by slot
}

// generate returns the code of a function of the slots' addresses and of the end of the elements, which computes instructions [from, n). If the program
// is summed, its other parameters are the address of the sums, as [reductions, summed], and the first element; if rows share values, they are 0. Elements are
// counted in bytes of bfloat16. It computes one or two vectors of columns of all rows after the other, with sums and shared values in registers, and long rows
// that are summed in the order of memory, with sums in memory.
func generate(p *Program, from, n int) []byte {
	g := &generator{p: p, n: n, now: from, rows: p.c.summed > 0 && p.sumsRows(), base: map[int]int{}}
	g.lanes = p.lanes()
	for r := range g.slot {
		g.slot[r] = -1
	}
	g.prepare(from)
	start, passes := 0, 0
	switch {
	case g.rows:
		start = g.beginRows()
	case len(g.columns) > 0:
		passes = g.beginColumns(int(p.c.inner) / g.lanes / len(g.columns))
		for c := range g.columns {
			g.enter(c)
			for _, r := range g.columns[c].sums {
				g.write(vxorps, r, r, vector{kind: inVector, n: r})
			}
			g.share()
		}
		start = len(g.code)
	default:
		start = g.begin()
	}
	for c := range max(1, len(g.columns)) {
		g.enter(c)
		g.body(from)
	}
	switch {
	case g.rows:
		g.endRows(start, int(p.c.summed)/g.lanes)
	case len(g.columns) > 0:
		g.end(start, int(p.c.inner))
		for c, column := range g.columns {
			for i, r := range column.sums {
				g.write(vmovupsStore, r, 0, vector{inFloat, rdx, 4 * (i*int(p.c.inner) + c*g.lanes)})
			}
		}
		g.endColumns(passes, g.lanes*len(g.columns))
	default:
		g.end(start, g.lanes)
	}
	return g.finish()
}

// body writes the instructions from one on.
func (g *generator) body(from int) {
	g.add(-1)
	for g.now = from; g.now < g.n; g.now++ {
		g.instruction(&g.p.code[g.now])
		g.add(g.now)
		for r, s := range g.slot {
			g.pinned[r] = false
			if s >= 0 && !g.fixed[r] && g.nextRead(s, g.now+1) < 0 {
				g.slot[r] = -1
			}
		}
	}
}

// enter makes a column's shared values those that the code uses.
func (g *generator) enter(column int) {
	g.column = column
	for c := range g.columns {
		for slot, r := range g.columns[c].shared {
			if g.slot[r] = -1; c == column {
				g.slot[r] = slot
			}
		}
	}
}

// share loads values that are the same in all rows of a result, as many as there are registers for in each column.
func (g *generator) share() {
	column := &g.columns[g.column]
	most := (mostFixed - g.allFixed()) / (len(g.columns) - g.column)
	for _, l := range g.p.loads {
		if slot := int(l.slot); len(column.shared) < most && g.p.sharedRow(&l) && g.nextRead(slot, 0) >= 0 {
			r := g.load(C.int32_t(l.slot))
			g.fixed[r], column.shared[slot] = true, r
		}
	}
	g.pinned = [vectors]bool{}
}

// allFixed returns the number of fixed registers.
func (g *generator) allFixed() int {
	n := 0
	for _, f := range g.fixed {
		if f {
			n++
		}
	}
	return n
}

// add adds to the sums of the slots that instruction i is the last to write; −1 stands for those that no instruction writes.
func (g *generator) add(i int) {
	if g.p.c.summed == 0 {
		return
	}
	for k, r := range g.p.reductions {
		slot := r.slot
		last := -1
		for j, c := range g.p.code {
			if C.int64_t(c.dst) == slot {
				last = j
			}
		}
		if last == i {
			x := g.load(C.int32_t(slot))
			if len(g.columns) > 0 {
				sum := g.columns[g.column].sums[k]
				g.write(vaddps, sum, sum, vector{kind: inVector, n: x})
			} else {
				sum, at := g.take(), vector{inSums, rdx, 4 * k * int(g.p.c.summed)}
				g.write(vaddps, sum, x, at)
				g.write(vmovupsStore, sum, 0, at)
				g.pinned[sum] = false
			}
			g.pinned[x] = false
		}
	}
}

// prepare loads single values and addresses before the loop.
func (g *generator) prepare(from int) {
	scalars, most := 0, len(bases)
	if g.p.c.summed > 0 || g.p.c.rowed > 0 {
		most -= 2
	}
	for i := from; i < g.n; i++ {
		c := &g.p.code[i]
		slots := []int{int(c.dst)}
		for _, s := range c.src[:Op(c.op).Operands()] {
			slots = append(slots, int(s))
		}
		for _, s := range slots {
			switch {
			case g.single(s) && scalars < mostScalars && !slices.Contains(g.slot[:], s):
				scalars++
				r := vectors - scalars
				g.address(rax, s)
				g.write(vbroadcastss, r, 0, vector{kind: inFloat, n: rax})
				g.slot[r], g.fixed[r] = s, true
			case g.inMemory(s) && g.base[s] == 0 && len(g.base) < most:
				g.base[s] = bases[len(g.base)]
				g.address(g.base[s], s)
			}
		}
	}
	if g.p.c.summed == 0 && g.p.c.rowed == 0 || g.rows {
		return
	}
	n := 1 // of two vectors, the sums do not wait for each other
	if sums := len(g.p.reductions); int(g.p.c.inner)%(2*g.lanes) == 0 && scalars+2*sums <= mostFixed {
		n = 2
	}
	r := vectors - scalars
	for range n {
		c := column{shared: map[int]int{}}
		for range g.p.reductions {
			r--
			c.sums, g.fixed[r] = append(c.sums, r), true
		}
		g.columns = append(g.columns, c)
	}
}

// single reports whether a slot holds one value for all elements.
func (g *generator) single(slot int) bool {
	kind := g.p.slots[slot].kind
	return kind == C.IN_SCALAR || kind == C.IN_CONSTANT
}

// inMemory reports whether a slot is an array, or loaded from one.
func (g *generator) inMemory(slot int) bool {
	return g.p.slots[slot].kind == C.IN_MEMORY || g.halves(slot) || slices.ContainsFunc(g.p.loads, func(l C.loading) bool { return int(l.slot) == slot })
}

// halves reports whether a slot is an array of bfloat16.
func (g *generator) halves(slot int) bool {
	return g.p.slots[slot].kind == C.IN_HALVES || g.p.slots[slot].kind == C.TO_HALVES
}

func reads(c *C.instruction, slot int) bool {
	return slices.Contains(c.src[:Op(c.op).Operands()], C.int32_t(slot))
}

// nextRead returns the first instruction from i on that reads the value that a slot has now, or −1 if the stretch has none.
func (g *generator) nextRead(slot, i int) int {
	for ; i < g.n; i++ {
		c := &g.p.code[i]
		if reads(c, slot) {
			return i
		}
		if int(c.dst) == slot {
			break
		}
	}
	return -1
}

// outlives reports whether the value that the current instruction writes to a slot is read after the stretch.
func (g *generator) outlives(slot int) bool {
	for i := g.now + 1; i < len(g.p.code); i++ {
		c := &g.p.code[i]
		if i >= g.n && reads(c, slot) {
			return true
		}
		if int(c.dst) == slot {
			return false
		}
	}
	return slices.ContainsFunc(g.p.stores, func(s C.storing) bool { return int(s.slot) == slot }) ||
		g.p.c.summed == 0 && slices.ContainsFunc(g.p.reductions, func(r C.reducing) bool { return int(r.slot) == slot })
}

// array returns the current vector of a slot in memory. It may use rax.
func (g *generator) array(slot int) vector {
	base, ok := g.base[slot]
	if !ok {
		base = rax
		g.address(rax, slot)
	}
	kind, bytes := inArray, 4
	if g.halves(slot) {
		kind, bytes = inHalves, 2
	}
	if g.fetches(slot) {
		g.prefetch(prefetcht0, kind, base, ahead)
	}
	if slices.ContainsFunc(g.p.loads, func(l C.loading) bool { return int(l.slot) == slot && l.once == 1 }) {
		kind = inRow
	}
	return vector{kind: kind, n: base, at: bytes * g.lanes * g.column}
}

// fetches reports whether to fetch ahead what is read of a slot: of inputs in memory that are summed, and of those that this stretch is the first to read in a
// program with interpreted stretches.
func (g *generator) fetches(slot int) bool {
	s := g.p.slots[slot]
	if s.kind != C.IN_MEMORY && s.kind != C.IN_HALVES || int(s.index) >= len(g.p.spec.Inputs) {
		return false
	}
	if g.p.c.summed > 0 {
		return g.column == 0
	}
	interrupted := slices.ContainsFunc(g.p.code, func(c C.instruction) bool { return !translatable(Op(c.op)) })
	return interrupted && !slices.ContainsFunc(g.p.code[:g.now], func(c C.instruction) bool { return reads(&c, slot) })
}

// save stores the value of a register. Results that are not computed in place are often not in a cache.
func (g *generator) save(r int) {
	to := g.array(g.slot[r])
	if to.kind == inArray && g.column == 0 && g.p.slots[g.slot[r]].kind == C.IN_MEMORY {
		g.prefetch(prefetchw, inArray, to.n, aheadStored)
	}
	g.write(vmovupsStore, r, 0, to)
}

// take returns a free register: one without a value that is read again, or the one whose value is read last, which is saved if necessary.
func (g *generator) take() int {
	best, last := -1, -1
	for r, s := range g.slot {
		if g.pinned[r] || g.fixed[r] {
			continue
		}
		next := -1
		if s >= 0 {
			next = g.nextRead(s, g.now)
		}
		if next < 0 {
			best = r
			break
		}
		if next > last {
			best, last = r, next
		}
	}
	if g.slot[best] >= 0 && g.unsaved[best] {
		g.save(best)
	}
	g.slot[best], g.unsaved[best], g.pinned[best] = -1, false, true
	return best
}

// load returns a register with the value of a slot.
func (g *generator) load(slot C.int32_t) int {
	s := int(slot)
	if r := slices.Index(g.slot[:], s); r >= 0 {
		g.pinned[r] = true
		return r
	}
	r := g.take()
	switch {
	case g.single(s):
		g.address(rax, s)
		g.write(vbroadcastss, r, 0, vector{kind: inFloat, n: rax})
	case g.halves(s):
		g.write(vpmovzxwd, r, 0, g.array(s))
		g.write(vpslld, 6, r, vector{kind: inVector, n: r}, 16)
	default:
		g.write(vmovups, r, 0, g.array(s))
	}
	g.slot[r] = s
	return r
}

// second returns a slot's value as a second operand: in memory if no other instruction reads it. The next instruction must use it.
func (g *generator) second(slot C.int32_t) vector {
	s := int(slot)
	if slices.Contains(g.slot[:], s) || g.single(s) || g.halves(s) || g.nextRead(s, g.now+1) >= 0 {
		return vector{kind: inVector, n: g.load(slot)}
	}
	return g.array(s)
}

// instruction writes an instruction and stores its result if necessary.
func (g *generator) instruction(c *C.instruction) {
	if g.p.slots[c.dst].kind == C.TO_HALVES {
		g.storeHalves(g.load(c.src[0]), int(c.dst))
		return
	}
	d := g.compute(Op(c.op), c.src)
	dst := int(c.dst)
	if old := slices.Index(g.slot[:], dst); old >= 0 {
		g.slot[old] = -1
	}
	g.slot[d], g.unsaved[d] = dst, true
	if g.p.slots[dst].kind == C.IN_MEMORY || g.outlives(dst) {
		g.save(d)
		g.unsaved[d] = false
	}
}

package kernel

/*
#include "program.h"
*/
import "C"

import (
	"fmt"
	"math"
	"slices"
)

// compiler assigns a program's values to memory: to the memory of inputs and outputs if they can be used in place, otherwise to
// registers of one block each.
type compiler struct {
	p         *Program
	kinds     []kind
	place     map[Value]int   // slot of each value
	scalar    map[int]bool    // slots that hold one value for all elements
	lastUse   map[Value]int   // instruction that reads a value last; len(Code) for the end of a block
	rounded   map[Value]Value // operands of roundings that only outputs of type BFloat16 use, which round instead, by result
	free      []int           // slots of registers available for reuse
	registers int
	rooms     int   // of the registers: those for the part of an output in bfloat16 that is interpreted
	periods   []int // lengths of which the block length should be a multiple
}

func newCompiler(p *Program, kinds []kind) *compiler {
	return &compiler{p: p, kinds: kinds, place: map[Value]int{}, scalar: map[int]bool{}, lastUse: map[Value]int{}, rounded: map[Value]Value{}}
}

func (c *compiler) compile() error {
	c.findRounded()
	c.findLastUses()
	for i := range c.p.spec.Inputs {
		if err := c.input(i); err != nil {
			return err
		}
	}
	for i, x := range c.p.spec.Constants {
		at := c.slot(C.slot{kind: C.IN_CONSTANT, at: C.int64_t(math.Float32bits(x))})
		c.place[ConstantValue(i)], c.scalar[at] = at, true
	}
	for i := range c.p.spec.Code {
		if _, skip := c.rounded[c.result(i)]; !skip {
			c.instruction(i)
		}
	}
	c.outputs()
	c.reductions()
	return c.finish()
}

// result returns the value of an instruction.
func (c *compiler) result(i int) Value { return Value(len(c.p.spec.Inputs) + i) }

// findRounded finds the roundings whose results are only stored as bfloat16.
func (c *compiler) findRounded() {
	s := &c.p.spec
	for i, in := range s.Code {
		if in.Op == RoundBF16 {
			c.rounded[c.result(i)] = in.Args[0]
		}
	}
	for _, in := range s.Code {
		for _, v := range in.Args[:in.Op.Operands()] {
			delete(c.rounded, v)
		}
	}
	for _, o := range s.Outputs {
		if o.Type != BFloat16 {
			delete(c.rounded, o.Value)
		}
	}
	for _, r := range s.Reductions {
		delete(c.rounded, r.Value)
	}
}

func (c *compiler) findLastUses() {
	s := &c.p.spec
	for i, in := range s.Code {
		if _, skip := c.rounded[c.result(i)]; skip {
			continue
		}
		for _, v := range in.Args[:in.Op.Operands()] {
			c.lastUse[v] = i
		}
	}
	for _, o := range s.Outputs {
		v, _ := c.stored(o)
		c.lastUse[v] = len(s.Code)
	}
	for _, r := range s.Reductions {
		c.lastUse[r.Value] = len(s.Code)
	}
}

// stored returns the value that is stored for an output, and how.
func (c *compiler) stored(o Output) (Value, Type) {
	if x, ok := c.rounded[o.Value]; ok {
		return x, C.TYPE_ROUNDED
	}
	return o.Value, o.Type
}

func (c *compiler) slot(s C.slot) int {
	c.p.slots = append(c.p.slots, s)
	return len(c.p.slots) - 1
}

// register returns a slot in the scratch: a free one or a new one. Its offset counts registers until finish.
func (c *compiler) register() int {
	if n := len(c.free); n > 0 {
		r := c.free[n-1]
		c.free = c.free[:n-1]
		return r
	}
	c.registers++
	return c.slot(C.slot{kind: C.IN_REGISTER, at: C.int64_t(c.registers - 1)})
}

// input places an input: dense floats and single floats are read in place, anything else is loaded into its own register,
// where it may stay from block to block.
func (c *compiler) input(i int) error {
	x := c.p.spec.Inputs[i]
	n, stride := mergeAxes(c.p.spec.Dims, x.Strides)
	v := Value(i)
	switch {
	case x.Type == Float32 && len(n) == 1 && stride[0] == 1:
		c.place[v] = c.slot(C.slot{kind: C.IN_MEMORY, index: C.int64_t(i)})
		return nil
	case x.Type == Float32 && len(n) == 1 && stride[0] == 0:
		c.place[v] = c.slot(C.slot{kind: C.IN_SCALAR, index: C.int64_t(i)})
		c.scalar[c.place[v]] = true
		return nil
	case x.Type == BFloat16 && len(n) == 1 && stride[0] == 1 && c.p.readsHalves() && !c.p.spec.gives(v):
		c.registers++
		c.place[v] = c.slot(C.slot{kind: C.IN_HALVES, index: C.int64_t(i), at: C.int64_t(c.registers - 1)})
		return nil
	case len(n) > loadAxes:
		return fmt.Errorf("program: input %d has %d axes that cannot be merged; at most %d are supported", i, len(n), loadAxes)
	}
	if len(n) > 1 && stride[1] == 0 {
		c.periods = append(c.periods, n[0])
	}
	c.place[v] = c.load(i, x.Type, n, stride)
	return nil
}

// gives reports whether a value is an output, or one that is reduced.
func (s *ProgramSpec) gives(v Value) bool {
	return slices.ContainsFunc(s.Outputs, func(o Output) bool { return o.Value == v }) ||
		slices.ContainsFunc(s.Reductions, func(r Reduction) bool { return r.Value == v })
}

func (c *compiler) load(pointer int, t Type, n, stride []int) int {
	c.registers++
	at := c.slot(C.slot{kind: C.IN_REGISTER, at: C.int64_t(c.registers - 1)})
	l := C.loading{slot: C.int64_t(at), pointer: C.int64_t(pointer), _type: C.int64_t(t), axes: C.int64_t(len(n))}
	for a := range n {
		l.n[a], l.stride[a] = C.int64_t(n[a]), C.int64_t(stride[a])
	}
	c.p.loads = append(c.p.loads, l)
	return at
}

// mergeAxes lists the axes of a shape, innermost first, without those of size 1 and with neighbors merged if the
// strides allow it. There is at least one axis.
func mergeAxes(dims, strides []int) (n, stride []int) {
	if strides == nil {
		return []int{product64(dims)}, []int{1}
	}
	for a := len(dims) - 1; a >= 0; a-- {
		last := len(n) - 1
		switch {
		case dims[a] == 1:
		case last >= 0 && strides[a] == n[last]*stride[last]:
			n[last] *= dims[a]
		default:
			n, stride = append(n, dims[a]), append(stride, strides[a])
		}
	}
	if len(n) == 0 {
		return []int{1}, []int{1}
	}
	return n, stride
}

// instruction places the result of an instruction and writes its operation.
func (c *compiler) instruction(i int) {
	in := c.p.spec.Code[i]
	code := C.instruction{op: C.int32_t(in.Op)}
	args := in.Args[:in.Op.Operands()]
	for a, v := range args {
		at := c.place[v]
		code.src[a] = C.int32_t(at)
		if c.scalar[at] {
			code.scalar |= 1 << a
		}
	}
	for a, v := range args {
		if c.lastUse[v] == i && !slices.Contains(args[:a], v) {
			c.release(v)
		}
	}
	result := c.result(i)
	at, direct := c.direct(result)
	if !direct {
		at = c.register()
	}
	c.place[result] = at
	code.dst = C.int32_t(at)
	c.p.code = append(c.p.code, code)
	c.p.cost += in.Op.cost()
	if direct {
		c.findShares(i, result)
	}
	if _, used := c.lastUse[result]; !used {
		c.release(result)
	}
}

// release frees the register of a computed value.
func (c *compiler) release(v Value) {
	if at, ok := c.place[v]; ok && int(v) >= len(c.p.spec.Inputs) && c.p.slots[at].kind == C.IN_REGISTER {
		c.free = append(c.free, at)
	}
}

// direct returns the slot of the first output that holds a float value, which is then computed in place.
func (c *compiler) direct(v Value) (slot int, ok bool) {
	for i, o := range c.p.spec.Outputs {
		if o.Value == v && o.Type == Float32 {
			return c.slot(C.slot{kind: C.IN_MEMORY, index: C.int64_t(len(c.p.spec.Inputs) + i)}), true
		}
	}
	return 0, false
}

// findShares records which inputs' memory the outputs of an instruction's result may use.
func (c *compiler) findShares(i int, result Value) {
	for o, out := range c.p.spec.Outputs {
		if out.Value != result || out.Type != Float32 || c.firstOutput(result) != o {
			continue
		}
		for in := range c.p.spec.Inputs {
			if c.p.slots[c.place[Value(in)]].kind == C.IN_MEMORY && c.lastUse[Value(in)] <= i {
				c.p.share[[2]int{o, in}] = true
			}
		}
	}
}

func (c *compiler) firstOutput(v Value) int {
	return slices.IndexFunc(c.p.spec.Outputs, func(o Output) bool { return o.Value == v && o.Type == Float32 })
}

// outputs writes the outputs that are not computed in place: further copies, inputs, constants, masks.
func (c *compiler) outputs() {
	for i, o := range c.p.spec.Outputs {
		pointer := C.int64_t(len(c.p.spec.Inputs) + i)
		value, kind := c.stored(o)
		from := c.place[value]
		if kind == C.TYPE_ROUNDED && c.p.readsHalves() {
			c.registers, c.rooms = c.registers+1, c.rooms+1
			c.emit(RoundBF16, from, c.slot(C.slot{kind: C.TO_HALVES, index: pointer, at: C.int64_t(c.registers - 1)}))
			continue
		}
		if kind != Float32 {
			c.p.stores = append(c.p.stores, C.storing{slot: C.int64_t(c.dense(from)), pointer: pointer, _type: C.int64_t(kind)})
			continue
		}
		if c.p.slots[from].kind == C.IN_MEMORY && c.p.slots[from].index == pointer {
			continue
		}
		c.emit(Copy, from, c.slot(C.slot{kind: C.IN_MEMORY, index: pointer}))
	}
}

// emit writes an operation on one slot.
func (c *compiler) emit(op Op, from, to int) {
	code := C.instruction{op: C.int32_t(op), dst: C.int32_t(to)}
	code.src[0] = C.int32_t(from)
	if c.scalar[from] {
		code.scalar = 1
	}
	c.p.code = append(c.p.code, code)
}

// dense returns a slot with a value for each element.
func (c *compiler) dense(at int) int {
	if !c.scalar[at] {
		return at
	}
	to := c.register()
	c.emit(Copy, at, to)
	return to
}

func (c *compiler) reductions() {
	first := len(c.p.spec.Inputs) + len(c.p.spec.Outputs)
	for i, r := range c.p.spec.Reductions {
		at := c.dense(c.place[r.Value])
		c.p.reductions = append(c.p.reductions, C.reducing{slot: C.int64_t(at), kind: C.int64_t(r.Kind), pointer: C.int64_t(first + i)})
	}
}

// finish chooses the block length and converts register numbers to offsets.
func (c *compiler) finish() error {
	p := c.p
	if len(p.slots) > maxSlots {
		return fmt.Errorf("program: %d values are needed at the same time; at most %d are supported", len(p.slots), maxSlots)
	}
	p.c.block = C.int64_t(c.block())
	for i := range p.slots {
		switch p.slots[i].kind {
		case C.IN_REGISTER, C.IN_HALVES, C.TO_HALVES:
			p.slots[i].at *= p.c.block
		}
	}
	p.c.slots, p.c.codes, p.c.loads = C.int64_t(len(p.slots)), C.int64_t(len(p.code)), C.int64_t(len(p.loads))
	p.c.stores, p.c.reductions = C.int64_t(len(p.stores)), C.int64_t(len(p.reductions))
	p.c.room = C.int64_t(roundUp(c.registers*int(p.c.block), 16))
	p.cost += len(p.spec.Inputs) + len(p.spec.Outputs) + len(p.reductions)
	return nil
}

// block returns the number of elements computed at a time: a multiple of the rows that reductions sum, if possible of those of a whole result, so that all
// results are summed in the same order, and if possible of a cache line, so that no vector crosses two, and of the periods with which inputs repeat, so that
// they stay loaded.
func (c *compiler) block() int {
	arrays := len(c.p.spec.Inputs) + len(c.p.spec.Outputs)
	most := min(max(cacheFloats/(c.registers-c.rooms+arrays), leastBlock), mostBlock)
	unit := 1
	switch inner, _ := c.p.sharedRows(); {
	case c.p.sumsRows():
		unit, most = int(c.p.c.inner), min(summedBlock, int(c.p.c.r*c.p.c.inner))
	case len(c.p.reductions) > 0:
		if unit = int(c.p.c.inner); int(c.p.c.r)*unit <= most {
			unit *= int(c.p.c.r)
		}
	case inner > 0: // values that rows do not share are loaded into the L1 cache, if there are any
		if unit, most = inner, mostBlock; !slices.ContainsFunc(c.p.loads, func(l C.loading) bool { return l.axes < 2 || l.stride[1] != 0 }) {
			most = summedBlock
		}
	}
	for _, n := range append([]int{16}, c.periods...) {
		if both := unit / gcd(unit, n) * n; both <= most {
			unit = both
		}
	}
	return max(most/unit, 1) * unit
}

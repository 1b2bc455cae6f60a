package kernel

/*
#cgo LDFLAGS: -lm
#cgo noescape run_program
#cgo noescape join_parts
#cgo nocallback run_program
#cgo nocallback join_parts
#include "program.h"
*/
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"
)

// Type is the type of an array that a program reads or writes.
type Type int

// The types. Integers become floats when they are read; booleans, of one byte each, become masks. BFloat16 is the
// upper half of a float.
const (
	Float32  Type = C.TYPE_FLOAT
	Uint8    Type = C.TYPE_UINT8
	Int32    Type = C.TYPE_INT32
	Bool     Type = C.TYPE_BOOL
	BFloat16 Type = C.TYPE_BFLOAT16
)

func (t Type) size() int {
	switch t {
	case Float32, Int32:
		return 4
	case BFloat16:
		return 2
	}
	return 1
}

func (t Type) kind() kind {
	if t == Bool {
		return mask
	}
	return float
}

// Value identifies a value of a program: inputs first, from 0 on, then the result of each instruction in order. Constants have
// negative values: constant i is ConstantValue(i).
type Value int

// ConstantValue returns the Value of constant i.
func ConstantValue(i int) Value { return Value(-1 - i) }

// Input is an array that a program reads: the element for index (i, j, …) of the program's shape is at
// i·Strides[0] + j·Strides[1] + …, in elements. A stride of 0 broadcasts. Nil strides are those of the dense shape.
type Input struct {
	Type    Type
	Strides []int
}

// Instruction computes one value from one to three others.
type Instruction struct {
	Op   Op
	Args [3]Value
}

// Output is a dense array of the program's shape that holds a value: Float32, Bool for a mask, or BFloat16 for the upper 16 bits of a float.
type Output struct {
	Value Value
	Type  Type
}

// Reduction is the sum, maximum or minimum of a value over the reduced axes. Sums are computed in blocks
// whose results are added in double precision. The result is NaN if any element is NaN.
type Reduction struct {
	Value Value
	Kind  ReductionKind
}

// ReductionKind is the operation of a reduction.
type ReductionKind int

// The reductions.
const (
	Sum     ReductionKind = C.REDUCE_SUM
	Largest ReductionKind = C.REDUCE_MAX
	Least   ReductionKind = C.REDUCE_MIN
)

// ProgramSpec is a list of element-wise operations over the elements of one shape. Any number of them costs about one
// pass over memory, since they are computed block by block in the L1 cache.
type ProgramSpec struct {
	Dims       []int
	Constants  []float32
	Inputs     []Input
	Code       []Instruction
	Outputs    []Output
	Reductions []Reduction
	ReduceAxes [2]int // reductions run over the axes [0] to [1], exclusive; the result has the other axes
}

// Program is a compiled ProgramSpec. Several goroutines may run it concurrently.
type Program struct {
	spec       ProgramSpec
	c          C.program
	slots      []C.slot
	code       []C.instruction
	stretches  []C.stretch
	loads      []C.loading
	stores     []C.storing
	reductions []C.reducing
	outer      int // of the space of reductions, [outer, r, inner]
	cost       int // cost of an element, in additions
	share      map[[2]int]bool
}

const (
	maxSlots    = C.MAX_SLOTS
	maxPointers = 128
	loadAxes    = C.LOAD_AXES
	cacheFloats = 8192 // maximum number of floats of a block of all registers and arrays: most of an L1 cache
	leastBlock  = 256
	mostBlock   = 2048
	summedBlock = 8192 // elements of a block whose values stay in vector registers
	// MaxInner is the maximum product of the axes after the reduced ones in a program with reductions.
	MaxInner = 8192
)

// NewProgram compiles a program, or returns an error if the spec is invalid or exceeds a limit.
func NewProgram(spec ProgramSpec) (*Program, error) {
	kinds, err := spec.kinds()
	if err != nil {
		return nil, err
	}
	if err := spec.checkResults(kinds); err != nil {
		return nil, err
	}
	p := &Program{spec: spec, outer: 1, share: map[[2]int]bool{}}
	p.c.size, p.c.inner, p.c.r = C.int64_t(product64(spec.Dims)), 1, 1
	if len(spec.Reductions) > 0 {
		if err := p.planReductions(); err != nil {
			return nil, err
		}
	}
	if err := newCompiler(p, kinds).compile(); err != nil {
		return nil, err
	}
	p.stretches = translate(p)
	p.c.stretches = C.int64_t(len(p.stretches))
	return p, nil
}

func product64(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// kinds returns the kinds of all inputs and instruction results.
func (s *ProgramSpec) kinds() ([]kind, error) {
	var kinds []kind
	for i, in := range s.Inputs {
		if in.Type < Float32 || in.Type > BFloat16 {
			return nil, fmt.Errorf("program: input %d has unknown type %d", i, in.Type)
		}
		if in.Strides != nil && len(in.Strides) != len(s.Dims) {
			return nil, fmt.Errorf("program: input %d has %d strides for %d axes", i, len(in.Strides), len(s.Dims))
		}
		kinds = append(kinds, in.Type.kind())
	}
	for i, c := range s.Code {
		n := c.Op.Operands()
		if n == 0 {
			return nil, fmt.Errorf("program: instruction %d has unknown operation %d", i, c.Op)
		}
		var operands []kind
		for a, v := range c.Args[:n] {
			k, err := s.kindOf(v, kinds)
			if err != nil {
				return nil, fmt.Errorf("program: instruction %d, operand %d: %w", i, a, err)
			}
			if want := c.Op.takes(a); want != either && want != k {
				return nil, fmt.Errorf("program: instruction %d, operand %d: a mask instead of a float, or the reverse", i, a)
			}
			operands = append(operands, k)
		}
		if c.Op == Select && operands[1] != operands[2] {
			return nil, fmt.Errorf("program: instruction %d selects between a mask and a float", i)
		}
		kinds = append(kinds, c.Op.gives(operands))
	}
	return kinds, nil
}

func (s *ProgramSpec) kindOf(v Value, kinds []kind) (kind, error) {
	if v < 0 && int(-1-v) < len(s.Constants) {
		return float, nil
	}
	if v < 0 || int(v) >= len(kinds) {
		return 0, fmt.Errorf("value %d is not defined there", v)
	}
	return kinds[v], nil
}

func (s *ProgramSpec) checkResults(kinds []kind) error {
	for _, d := range s.Dims {
		if d < 0 {
			return fmt.Errorf("program over the invalid shape %v", s.Dims)
		}
	}
	for i, o := range s.Outputs {
		k, err := s.kindOf(o.Value, kinds)
		if err != nil {
			return fmt.Errorf("program: output %d: %w", i, err)
		}
		if o.Type != Float32 && o.Type != Bool && o.Type != BFloat16 || k != o.Type.kind() {
			return fmt.Errorf("program: output %d: its type and its value do not match", i)
		}
	}
	for i, r := range s.Reductions {
		k, err := s.kindOf(r.Value, kinds)
		if err != nil || k != float || r.Kind < Sum || r.Kind > Least {
			return fmt.Errorf("program: reduction %d is not the sum, largest or least of a float: %v", i, err)
		}
	}
	if n := len(s.Inputs) + len(s.Outputs) + len(s.Reductions); n > maxPointers {
		return fmt.Errorf("program: %d arrays; at most %d are supported", n, maxPointers)
	}
	return nil
}

// planReductions computes the space [outer, r, inner].
func (p *Program) planReductions() error {
	lo, hi, dims := p.spec.ReduceAxes[0], p.spec.ReduceAxes[1], p.spec.Dims
	if lo < 0 || hi > len(dims) || lo > hi {
		return fmt.Errorf("program: reduction over axes %d to %d of %d", lo, hi, len(dims))
	}
	p.outer = product64(dims[:lo])
	p.c.r, p.c.inner = C.int64_t(product64(dims[lo:hi])), C.int64_t(product64(dims[hi:]))
	if p.c.inner > MaxInner {
		return fmt.Errorf("program: reduction with %d elements after the reduced axes; at most %d are supported", p.c.inner, MaxInner)
	}
	return nil
}

// Size returns the number of elements of the program's shape.
func (p *Program) Size() int { return int(p.c.size) }

// InPlace reports whether an output may use the memory of an input: if the input is dense, has the output's type, and is
// read for the last time no later than the output is written.
func (p *Program) InPlace(output, input int) bool { return p.share[[2]int{output, input}] }

// Run computes the program. in has the inputs' memory, out that of the outputs followed by the reductions' results,
// which are float32. It panics if memory is too small.
func (p *Program) Run(pool *Pool, in, out [][]byte) {
	p.check(in, out)
	if p.c.size == 0 {
		p.runEmpty(out)
		return
	}
	w := programTasks.Get().(*programTask)
	defer w.end()
	w.program, w.pool, w.splits = p, pool, 0
	w.point(in, out)
	if len(p.reductions) > 0 {
		w.runReductions(out)
		return
	}
	blocks := (int(p.c.size) + int(p.c.block) - 1) / int(p.c.block)
	pool.run(blocks, max(1, 1<<15/(int(p.c.block)*p.cost)), w)
}

func (p *Program) check(in, out [][]byte) {
	s := &p.spec
	if len(in) != len(s.Inputs) || len(out) != len(s.Outputs)+len(s.Reductions) {
		panic(fmt.Sprintf("program of %d inputs, %d outputs and %d reductions runs on %d and %d arrays",
			len(s.Inputs), len(s.Outputs), len(s.Reductions), len(in), len(out)))
	}
	need := func(what string, i, have, elements, width int) {
		if have < elements*width {
			panic(fmt.Sprintf("program: %s %d holds %d bytes, %d are read or written", what, i, have, elements*width))
		}
	}
	for i, x := range s.Inputs {
		need("input", i, len(in[i]), x.reach(s.Dims), x.Type.size())
	}
	for i, o := range s.Outputs {
		need("output", i, len(out[i]), int(p.c.size), o.Type.size())
	}
	for i := range s.Reductions {
		need("reduction", i, len(out[len(s.Outputs)+i]), p.outer*int(p.c.inner), 4)
	}
}

// reach returns the number of elements that an input's strides span.
func (x Input) reach(dims []int) int {
	if product64(dims) == 0 {
		return 0
	}
	if x.Strides == nil {
		return product64(dims)
	}
	n := 1
	for a, d := range dims {
		n += (d - 1) * x.Strides[a]
	}
	return n
}

// runEmpty writes the results of reductions over no elements.
func (p *Program) runEmpty(out [][]byte) {
	for i, r := range p.spec.Reductions {
		to := Floats(out[len(p.spec.Outputs)+i])[:p.outer*int(p.c.inner)]
		for j := range to {
			to[j] = r.Kind.neutral()
		}
	}
}

func (k ReductionKind) neutral() float32 {
	switch k {
	case Largest:
		return float32(math.Inf(-1))
	case Least:
		return float32(math.Inf(1))
	}
	return 0
}

// Floats returns memory as floats.
func Floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// Bytes returns floats as memory.
func Bytes(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*4)
}

// programTask is a run of a program on a pool.
type programTask struct {
	program  *Program
	pool     *Pool
	pointers [maxPointers]C.uintptr_t
	pins     [maxPointers/pinnerHolds + 1]runtime.Pinner
	pinned   int
	splits   int // number of parts in which the rows of each outer index are reduced
}

// pinnerHolds is the number of pointers that a Pinner holds without allocating.
const pinnerHolds = 5

var programTasks = sync.Pool{New: func() any { return new(programTask) }}

func (w *programTask) pin(at unsafe.Pointer) C.uintptr_t {
	w.pins[w.pinned/pinnerHolds].Pin(at)
	w.pinned++
	return C.uintptr_t(uintptr(at))
}

func (w *programTask) end() {
	for i := 0; i*pinnerHolds < w.pinned; i++ {
		w.pins[i].Unpin()
	}
	w.pinned, w.program, w.pool = 0, nil, nil
	programTasks.Put(w)
}

// point pins the arrays and writes their addresses.
func (w *programTask) point(in, out [][]byte) {
	n := 0
	for _, list := range [2][][]byte{in, out} {
		for _, b := range list {
			w.pointers[n] = 0
			if at := unsafe.SliceData(b); at != nil {
				w.pointers[n] = w.pin(unsafe.Pointer(at))
			}
			n++
		}
	}
}

func (w *programTask) do(lo, hi int) {
	p := w.program
	if w.splits == 0 {
		w.call(0, lo*int(p.c.block), min(hi*int(p.c.block), int(p.c.size)))
		return
	}
	r, inner := int(p.c.r), int(p.c.inner)
	if w.splits == 1 {
		w.call(lo, lo*r*inner, hi*r*inner)
		return
	}
	for i := lo; i < hi; i++ {
		o, s := i/w.splits, i%w.splits
		w.call(i, (o*r+r*s/w.splits)*inner, (o*r+r*(s+1)/w.splits)*inner)
	}
}

// call computes elements [lo, hi); first is the index of their first reduction result.
func (w *programTask) call(first, lo, hi int) {
	p := w.program
	room := w.pool.scratch.get(int(p.c.room) + len(p.reductions)*int(2*p.c.inner+p.c.summed)) // a double for each result, and sums
	C.run_program(&p.c, unsafe.SliceData(p.slots), unsafe.SliceData(p.code), unsafe.SliceData(p.stretches), unsafe.SliceData(p.loads),
		unsafe.SliceData(p.stores), unsafe.SliceData(p.reductions), &w.pointers[0], floats(room.data), C.int64_t(first), C.int64_t(lo), C.int64_t(hi))
	w.pool.scratch.put(room)
}

// splitSize is the minimum number of elements in a part of a split reduction.
const splitSize = 1 << 13

// runReductions divides the outer indices among the threads; if they are few, each is split into parts whose results are joined.
func (w *programTask) runReductions(out [][]byte) {
	p := w.program
	r, inner := int(p.c.r), int(p.c.inner)
	w.splits = splits(w.pool, p.outer, r, inner)
	if w.splits == 1 {
		w.pool.run(p.outer, max(1, 1<<15/(r*inner*p.cost)), w)
		return
	}
	n := p.outer * w.splits * inner
	partial := w.pool.scratch.get(n * len(p.reductions))
	base := w.pin(unsafe.Pointer(unsafe.SliceData(partial.data)))
	results := len(p.spec.Inputs) + len(p.spec.Outputs)
	for i := range p.reductions {
		w.pointers[results+i] = base + C.uintptr_t(4*i*n)
	}
	w.pool.runChunks(p.outer*w.splits, p.outer*w.splits, w)
	for i, x := range p.spec.Reductions {
		w.pool.join(x.Kind, Floats(out[len(p.spec.Outputs)+i]), partial.data[i*n:], p.outer, w.splits, inner)
	}
	w.pool.scratch.put(partial)
}

// splits returns the number of parts in which the rows of an outer index are reduced.
func splits(pool *Pool, outer, r, inner int) int {
	if pool.threads == 1 || outer >= 2*pool.threads {
		return 1
	}
	return max(1, min(pool.threads*chunksPerThread/outer, r, r*inner/splitSize))
}

// join reduces [outer, parts, inner] over the parts, in double precision.
func (p *Pool) join(kind ReductionKind, to, from []float32, outer, parts, inner int) {
	t := joinTasks.get()
	*t = joinTask{kind, to, from, parts, inner}
	p.run(outer*inner, max(joinSize/parts, joinWidth), t)
	joinTasks.put(t)
}

const (
	joinSize  = 1 << 12 // the minimum number of elements that a thread joins
	joinWidth = 64      // the minimum number of results
)

// joinTask joins the parts of a reduction.
type joinTask struct {
	kind         ReductionKind
	to, from     []float32
	parts, inner int
}

var joinTasks keep[joinTask]

func (t *joinTask) do(lo, hi int) {
	C.join_parts(C.int64_t(t.kind), floats(t.from), floats(t.to), C.int64_t(t.parts), C.int64_t(t.inner), C.int64_t(lo), C.int64_t(hi))
}

// machineCode is whether programs are translated to machine code where this is supported.
var machineCode = true

func selectProgramSet(set int) int { return int(C.select_program_set(C.int(set))) }

func programSet() int { return int(C.program_set()) }

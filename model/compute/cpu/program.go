//go:build cgo

package cpu

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/gomlx/gomlx/backends"

	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/compute/cpu/move"
)

// program computes a group of element-wise operations of one shape block by block, so that intermediate values stay
// in the L1 cache. It supports every data type.
type program struct {
	size     int // elements of the shape
	block    int // elements computed at a time
	operands []operand
	code     []instruction
	scratch  int       // bytes that a worker needs for registers
	idle     sync.Pool // of *[]byte: scratch
}

// instruction computes one operation on a block.
type instruction struct {
	fn       blockFn
	dst      place
	src      [3]place
	operands int
}

// place is the location of a block: in an operand, in a result, or in a register.
type place struct {
	kind  placeKind
	index int // of the operand or the result
	at    int // of a register: its offset in the scratch
	width int // bytes of an element
}

type placeKind uint8

const (
	inOperand placeKind = iota
	inResult
	inRegister
)

// blockBytes is the approximate size of a block's registers: half of an L1 cache of 48 KiB.
const blockBytes = 24 << 10

// newProgram compiles a group.
func newProgram(g *group) *program {
	p := &program{size: move.Size(g.dims)}
	for _, r := range g.reads {
		p.operands = append(p.operands, newOperand(g.dims, r.strides, r.node.shape.DType.Size()))
	}
	registers := p.encode(g)
	p.block = max(64, min(4096, blockBytes/max(1, registers)/64*64))
	p.lay()
	return p
}

// encoder writes a program's instructions and assigns registers. Until lay, register offsets are in bytes per element of a block.
type encoder struct {
	p      *program
	g      *group
	width  int     // bytes per element that all registers take
	free   []place // registers available for reuse
	places map[*node]place
}

// encode writes the instructions and returns the number of bytes per element that the registers take.
func (p *program) encode(g *group) int {
	e := &encoder{p: p, g: g, places: map[*node]place{}}
	for i := range p.operands {
		if o := &p.operands[i]; !o.direct {
			o.at = e.register(o.width).at
		}
	}
	last := g.lastUses()
	for i, n := range g.nodes {
		p.code = append(p.code, e.instruction(i, n))
		for _, x := range last[i] {
			if r := e.places[x]; r.kind == inRegister {
				e.free = append(e.free, r)
			}
		}
	}
	return e.width
}

// register returns a free register for elements of the given size, or a new one.
func (e *encoder) register(bytes int) place {
	for i, r := range e.free {
		if r.width == bytes {
			e.free = slices.Delete(e.free, i, i+1)
			return r
		}
	}
	e.width += bytes
	return place{kind: inRegister, at: e.width - bytes, width: bytes}
}

// instruction returns the instruction of node i of the group.
func (e *encoder) instruction(i int, n *node) instruction {
	in := instruction{fn: nodeFn(n), operands: len(n.in)}
	for k, x := range e.g.edges[i] {
		if x.node != nil {
			in.src[k] = e.places[x.node]
		} else {
			in.src[k] = place{kind: inOperand, index: x.read}
		}
	}
	if out := slices.Index(e.g.outs, n); out >= 0 {
		in.dst = place{kind: inResult, index: out, width: n.width()}
	} else {
		in.dst = e.register(n.width())
	}
	e.places[n] = in.dst
	return in
}

// lay converts offsets per element to bytes.
func (p *program) lay() {
	fix := func(at, width int) int {
		p.scratch = max(p.scratch, (at+width)*p.block)
		return at * p.block
	}
	for i := range p.code {
		c := &p.code[i]
		if c.dst.kind == inRegister {
			c.dst.at = fix(c.dst.at, c.dst.width)
		}
		for k := range c.src {
			if c.src[k].kind == inRegister {
				c.src[k].at = fix(c.src[k].at, c.src[k].width)
			}
		}
	}
	for i := range p.operands {
		if o := &p.operands[i]; !o.direct {
			o.at = fix(o.at, o.width)
		}
	}
	p.idle.New = func() any { s := newMemory(p.scratch); return &s }
}

// nodeFn returns the loop of an element-wise node, or nil if the node is not element-wise.
func nodeFn(n *node) blockFn {
	switch n.op {
	case backends.OpTypeConvertDType:
		if roundsToBF16(n) {
			return map1(func(x float32) float32 { return roundBF16(x).Float32() })
		}
		return convertFn(n.in[0].shape.DType, n.shape.DType)
	case backends.OpTypeWhere:
		return elementFn(n.op, n.shape.DType)
	}
	if len(n.in) == 0 {
		return nil
	}
	return elementFn(n.op, n.in[0].shape.DType)
}

// run computes the program on all workers.
func (p *program) run(pool *kernel.Pool, out, in [][]byte) {
	blocks := (p.size + p.block - 1) / p.block
	grain := max(1, 16384/p.block/max(1, len(p.code)))
	pool.Run(blocks, grain, func(lo, hi int) {
		scratch := p.idle.Get().(*[]byte)
		p.blocks(*scratch, out, in, lo, hi)
		p.idle.Put(scratch)
	})
}

func (p *program) blocks(scratch []byte, out, in [][]byte, lo, hi int) {
	registers := unsafe.Pointer(unsafe.SliceData(scratch))
	base := make([]unsafe.Pointer, len(p.operands))
	for b := lo; b < hi; b++ {
		start := b * p.block
		n := min(p.block, p.size-start)
		for i := range p.operands {
			o := &p.operands[i]
			switch {
			case o.direct:
				base[i] = unsafe.Pointer(&in[i][start*o.width])
			case b == lo || !o.scalar:
				base[i] = unsafe.Add(registers, o.at)
				o.load(base[i], in[i], start, n, p.block)
			}
		}
		for i := range p.code {
			c := &p.code[i]
			var src [3]unsafe.Pointer
			for k := range c.operands {
				src[k] = c.src[k].find(registers, base, out, start)
			}
			c.fn(c.dst.find(registers, base, out, start), src, n)
		}
	}
}

func (at place) find(registers unsafe.Pointer, base []unsafe.Pointer, out [][]byte, start int) unsafe.Pointer {
	switch at.kind {
	case inOperand:
		return base[at.index]
	case inResult:
		return unsafe.Pointer(&out[at.index][start*at.width])
	}
	return unsafe.Add(registers, at.at)
}

// operand describes how an operand's memory is read in the element order of the program.
type operand struct {
	width  int  // bytes of an element
	direct bool // its elements are in the program's order: no copy
	scalar bool // one element for all
	period int  // the first period elements repeat; 0 if they do not
	axes   []loadAxis
	at     int // offset of its block in the scratch
}

// loadAxis is an axis of the program's shape, innermost first, merged with neighbors where the operand allows it.
type loadAxis struct{ n, stride int }

// maxAxes is the maximum number of axes of an operand after merging.
const maxAxes = 16

func newOperand(dims, strides []int, width int) operand {
	o := operand{width: width}
	for a := len(dims) - 1; a >= 0; a-- {
		d, s := dims[a], strides[a]
		if d == 1 {
			continue
		}
		if k := len(o.axes) - 1; k >= 0 && s == o.axes[k].n*o.axes[k].stride {
			o.axes[k].n *= d
			continue
		}
		o.axes = append(o.axes, loadAxis{d, s})
	}
	if len(o.axes) > maxAxes {
		panic(fmt.Sprintf("an operand of shape %v is broadcast along %d separate axes; at most %d are supported", dims, len(o.axes), maxAxes))
	}
	switch {
	case len(o.axes) == 0 || len(o.axes) == 1 && o.axes[0].stride == 1:
		o.direct = true
	case len(o.axes) == 1 && o.axes[0].stride == 0:
		o.scalar = true
	case len(o.axes) == 2 && o.axes[0].stride == 1 && o.axes[1].stride == 0:
		o.period = o.axes[0].n
	}
	return o
}

// load copies the elements start to start+n, in the program's order, to dst; for a scalar it fills a whole block.
func (o *operand) load(dst unsafe.Pointer, src []byte, start, n, block int) {
	switch {
	case o.scalar:
		d := unsafe.Slice((*byte)(dst), block*o.width)
		repeat(d, copy(d, src[:o.width]))
	case o.period > 0 && o.period <= n:
		o.loadPeriodic(unsafe.Slice((*byte)(dst), n*o.width), src, start)
	case o.width == 1:
		loadStrided[uint8](o.axes, vector[uint8](dst, n), unsafe.Pointer(unsafe.SliceData(src)), start)
	case o.width == 2:
		loadStrided[uint16](o.axes, vector[uint16](dst, n), unsafe.Pointer(unsafe.SliceData(src)), start)
	case o.width == 4:
		loadStrided[uint32](o.axes, vector[uint32](dst, n), unsafe.Pointer(unsafe.SliceData(src)), start)
	case o.width == 16:
		loadStrided[complex128](o.axes, vector[complex128](dst, n), unsafe.Pointer(unsafe.SliceData(src)), start)
	default:
		loadStrided[uint64](o.axes, vector[uint64](dst, n), unsafe.Pointer(unsafe.SliceData(src)), start)
	}
}

// loadPeriodic fills dst with the repeated period, beginning at element start of the program.
func (o *operand) loadPeriodic(dst, src []byte, start int) {
	period := o.period * o.width
	skip := start % o.period * o.width
	n := copy(dst, src[skip:period])
	n += copy(dst[n:], src[:skip])
	repeat(dst, n)
}

// repeat fills dst with copies of its first n bytes.
func repeat(dst []byte, n int) {
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

// loadStrided copies the elements along the axes, in runs of the innermost axis.
func loadStrided[T any](axes []loadAxis, dst []T, src unsafe.Pointer, start int) {
	width := int(unsafe.Sizeof(*new(T)))
	var index [maxAxes]int
	offset := 0
	for a, rest := 0, start; a < len(axes); a++ {
		index[a] = rest % axes[a].n
		rest /= axes[a].n
		offset += index[a] * axes[a].stride
	}
	inner := axes[0]
	for len(dst) > 0 {
		n := min(len(dst), inner.n-index[0])
		at := unsafe.Add(src, offset*width)
		switch inner.stride {
		case 0:
			v := *(*T)(at)
			for i := range dst[:n] {
				dst[i] = v
			}
		case 1:
			copy(dst[:n], unsafe.Slice((*T)(at), n))
		default:
			for i := range dst[:n] {
				dst[i] = *(*T)(unsafe.Add(at, i*inner.stride*width))
			}
		}
		dst = dst[n:]
		offset -= index[0] * inner.stride
		index[0] = 0
		for a := 1; a < len(axes); a++ {
			index[a]++
			offset += axes[a].stride
			if index[a] < axes[a].n {
				break
			}
			offset -= axes[a].n * axes[a].stride
			index[a] = 0
		}
	}
}

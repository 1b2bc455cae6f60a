//go:build cgo && amd64 && (linux || darwin)

package kernel

import (
	"encoding/binary"
	"slices"
)

// assembler writes AVX2 instructions over vectors of eight floats, in the VEX encoding of Intel's manual, volume 2, section 2.3, or AVX-512 instructions over
// vectors of 16 floats, in the EVEX encoding, section 2.7.
type assembler struct {
	lanes     int // floats of a vector
	code      []byte
	constants []uint32 // each is stored in all lanes of a vector after the code
	uses      []use
	aside     []func() // write code that follows the function and is rarely executed
}

// use is a place in the code that holds the distance from its end to a constant.
type use struct{ at, constant, behind int }

// vector is the second operand of an instruction: a register, memory at base + 2 rcx + at, values of two bytes at base + rcx + at, a row at base + 2 r11 + at, one or more
// floats at base + at, sums at rdx + 2 r11 + at, or a constant.
type vector struct {
	kind operandKind
	n    int // register, base register or index of the constant
	at   int // offset
}

type operandKind uint8

const (
	inVector operandKind = iota
	inArray
	inHalves
	inFloat
	inRow
	inSums
	inCode
)

// General registers, numbered as in the instructions.
const (
	rax = 0
	rcx = 1  // offset of the current vector, in bytes of bfloat16
	rdx = 2  // address of the sums, or of those of the current column
	rsi = 6  // the offset's end
	rdi = 7  // addresses of the slots
	r11 = 11 // offset of the current column, in bytes of bfloat16
)

// twice is the scale of an address's index in which offsets of floats are counted.
const twice = 1 << 6

// Opcode maps and prefixes of the VEX encoding.
const (
	map0F   = 1
	map0F38 = 2
	map0F3A = 3
	no66    = 0
	with66  = 1
	withF3  = 2
	withW   = 0x80 // operands of 64 bits
)

// opcode is an instruction: its map, prefix and opcode.
type opcode struct{ table, prefix, op byte }

var (
	vmovups      = opcode{map0F, no66, 0x10} // load
	vmovupsStore = opcode{map0F, no66, 0x11}
	vbroadcastss = opcode{map0F38, with66, 0x18}
	vaddps       = opcode{map0F, no66, 0x58}
	vmulps       = opcode{map0F, no66, 0x59}
	vsubps       = opcode{map0F, no66, 0x5c}
	vminps       = opcode{map0F, no66, 0x5d}
	vdivps       = opcode{map0F, no66, 0x5e}
	vmaxps       = opcode{map0F, no66, 0x5f}
	vsqrtps      = opcode{map0F, no66, 0x51}
	vandps       = opcode{map0F, no66, 0x54}
	vorps        = opcode{map0F, no66, 0x56}
	vxorps       = opcode{map0F, no66, 0x57}
	vcmpps       = opcode{map0F, no66, 0xc2}
	vroundps     = opcode{map0F3A, with66, 0x08}
	vblendvps    = opcode{map0F3A, with66, 0x4a}
	vfmadd231ps  = opcode{map0F38, with66, 0xb8}
	vpaddd       = opcode{map0F, with66, 0xfe}
	vpsrld       = opcode{map0F, with66, 0x72} // by an immediate, with 2 in the field of the register
	vpslld       = opcode{map0F, with66, 0x72} // the same with 6
	vpmovzxwd    = opcode{map0F38, with66, 0x33}

	// Those that only AVX-512 has, or that have a mask register as a result instead of a vector.
	vpmovm2d  = opcode{map0F38, withF3, 0x38}
	vpmovd2m  = opcode{map0F38, withF3, 0x39}
	vblendmps = opcode{map0F38, with66, 0x65}

	// Those that convert to values of two bytes, whose vectors have half the length. The first two are of AVX2 and the others of AVX-512; vpmovdw reads the
	// register that others write.
	vpackusdw  = opcode{map0F38, with66, 0x2b}
	vpermq     = opcode{map0F3A, with66 | withW, 0x00}
	vfpclassps = opcode{map0F3A, with66, 0x66}
	vcvtbf16   = opcode{map0F38, withF3, 0x72}
	vpmovdw    = opcode{map0F38, withF3, 0x33}
)

// Predicates of vcmpps: ordered ones are false and unordered ones true if an operand is NaN. None signals.
const (
	ifEqual        = 0x00
	ifUnordered    = 0x03
	ifNotEqual     = 0x04
	ifOrdered      = 0x07
	ifEqualOrNaN   = 0x08
	ifLess         = 0x11
	ifLessEqual    = 0x12
	ifGreaterEqual = 0x1d
	ifGreater      = 0x1e
)

// Rounding of vroundps, without the exception for inexact results.
const (
	toNearest = 0x08
	toSmaller = 0x09
	toLarger  = 0x0a
)

func (a *assembler) bytes(b ...byte) { a.code = append(a.code, b...) }

func (a *assembler) int32(x int) { a.code = binary.LittleEndian.AppendUint32(a.code, uint32(int32(x))) }

// k1 is the mask register of AVX-512 that instructions use.
const k1 = 1

// write writes op reg, first, second, followed by immediate bytes.
func (a *assembler) write(op opcode, reg, first int, second vector, immediate ...byte) {
	a.encode(op, byte(a.lanes/8), 0, reg, first, second, immediate...)
}

// encode writes an instruction over vectors of 128 bits (0), 256 (1) or 512 (2), with a mask register; 0 stands for none.
func (a *assembler) encode(op opcode, length, mask byte, reg, first int, second vector, immediate ...byte) {
	rxb := byte(0xe0) // the inverted upper bits of reg, of the index and of the base or second register
	if reg&8 != 0 {
		rxb &^= 0x80
	}
	if second.kind != inCode && second.n&8 != 0 {
		rxb &^= 0x20
	}
	if second.kind == inRow || second.kind == inSums || second.kind == inVector && second.n >= 16 {
		rxb &^= 0x40
	}
	if other := byte(^first&15) << 3; a.lanes == 16 {
		a.bytes(0x62, rxb|byte(^reg&16)|op.table, other|1<<2|op.prefix, length<<5|byte(^first&16)>>1|mask, op.op)
	} else {
		a.bytes(0xc4, rxb|op.table, other|length<<2|op.prefix, op.op)
	}
	middle := byte(reg&7) << 3
	indexed := func(index byte) { // with an offset of 4 bytes, which EVEX does not scale
		a.bytes(0x84|middle, index|byte(second.n&7))
		a.int32(second.at)
	}
	switch second.kind {
	case inVector:
		a.bytes(0xc0 | middle | byte(second.n&7))
	case inArray: // [base + 2 rcx + at]
		indexed(twice | rcx<<3)
	case inHalves: // [base + rcx + at]
		indexed(rcx << 3)
	case inFloat: // [base + at]
		a.bytes(0x80 | middle | byte(second.n&7))
		a.int32(second.at)
	case inRow, inSums: // [base + 2 r11 + at]
		indexed(twice | r11&7<<3)
	case inCode: // [rip + distance]
		a.bytes(0x05 | middle)
		a.uses = append(a.uses, use{len(a.code), second.n, 4 + len(immediate)})
		a.int32(0)
	}
	a.bytes(immediate...)
}

// constant returns the operand of a constant in all lanes.
func (a *assembler) constant(bits uint32) vector {
	i := slices.Index(a.constants, bits)
	if i < 0 {
		i = len(a.constants)
		a.constants = append(a.constants, bits)
	}
	return vector{kind: inCode, n: i}
}

// address loads the address of a slot from the table at rdi.
func (a *assembler) address(to, slot int) {
	a.bytes(0x48|byte(to>>3)<<2, 0x8b, 0x87|byte(to&7)<<3) // mov to, [rdi + 8·slot]
	a.int32(8 * slot)
}

// jump writes a jump, which has that code, to a place.
func (a *assembler) jump(to int, code ...byte) {
	a.bytes(code...)
	a.int32(to - (len(a.code) + 4))
}

// ifDenormal makes the code execute other code, which follows the function, instead of what is written up to the call of back, if a value of x is denormal.
func (a *assembler) ifDenormal(x int, other func()) (back func()) {
	a.write(vfpclassps, k1, 0, vector{kind: inVector, n: x}, 0x20)
	a.bytes(0xc5, 0xf8, 0x98, 0xc0|k1<<3|k1) // kortestw k1, k1
	a.jump(0, 0x0f, 0x85)                    // jnz
	from, behind := len(a.code), 0
	a.aside = append(a.aside, func() {
		binary.LittleEndian.PutUint32(a.code[from-4:], uint32(int32(len(a.code)-from)))
		other()
		a.jump(behind, 0xe9) // jmp
	})
	return func() { behind = len(a.code) }
}

// begin starts the loop and returns its first instruction's place.
func (a *assembler) begin() int {
	a.bytes(0x31, 0xc9) // xor ecx, ecx
	return len(a.code)
}

// end closes the loop, whose steps are of so many floats.
func (a *assembler) end(start, floats int) {
	a.bytes(0x48, 0x81, 0xc1) // add rcx, 2·floats
	a.int32(2 * floats)
	a.bytes(0x48, 0x39, 0xf1) // cmp rcx, rsi
	a.jump(start, 0x0f, 0x82) // jb start
}

// Opcodes of instructions that fetch a cache line, to be read or written; both have 1 in the field of the register. Processors without prefetchw ignore it.
const (
	prefetcht0 = 0x18
	prefetchw  = 0x0d
)

// prefetch fetches the cache line at so many bytes after the current vector, of floats or of values of two bytes.
func (a *assembler) prefetch(op byte, kind operandKind, base, at int) {
	scale := byte(twice)
	if kind == inHalves {
		scale = 0
	}
	a.bytes(0x40|byte(base>>3), 0x0f, op, 0x8c, scale|rcx<<3|byte(base&7)) // [base + rcx + at] or [base + 2 rcx + at]
	a.int32(at)
}

// beginColumns starts a loop of n steps over columns, from offset rcx on, and returns its first instruction's place.
func (a *assembler) beginColumns(n int) int {
	a.bytes(0x53) // push rbx
	a.bytes(0xbb) // mov ebx, n
	a.int32(n)
	a.bytes(0x49, 0x89, 0xcb) // mov r11, rcx
	start := len(a.code)
	a.bytes(0x4c, 0x89, 0xd9) // mov rcx, r11
	return start
}

// endColumns closes the loop over columns, whose steps are of so many floats.
func (a *assembler) endColumns(start, floats int) {
	a.bytes(0x49, 0x81, 0xc3) // add r11, 2·floats
	a.int32(2 * floats)
	a.bytes(0x48, 0x81, 0xc2) // add rdx, 4·floats
	a.int32(4 * floats)
	a.bytes(0xff, 0xcb)       // dec ebx
	a.jump(start, 0x0f, 0x85) // jnz start
	a.bytes(0x5b)             // pop rbx
}

// beginRows starts a loop over rows, from offset rcx on, and one over the vectors of a row, and returns its first instruction's place.
func (a *assembler) beginRows() int {
	start := len(a.code)
	a.bytes(0x45, 0x31, 0xdb) // xor r11d, r11d
	return start
}

// endRows closes both loops. Rows have n vectors.
func (a *assembler) endRows(start, n int) {
	a.bytes(0x48, 0x83, 0xc1, byte(2*a.lanes)) // add rcx, 2·lanes
	a.bytes(0x49, 0x83, 0xc3, byte(2*a.lanes)) // add r11, 2·lanes
	a.bytes(0x49, 0x81, 0xfb)                  // cmp r11, 2·lanes·n
	a.int32(2 * a.lanes * n)
	a.jump(start+3, 0x0f, 0x82) // jb start + 3
	a.bytes(0x48, 0x39, 0xf1)   // cmp rcx, rsi
	a.jump(start, 0x0f, 0x82)   // jb start
}

// finish returns from the function, and returns the code followed by its constants.
func (a *assembler) finish() []byte {
	a.bytes(0xc5, 0xf8, 0x77) // vzeroupper
	a.bytes(0xc3)             // ret
	for _, write := range a.aside {
		write()
	}
	for len(a.code)%(4*a.lanes) != 0 { // so that constants do not cross cache lines
		a.bytes(0xcc)
	}
	at := len(a.code)
	for _, c := range a.constants {
		for range a.lanes {
			a.code = binary.LittleEndian.AppendUint32(a.code, c)
		}
	}
	for _, u := range a.uses {
		distance := at + 4*a.lanes*u.constant - (u.at + u.behind)
		binary.LittleEndian.PutUint32(a.code[u.at:], uint32(int32(distance)))
	}
	return a.code
}

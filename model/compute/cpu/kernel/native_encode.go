//go:build cgo && amd64 && (linux || darwin)

package kernel

import (
	"encoding/binary"
	"slices"
)

// assembler writes AVX2 instructions over vectors of eight floats, in the VEX encoding of Intel's manual, volume 2, section 2.3.
type assembler struct {
	code      []byte
	constants []uint32 // each is stored in all lanes of a vector after the code
	uses      []use
}

const lanes = 8 // floats of a vector

// use is a place in the code that holds the distance from its end to a constant.
type use struct{ at, constant, behind int }

// vector is the second operand of an instruction: a register, memory at base + rcx + at, a row at base + r11 + at, one or more floats at base + at, sums at rdx + r11 + at, or a
// constant.
type vector struct {
	kind operandKind
	n    int // register, base register or index of the constant
	at   int // offset; up to 127 bytes for inArray and inRow
}

type operandKind uint8

const (
	inVector operandKind = iota
	inArray
	inFloat
	inRow
	inSums
	inCode
)

// General registers, numbered as in the instructions.
const (
	rax = 0
	rcx = 1  // offset of the current vector in bytes
	rdx = 2  // address of the sums, or of those of the current column
	rsi = 6  // the offset's end
	rdi = 7  // addresses of the slots
	r11 = 11 // offset of the current column in bytes
)

// Opcode maps and prefixes of the VEX encoding.
const (
	map0F   = 1
	map0F38 = 2
	map0F3A = 3
	no66    = 0
	with66  = 1
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
	vpcmpeqd     = opcode{map0F, with66, 0x76}
	vpsrld       = opcode{map0F, with66, 0x72} // by an immediate, with 2 in the field of the register
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

// vex writes op reg, first, second, followed by immediate bytes.
func (a *assembler) vex(op opcode, reg, first int, second vector, immediate ...byte) {
	rxb := byte(0xe0) // the inverted upper bits of reg, of the index and of the base or second register
	if reg >= 8 {
		rxb &^= 0x80
	}
	if second.kind != inCode && second.n >= 8 {
		rxb &^= 0x20
	}
	if second.kind == inRow || second.kind == inSums {
		rxb &^= 0x40
	}
	a.bytes(0xc4, rxb|op.table, byte(^first&15)<<3|1<<2|op.prefix, op.op)
	middle := byte(reg&7) << 3
	switch second.kind {
	case inVector:
		a.bytes(0xc0 | middle | byte(second.n&7))
	case inArray: // [base + rcx + at]
		a.bytes(0x44|middle, rcx<<3|byte(second.n&7), byte(second.at))
	case inFloat: // [base + at]
		a.bytes(0x80 | middle | byte(second.n&7))
		a.int32(second.at)
	case inRow: // [base + r11 + at]
		a.bytes(0x44|middle, r11&7<<3|byte(second.n&7), byte(second.at))
	case inSums: // [rdx + r11 + at]
		a.bytes(0x84|middle, r11&7<<3|rdx)
		a.int32(second.at)
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

// begin starts the loop and returns its first instruction's place.
func (a *assembler) begin() int {
	a.bytes(0x31, 0xc9) // xor ecx, ecx
	return len(a.code)
}

// end closes the loop, whose steps are of so many bytes.
func (a *assembler) end(start, bytes int) {
	a.bytes(0x48, 0x81, 0xc1) // add rcx, bytes
	a.int32(bytes)
	a.bytes(0x48, 0x39, 0xf1) // cmp rcx, rsi
	a.bytes(0x0f, 0x82)       // jb start
	a.int32(start - (len(a.code) + 4))
}

// Opcodes of instructions that fetch a cache line, to be read or written; both have 1 in the field of the register. Processors without prefetchw ignore it.
const (
	prefetcht0 = 0x18
	prefetchw  = 0x0d
)

// prefetch fetches the cache line at so many bytes after the current vector.
func (a *assembler) prefetch(op byte, base, at int) {
	a.bytes(0x40|byte(base>>3), 0x0f, op, 0x8c, rcx<<3|byte(base&7)) // [base + rcx + at]
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

// endColumns closes the loop over columns, whose steps are of so many bytes, up to 127.
func (a *assembler) endColumns(start, bytes int) {
	a.bytes(0x49, 0x83, 0xc3, byte(bytes)) // add r11, bytes
	a.bytes(0x48, 0x83, 0xc2, byte(bytes)) // add rdx, bytes
	a.bytes(0xff, 0xcb)                    // dec ebx
	a.bytes(0x0f, 0x85)                    // jnz start
	a.int32(start - (len(a.code) + 4))
	a.bytes(0x5b) // pop rbx
}

// beginRows starts a loop over rows, from offset rcx on, and one over the vectors of a row, and returns its first instruction's place.
func (a *assembler) beginRows() int {
	start := len(a.code)
	a.bytes(0x45, 0x31, 0xdb) // xor r11d, r11d
	return start
}

// endRows closes both loops. Rows have n vectors.
func (a *assembler) endRows(start, n int) {
	a.bytes(0x48, 0x83, 0xc1, 4*lanes) // add rcx, 32
	a.bytes(0x49, 0x83, 0xc3, 4*lanes) // add r11, 32
	a.bytes(0x49, 0x81, 0xfb)          // cmp r11, 32·n
	a.int32(4 * lanes * n)
	a.bytes(0x0f, 0x82) // jb start + 3
	a.int32(start + 3 - (len(a.code) + 4))
	a.bytes(0x48, 0x39, 0xf1) // cmp rcx, rsi
	a.bytes(0x0f, 0x82)       // jb start
	a.int32(start - (len(a.code) + 4))
}

// finish returns from the function, and returns the code followed by its constants.
func (a *assembler) finish() []byte {
	a.bytes(0xc5, 0xf8, 0x77)        // vzeroupper
	a.bytes(0xc3)                    // ret
	for len(a.code)%(4*lanes) != 0 { // so that constants do not cross cache lines
		a.bytes(0xcc)
	}
	at := len(a.code)
	for _, c := range a.constants {
		for range lanes {
			a.code = binary.LittleEndian.AppendUint32(a.code, c)
		}
	}
	for _, u := range a.uses {
		distance := at + 4*lanes*u.constant - (u.at + u.behind)
		binary.LittleEndian.PutUint32(a.code[u.at:], uint32(int32(distance)))
	}
	return a.code
}

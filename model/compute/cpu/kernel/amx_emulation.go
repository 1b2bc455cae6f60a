//go:build cgo && amx_emulation && linux && amd64

package kernel

/*
#cgo CFLAGS: -DAMX_EMULATION
#include "amx_emulation.h"
*/
import "C"

import "unsafe"

// The binary is built with the tag amx_emulation: on a processor without AMX, its instructions are emulated from now on, thousands of times
// slower than the processor's. A processor that has AMX executes them itself.
var amxIsEmulated = C.amx_emulate() != 0

// amxKind is an instruction of AMX.
type amxKind int32

const (
	amxNone     amxKind = C.AMX_NONE
	ldtilecfg   amxKind = C.LDTILECFG
	sttilecfg   amxKind = C.STTILECFG
	tilerelease amxKind = C.TILERELEASE
	tilezero    amxKind = C.TILEZERO
	tileloadd   amxKind = C.TILELOADD
	tilestored  amxKind = C.TILESTORED
	tdpbf16ps   amxKind = C.TDPBF16PS
)

// amxInstruction is a decoded instruction; tiles it does not have are -1.
type amxInstruction struct {
	kind           amxKind
	length         int
	tile, a, b     int
	memory, stride uint64
}

// decodeAMX decodes code at address rip; its kind is amxNone if it is not an emulated instruction.
func decodeAMX(code []byte, rip uint64, registers [16]uint64) amxInstruction {
	var padded [16]byte
	copy(padded[:], code)
	i := C.amx_decode((*C.uint8_t)(&padded[0]), C.uint64_t(rip), (*C.uint64_t)(&registers[0]))
	return amxInstruction{amxKind(i.kind), int(i.length), int(i.tile), int(i.a), int(i.b), uint64(i.memory), uint64(i.stride)}
}

// executeAMX executes an instruction on this thread and returns why a processor would refuse it, or "".
func executeAMX(i amxInstruction) string {
	c := C.amx_instruction{C.int32_t(i.kind), C.int32_t(i.length), C.int32_t(i.tile), C.int32_t(i.a), C.int32_t(i.b), C.uint64_t(i.memory), C.uint64_t(i.stride)}
	if why := C.amx_execute(&c); why != nil {
		return C.GoString(why)
	}
	return ""
}

// amxCount returns how many instructions of a kind were emulated.
func amxCount(kind amxKind) int { return int(C.amx_count(C.int(kind))) }

// amxTile returns the rows of a tile of this thread, including those that are not configured.
func amxTile(tile int) (rows [16][16]uint32) {
	C.amx_tile_words(C.int(tile), (*C.uint32_t)(unsafe.Pointer(&rows)))
	return rows
}

// The parts of a product on the calling thread, to leave one out, and an instruction that no processor has.
func amxBegin()     { C.amx_begin_only() }
func amxTiles()     { C.amx_tile_only() }
func amxEnd()       { C.amx_end_only() }
func amxUndefined() { C.amx_undefined() }

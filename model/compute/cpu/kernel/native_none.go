//go:build cgo && (!amd64 || !(linux || darwin))

package kernel

/*
#include "program.h"
*/
import "C"

// sumsRows returns false: sums are interpreted.
func (*Program) sumsRows() bool { return false }

// sharedRows returns 0: all values are read every time.
func (*Program) sharedRows() (inner, r int) { return 0, 0 }

// readsHalves returns false: bfloat16 is converted before it is interpreted.
func (*Program) readsHalves() bool { return false }

// translate returns nil: all instructions are interpreted.
func translate(*Program) []C.stretch { return nil }

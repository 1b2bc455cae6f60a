//go:build cgo && (!amd64 || !(linux || darwin))

package kernel

/*
#include "program.h"
*/
import "C"

// sumsRows returns false: sums are interpreted.
func (*Program) sumsRows() bool { return false }

// translate returns nil: all instructions are interpreted.
func translate(*Program) []C.stretch { return nil }

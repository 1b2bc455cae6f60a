//go:build cgo && (!amd64 || !(linux || darwin))

package kernel

/*
#include "program.h"
*/
import "C"

// translate returns nil: all instructions are interpreted.
func translate(*Program) []C.stretch { return nil }

//go:build cgo

// Package needs_a_c_compiler is empty. Without a C compiler Go cannot build it and names it in its one line of complaint,
// where it would otherwise list what is undefined in a dozen packages.
package needs_a_c_compiler

// Package nohome keeps XLA's library quiet where $HOME is not set: it complains on standard error while it is initialised. Packages are
// initialised in the order of their import paths once their imports are, so one that imports syscall alone comes before any that
// imports os.
package nohome

import "syscall"

// missing says that $HOME was not set when the program started.
var missing bool

func init() {
	if _, set := syscall.Getenv("HOME"); !set {
		missing = syscall.Setenv("HOME", "/nonexistent") == nil
	}
}

// Restore takes away the $HOME that init has made up. Importers call it from their own init, after that of XLA.
func Restore() {
	if missing {
		missing = false
		_ = syscall.Unsetenv("HOME")
	}
}

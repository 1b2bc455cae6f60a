// Package nohome prevents XLA's library from printing an error during initialisation if $HOME is not set. Packages are initialised in the
// order of their import paths once their imports are, so a package that imports only syscall is initialised before any that imports os.
package nohome

import "syscall"

// missing reports whether $HOME was not set when the program started.
var missing bool

func init() {
	if _, set := syscall.Getenv("HOME"); !set {
		missing = syscall.Setenv("HOME", "/nonexistent") == nil
	}
}

// Restore unsets the $HOME that init has set. Importers call it from their own init, after that of XLA.
func Restore() {
	if missing {
		missing = false
		_ = syscall.Unsetenv("HOME")
	}
}

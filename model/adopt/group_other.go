//go:build !unix

package adopt

import (
	"io/fs"
	"os/exec"
)

// group does nothing where there are no process groups.
func group(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// private leaves it to the configuration folder's own rights.
func private(fs.FileInfo) error { return nil }

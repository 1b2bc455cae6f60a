//go:build unix

package adopt

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// group gives a command a process group of its own, so that what it starts ends with it, and Ctrl-C reaches us alone.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// private says why a file is not its user's alone.
func private(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return errors.New("belongs to another user; it is not read")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users may write it; it is not read. `chmod go-w` it")
	}
	return nil
}

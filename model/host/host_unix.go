//go:build unix

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Lock takes a file for this open description alone, without waiting; ErrLocked where another holds it. The lock ends with
// Unlock or with the process.
func Lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Share takes a file together with others that share it, without waiting; ErrLocked where another has it alone.
func Share(f *os.File) error { return flock(f, unix.LOCK_SH) }

// Unlock gives up a lock of either kind. A child between fork and exec shares the description, so closing is not enough.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// RenameFolder gives a folder another name, also that of an empty folder; fs.ErrExist where there are files under that name.
func RenameFolder(from, to string) error {
	err := unix.Rename(from, to) // os.Rename refuses an empty folder
	if errors.Is(err, unix.ENOTEMPTY) {
		return fs.ErrExist
	}
	return err
}

// Space is what the file system of a folder has left for this user, and in all, in bytes; known is false where it does not say.
func Space(dir string) (free, all int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}

// Private says why a file is not its user's alone to write.
func Private(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return errors.New("belongs to another user; it is not read")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users may write it; it is not read. `chmod go-w` it")
	}
	return nil
}

// Group gives a command a process group of its own, so that what it starts ends with it, and Ctrl-C reaches us alone.
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup ends a command that Group was told of, and what it has started.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Detach gives a command a session of its own: neither signals to our terminal nor our end reach it.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// Reap says, without waiting, whether a child has ended and how; known is false where somebody else has waited for it.
func Reap(p *os.Process) (status syscall.WaitStatus, ended, known bool) {
	pid, err := syscall.Wait4(p.Pid, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.ECHILD) {
		return status, true, false
	}
	return status, pid == p.Pid, true
}

// CPU is the processor time that all threads of this process have taken.
func CPU() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Peak is the most memory in bytes that this process has held so far.
func Peak() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss * 1024 // Linux and BSD count kilobytes
}

// Resident is the memory in bytes that this process holds; 0 where it is not told: only Linux tells.
func Resident() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

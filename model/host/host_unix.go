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

// Lock locks a file exclusively for this open file description, without waiting; ErrLocked if another description holds a lock. The lock
// ends with Unlock or with the process.
func Lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// Share locks a file together with other shared locks, without waiting; ErrLocked if another description holds an exclusive lock.
func Share(f *os.File) error { return flock(f, unix.LOCK_SH) }

// Unlock releases a lock of either kind. Closing is not enough, because a child between fork and exec shares the description.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// RenameFolder renames a folder, replacing an empty folder of that name; fs.ErrExist if a folder with files has that name.
func RenameFolder(from, to string) error {
	err := unix.Rename(from, to) // os.Rename does not replace an empty folder
	if errors.Is(err, unix.ENOTEMPTY) {
		return fs.ErrExist
	}
	return err
}

// Space is the free space of a folder's file system for this user, and its total size, in bytes; known is false if it cannot be determined.
func Space(dir string) (free, all int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), true
}

// Private returns an error if users other than this one may own or write a file.
func Private(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return errors.New("belongs to another user and is ignored")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("can be written by other users and is ignored; run `chmod go-w` on it")
	}
	return nil
}

// Group starts a command in its own process group, so that its children are killed with it and Ctrl-C only reaches us.
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// KillGroup kills a command started with Group, and its children.
func KillGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Detach starts a command in its own session, unaffected by signals to our terminal and by our exit.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// Reap reports, without waiting, whether a child has exited and its status; known is false if someone else has waited for it.
func Reap(p *os.Process) (status syscall.WaitStatus, ended, known bool) {
	pid, err := syscall.Wait4(p.Pid, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.ECHILD) {
		return status, true, false
	}
	return status, pid == p.Pid, true
}

// CPU is the processor time used by all threads of this process.
func CPU() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Peak is the peak memory of this process in bytes.
func Peak() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss * 1024 // in kilobytes on Linux and BSD
}

// Resident is the current memory of this process in bytes; 0 if unknown, which is the case except on Linux.
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

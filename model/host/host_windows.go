package host

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Lock takes a file for this handle alone, without waiting; ErrLocked where another holds it. The lock ends with Unlock or with
// the process.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Share takes a file together with others that share it, without waiting; ErrLocked where another has it alone.
func Share(f *os.File) error { return lock(f, 0) }

// beyond is one byte that no file reaches: a locked range cannot be read by others, and holders write who they are at the beginning.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: math.MaxInt32} }

func lock(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, beyond())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// Unlock gives up a lock of either kind.
func Unlock(f *os.File) { _ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond()) }

// RenameFolder gives a folder another name, also that of an empty folder; fs.ErrExist where there are files under that name.
func RenameFolder(from, to string) error {
	if err := windows.Rmdir(to); errors.Is(err, windows.ERROR_DIR_NOT_EMPTY) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Space is what the file system of a folder has left for this user, and in all, in bytes; known is false where it does not say.
func Space(dir string) (free, all int64, known bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, false
	}
	var left, size uint64
	if windows.GetDiskFreeSpaceEx(name, &left, &size, nil) != nil {
		return 0, 0, false
	}
	return int64(left), int64(size), true
}

// Private leaves it to the rights of the user's folder.
func Private(fs.FileInfo) error { return nil }

// Group keeps Ctrl-C from a command.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// KillGroup ends a command; what it has started ends with its standard streams.
func KillGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// Detach takes a command off our console: neither its Ctrl-C nor our end reaches it.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS
}

// Reap says, without waiting, whether a child has ended and how; known is false where its status cannot be had.
func Reap(p *os.Process) (status syscall.WaitStatus, ended, known bool) {
	err := p.WithHandle(func(h uintptr) {
		event, err := windows.WaitForSingleObject(windows.Handle(h), 0)
		ended = err == nil && event == windows.WAIT_OBJECT_0
		known = windows.GetExitCodeProcess(windows.Handle(h), &status.ExitCode) == nil
	})
	if err != nil {
		return status, true, false
	}
	return status, ended, known
}

// CPU is the processor time that all threads of this process have taken.
func CPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return span(kernel) + span(user)
}

// span reads a count of 100 ns.
func span(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// memory is PROCESS_MEMORY_COUNTERS of psapi.h.
type memory struct {
	size, faults                                             uint32
	peak, resident, pagedPeak, paged, nonPagedPeak, nonPaged uintptr
	pageFile, pageFilePeak                                   uintptr
}

var memoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

func used() memory {
	m := memory{size: uint32(unsafe.Sizeof(memory{}))}
	if ok, _, _ := memoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&m)), uintptr(m.size)); ok == 0 {
		return memory{}
	}
	return m
}

// Peak is the most memory in bytes that this process has held so far.
func Peak() int64 { return int64(used().peak) }

// Resident is the memory in bytes that this process holds.
func Resident() int64 { return int64(used().resident) }

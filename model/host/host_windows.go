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

// Lock locks a file exclusively for this handle, without waiting; ErrLocked if another handle holds a lock. The lock ends with Unlock or
// with the process.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Share locks a file together with other shared locks, without waiting; ErrLocked if another handle holds an exclusive lock.
func Share(f *os.File) error { return lock(f, 0) }

// beyond is a byte range past the end of any file, because others cannot read a locked range and the holder's text is at the start.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: math.MaxInt32} }

func lock(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, beyond())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// Unlock releases a lock of either kind.
func Unlock(f *os.File) { _ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond()) }

// RenameFolder renames a folder, replacing an empty folder of that name; fs.ErrExist if a folder with files has that name.
func RenameFolder(from, to string) error {
	if err := windows.Rmdir(to); errors.Is(err, windows.ERROR_DIR_NOT_EMPTY) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Space is the free space of a folder's file system for this user, and its total size, in bytes; known is false if it cannot be determined.
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

// Private accepts every file, because the permissions of the user's folder protect it.
func Private(fs.FileInfo) error { return nil }

// Group starts a command in its own process group, which Ctrl-C does not reach.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// KillGroup kills a command; its children exit when its standard streams close.
func KillGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// Detach starts a command without our console, unaffected by its Ctrl-C and by our exit.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS
}

// Reap reports, without waiting, whether a child has exited and its status; known is false if the status is not available.
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

// CPU is the processor time used by all threads of this process.
func CPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return span(kernel) + span(user)
}

// span converts a count of 100 ns.
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

// Peak is the peak memory of this process in bytes.
func Peak() int64 { return int64(used().peak) }

// Resident is the current memory of this process in bytes.
func Resident() int64 { return int64(used().resident) }

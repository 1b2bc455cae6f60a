package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slotscope/model/host"
)

const (
	tempPrefix = "slotscope-tmp-" // of temporary folders
	tempLock   = ".lock"          // file in such a folder that its owner locks
)

// Temp creates a folder for temporary files and returns a function that removes it. If the process is killed, a later CleanTemp removes it.
func Temp() (dir string, remove func(), err error) { return temp("") }

// TempIn is Temp in a given folder, from which it first removes the temporary folders of dead processes.
func TempIn(parent string) (dir string, remove func(), err error) {
	_ = cleanTemp(parent) // folders that cannot be removed only take space
	return temp(parent)
}

func temp(parent string) (dir string, remove func(), err error) {
	for {
		if dir, err = os.MkdirTemp(parent, tempPrefix); err != nil {
			return "", nil, err
		}
		path := filepath.Join(dir, tempLock)
		lock, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			_ = os.RemoveAll(dir)
			return "", nil, err
		}
		locked := host.Lock(lock)
		if _, err := os.Lstat(path); errors.Is(locked, host.ErrLocked) || err != nil { // cleanTemp was faster
			_ = lock.Close()
			continue
		}
		return dir, func() { _ = lock.Close(); _ = os.RemoveAll(dir) }, nil
	}
}

// CleanTemp removes the temporary folders that dead processes of this user left behind.
func CleanTemp() error { return cleanTemp(os.TempDir()) }

func cleanTemp(parent string) error {
	return eachIn(parent, func(root *os.Root, name string, e fs.DirEntry) error {
		if info, err := e.Info(); err == nil && e.IsDir() && strings.HasPrefix(name, tempPrefix) && host.Private(info) == nil {
			return removeAbandonedFolder(root, name, info)
		}
		return nil
	})
}

// removeAbandonedFolder removes a temporary folder whose lock is free. One without a lock may just have been created.
func removeAbandonedFolder(root *os.Root, name string, info fs.FileInfo) error {
	lock, err := root.Open(filepath.Join(name, tempLock))
	if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > time.Hour {
		return root.RemoveAll(name)
	}
	if err != nil {
		return nil // new, gone, or another user's
	}
	defer lock.Close()
	if host.Lock(lock) != nil {
		return nil
	}
	return root.RemoveAll(name)
}

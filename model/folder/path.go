package folder

import (
	"fmt"
	"os"
)

// LockPath locks the file at path; what describes it in the error of a second caller. The error wraps model.ErrConflict if another process
// holds the lock.
func LockPath(path, what string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, bare(err))
	}
	return take(file, what)
}

// HolderOf returns the process that holds the lock at path, if any.
func HolderOf(path string) (Holder, bool) {
	file, err := os.Open(path)
	if err != nil {
		return Holder{}, false
	}
	defer file.Close()
	return holderOf(file)
}

// WriteFile atomically replaces the content of the file name in dir, even if the process is killed meanwhile.
func WriteFile(dir *os.Root, name string, content []byte) error {
	f := Folder{dir: dir.Name(), root: dir}
	return f.replace(name, content)
}

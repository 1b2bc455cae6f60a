package folder

import (
	"fmt"
	"os"
)

// LockPath takes what the file at path stands for; what says it in the sentence for those who come second. model.ErrConflict is in
// the error's chain where another holds it.
func LockPath(path, what string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, bare(err))
	}
	return take(file, what)
}

// HolderOf is the process that holds the lock at path, if one does.
func HolderOf(path string) (Holder, bool) {
	file, err := os.Open(path)
	if err != nil {
		return Holder{}, false
	}
	defer file.Close()
	return holderOf(file)
}

// WriteFile gives the file name in dir new content: all of it or none, whatever is killed meanwhile.
func WriteFile(dir *os.Root, name string, content []byte) error {
	f := Folder{dir: dir.Name(), root: dir}
	return f.replace(name, content)
}

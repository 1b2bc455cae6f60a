// Package whole replaces files so that readers, and whoever comes after a kill or a power cut, find all of the old content or all of
// the new: a temporary file beside it, synced, renamed, and the folder synced.
package whole

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slotscope/model/host"
)

// prefix begins the names of temporary files. Their writers hold a lock on them, which ends with the process, however it ends.
const prefix = ".tmp-"

// former begin the names of temporary files of earlier versions, which held no lock.
var former = []string{".step-", ".optimizer-"}

// Write replaces the file at a path with what write writes.
func Write(path string, write func(*os.File) error) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, name, write)
}

// WriteIn replaces a file directly in a folder.
func WriteIn(root *os.Root, name string, write func(*os.File) error) error {
	w, temp, err := create(root, name)
	if err != nil {
		return err
	}
	if err = write(w); err == nil {
		err = w.Sync()
	}
	if err == nil {
		err = root.Rename(temp, name) // before the lock is let go, so that Clean never finds it
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	err = errors.Join(err, w.Close())
	if d, openErr := root.Open("."); openErr == nil { // file systems that cannot sync a folder do so by themselves
		_ = d.Sync()
		_ = d.Close()
	}
	return err
}

// create makes a temporary file and locks it. One that Clean took for a dead writer's in between is made anew.
func create(root *os.Root, name string) (*os.File, string, error) {
	for {
		temp := prefix + name + "-" + rand.Text()
		w, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, "", err
		}
		locked := host.Lock(w)
		if errors.Is(locked, host.ErrLocked) || !there(root, temp) {
			_ = w.Close()
			continue
		}
		return w, temp, nil // where locks are not supported, Clean removes nothing
	}
}

func there(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// Clean removes from a folder the temporary files of writers that do not live any more.
func Clean(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		var err error
		switch {
		case !e.Type().IsRegular():
		case strings.HasPrefix(e.Name(), prefix):
			err = removeAbandoned(root, name)
		case old(e):
			err = root.Remove(name)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeAbandoned removes a temporary file whose lock nobody holds. It holds the lock itself meanwhile, so that a writer that has just
// made the file, and not locked it yet, sees that it is gone.
func removeAbandoned(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if host.Lock(f) != nil {
		return nil
	}
	return root.Remove(name)
}

// old says whether an entry is a temporary file that an earlier version wrote more than an hour ago.
func old(e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil || time.Since(info.ModTime()) < time.Hour {
		return false
	}
	for _, p := range former {
		if strings.HasPrefix(e.Name(), p) {
			return true
		}
	}
	return false
}

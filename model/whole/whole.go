// Package whole replaces files atomically, so that readers find either the complete old or the complete new content, even after a kill or
// a power failure: it writes a temporary file in the same folder, syncs it, renames it and syncs the folder.
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

// prefix begins the names of temporary files. Their writers hold a lock on them, which is released when the process ends in any way.
const prefix = ".tmp-"

// former lists the prefixes of temporary files of earlier versions, which were not locked.
var former = []string{".step-", ".optimizer-"}

// Write replaces the file at a path with the content that write writes.
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
		return failed(root, name, err)
	}
	if err = write(w); err == nil {
		err = w.Sync()
	}
	if err == nil {
		if err = root.Rename(temp, name); err != nil { // before the lock is released, so that Clean never finds it
			err = failed(root, name, err)
		}
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		err = renamed{err, temp, name}
	}
	if d, openErr := root.Open("."); openErr == nil { // errors are ignored: file systems that cannot sync a folder need no sync
		_ = d.Sync()
		_ = d.Close()
	}
	return err
}

// failed returns an error of the operating system as one on the file to replace.
func failed(root *os.Root, name string, err error) error {
	var on *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &on):
		err = on.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: filepath.Join(root.Name(), name), Err: err}
}

// renamed is an error whose message names the file to replace instead of the temporary file.
type renamed struct {
	error
	temp, name string
}

func (e renamed) Error() string { return strings.ReplaceAll(e.error.Error(), e.temp, e.name) }
func (e renamed) Unwrap() error { return e.error }

// create creates and locks a temporary file. It retries if Clean removed the file before it was locked.
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
		return w, temp, nil // if locks are not supported, Clean removes nothing
	}
}

func there(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// Clean removes temporary files of dead writers from a folder.
func Clean(root *os.Root, dir string) error {
	return each(root, dir, func(path string, e fs.DirEntry) error {
		switch {
		case !e.Type().IsRegular():
		case strings.HasPrefix(e.Name(), prefix):
			return removeAbandoned(root, path)
		case old(e):
			return root.Remove(path)
		}
		return nil
	})
}

// CleanFor removes temporary files of dead writers of the file at a path.
func CleanFor(path string) error {
	return eachIn(filepath.Dir(path), func(root *os.Root, name string, e fs.DirEntry) error {
		if e.Type().IsRegular() && strings.HasPrefix(name, prefix+filepath.Base(path)+"-") {
			return removeAbandoned(root, name)
		}
		return nil
	})
}

// each calls do with the path and entry of each entry of a folder and joins the errors, except those of entries that are gone. A missing
// folder has no entries.
func each(root *os.Root, dir string, do func(path string, e fs.DirEntry) error) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if err := do(filepath.Join(dir, e.Name()), e); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// eachIn is each for a folder by its path.
func eachIn(dir string, do func(root *os.Root, name string, e fs.DirEntry) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return each(root, ".", func(name string, e fs.DirEntry) error { return do(root, name, e) })
}

// removeAbandoned removes a temporary file that is not locked. It holds the lock meanwhile, so that a writer that has just created the
// file, but not locked it yet, notices the removal.
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

// old reports whether a directory entry is a temporary file that an earlier version wrote more than an hour ago.
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

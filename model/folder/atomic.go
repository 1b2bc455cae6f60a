package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tempPrefix  = ".tmp-" // of files on their way to a name
	draftPrefix = ".new-" // of run folders on their way to a name
	trashPrefix = ".old-" // of run folders on their way out
)

// replace gives the file name new content: all of it or none, whatever is killed meanwhile.
func (f *Folder) replace(name string, content []byte) error {
	return f.replaceWith(name, func(w *os.File) error {
		_, err := w.Write(content)
		return err
	})
}

// replaceWith is replace for content that write produces.
func (f *Folder) replaceWith(name string, write func(*os.File) error) error {
	temp := tempPrefix + name + "-" + rand.Text()
	err := f.writeTemp(temp, write)
	if err == nil {
		err = f.root.Rename(temp, name)
	}
	if err != nil {
		f.root.Remove(temp)
		return fmt.Errorf("write %s: %w", f.path(name), bare(err))
	}
	syncDir(f.dir)
	return nil
}

func (f *Folder) writeTemp(temp string, write func(*os.File) error) error {
	w, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = write(w)
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// sweep removes temporary files that a killed process left more than a minute ago.
func (f *Folder) sweep() {
	for _, e := range f.entries(".") {
		info, err := e.Info()
		if strings.HasPrefix(e.Name(), tempPrefix) && err == nil && time.Since(info.ModTime()) > time.Minute {
			f.root.Remove(e.Name())
		}
	}
}

func (f *Folder) entries(sub string) []fs.DirEntry {
	list, _ := fs.ReadDir(f.root.FS(), sub) // a folder that cannot be read lists nothing; using it says why
	return list
}

// syncDir makes a rename in dir last; file systems without directory sync do so by themselves.
func syncDir(dir string) {
	if d, err := os.Open(filepath.Clean(dir)); err == nil {
		d.Sync()
		d.Close()
	}
}

// bare drops the operation and path that os adds, for callers whose own sentence names both.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

// missing says whether err means that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slotscope/model/whole"
)

const (
	draftPrefix = ".new-" // prefix of new run folders before their final rename
	trashPrefix = ".old-" // prefix of run folders being deleted
)

// replace atomically replaces the content of the file name, even if the process is killed meanwhile.
func (f *Folder) replace(name string, content []byte) error {
	return f.replaceWith(name, func(w *os.File) error {
		_, err := w.Write(content)
		return err
	})
}

// replaceWith is replace with content produced by write.
func (f *Folder) replaceWith(name string, write func(*os.File) error) error {
	if err := whole.WriteIn(f.root, name, write); err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), bare(err))
	}
	return nil
}

// sweep removes temporary files left by killed writers.
func (f *Folder) sweep() {
	for _, dir := range []string{".", checkpointDir, sampleDir} {
		_ = whole.Clean(f.root, dir) // files that cannot be removed only take space
	}
}

func (f *Folder) entries(sub string) []fs.DirEntry {
	list, _ := fs.ReadDir(f.root.FS(), sub) // an unreadable folder lists nothing; using it returns the error
	return list
}

// syncDir makes a rename in dir durable; file systems without directory sync do so on their own.
func syncDir(dir string) {
	if d, err := os.Open(filepath.Clean(dir)); err == nil {
		d.Sync()
		d.Close()
	}
}

// bare strips the operation and path that os adds, for callers whose message names both.
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

// missing reports whether err means that a file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

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
	if err := whole.WriteIn(f.root, name, write); err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), bare(err))
	}
	return nil
}

// sweep removes temporary files of writers that were killed.
func (f *Folder) sweep() {
	for _, dir := range []string{".", checkpointDir, sampleDir} {
		_ = whole.Clean(f.root, dir) // what cannot be removed only takes room
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

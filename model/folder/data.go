package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/host"
	"slotscope/model/whole"
)

// Data is a data folder: it contains everything that Slotscope stores, with runs in runs/.
type Data struct {
	dir  string // absolute path
	runs *os.Root
}

// Root opens a data folder and creates it if missing. A read-only folder is not an error.
func Root(dataDir string) (*Data, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	runs := filepath.Join(dir, "runs")
	if err = MakeData(dir); err == nil {
		err = os.MkdirAll(runs, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create or write the data folder: %s: %w", runs, bare(err))
	}
	root, err := os.OpenRoot(runs)
	if err != nil {
		return nil, fmt.Errorf("open data folder %s: %w", runs, bare(err))
	}
	return &Data{dir, root}, nil
}

// MakeData creates a data folder that only its owner can read, unless it exists.
func MakeData(dir string) error {
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Close closes the data folder.
func (d *Data) Close() error { return d.runs.Close() }

// Dir is the data folder's absolute path.
func (d *Data) Dir() string { return d.dir }

// RunDir is the path of the run with the given valid id, whether it exists or not.
func (d *Data) RunDir(id string) string { return filepath.Join(d.dir, "runs", id) }

// Runs lists the names of folders under runs/, oldest id first. Some may not be runs or may have invalid names; Open checks that.
func (d *Data) Runs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "runs"))
	if err != nil {
		return nil, fmt.Errorf("list runs in %s: %w", d.dir, bare(err))
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Open opens a run by its id. The error wraps model.ErrNotFound if there is no such folder.
func (d *Data) Open(id string) (*Folder, error) {
	root, err := d.open(id)
	if err != nil {
		return nil, err
	}
	return opened(d.RunDir(id), root)
}

func (d *Data) open(id string) (*os.Root, error) {
	if !model.ValidID(id) {
		return nil, fmt.Errorf("run %q: an id has 1 to 64 characters from a-z, 0-9, - and _, and starts with a letter or digit: %w", id, model.ErrNotFound)
	}
	root, err := d.runs.OpenRoot(id)
	if missing(err) {
		return nil, fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound)
	}
	if info, linkErr := d.runs.Lstat(id); err != nil && linkErr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, Damaged(fmt.Sprintf("%s is a link that leads out of the data folder and is ignored; remove the link or replace it with the folder", d.RunDir(id)))
	}
	if err != nil {
		return nil, fmt.Errorf("open run folder %s: %w", d.RunDir(id), bare(err))
	}
	return root, nil
}

// Create creates the folder of a new run with an initial status.
func (d *Data) Create(cfg model.Config, name string, status model.Status) (*Folder, error) {
	return d.CreateAs(model.NewID(time.Now()), cfg, name, status)
}

// CreateAs is Create with an id chosen by the caller, which must be valid and free.
func (d *Data) CreateAs(id string, cfg model.Config, name string, status model.Status) (*Folder, error) {
	if !model.ValidID(id) {
		return nil, fmt.Errorf("%q is not a valid run id", id)
	}
	return create(d.RunDir(id), cfg, name, &status)
}

// Remove permanently deletes a run's folder. The error wraps model.ErrConflict while a process uses it.
func (d *Data) Remove(id string) error {
	root, err := d.open(id)
	if err != nil {
		return err
	}
	defer root.Close()
	f := &Folder{dir: d.RunDir(id), root: root} // its records may be damaged, which must not prevent deletion
	file, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(lockFile), bare(err))
	}
	lock, err := flock(file, "run folder "+f.dir) // writes nothing, because deletion must work on a full disk
	if err != nil {
		return err
	}
	defer lock.Unlock()
	trash := trashPrefix + id
	d.runs.RemoveAll(trash)
	if err := d.runs.Rename(id, trash); err != nil { // disappears atomically, even if the process is killed during deletion
		return fmt.Errorf("delete run folder %s: %w", d.RunDir(id), bare(err))
	}
	if err := d.runs.RemoveAll(trash); err != nil {
		return fmt.Errorf("delete run folder %s: %w", d.RunDir(id), bare(err))
	}
	return nil
}

// others are the folders beside runs/ whose files package whole replaces; * stands for any name.
var others = []string{".", "cache/play", "datasets/*", "probes", "sweeps/*"}

// Sweep removes what killed processes left behind: temporary files, partly deleted folders, and incomplete folders older than an hour.
func (d *Data) Sweep() error { return errors.Join(d.sweepRuns(), d.sweepOthers()) }

func (d *Data) sweepOthers() error {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return fmt.Errorf("open data folder %s: %w", d.dir, bare(err))
	}
	defer root.Close()
	var errs []error
	for _, pattern := range others {
		dirs, _ := fs.Glob(root.FS(), pattern)
		for _, dir := range dirs {
			if info, err := root.Stat(dir); err == nil && info.IsDir() {
				errs = append(errs, whole.Clean(root, dir))
			}
		}
	}
	return errors.Join(errs...)
}

func (d *Data) sweepRuns() error {
	entries, err := os.ReadDir(filepath.Join(d.dir, "runs"))
	if err != nil {
		return fmt.Errorf("list runs in %s: %w", d.dir, bare(err))
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		stale := err == nil && time.Since(info.ModTime()) > time.Hour
		if strings.HasPrefix(e.Name(), trashPrefix) || strings.HasPrefix(e.Name(), draftPrefix) && stale {
			errs = append(errs, d.runs.RemoveAll(e.Name()))
			continue
		}
		for _, dir := range []string{".", checkpointDir, sampleDir} {
			if e.IsDir() {
				errs = append(errs, whole.Clean(d.runs, filepath.Join(e.Name(), dir)))
			}
		}
	}
	return errors.Join(errs...)
}

// Adopt atomically creates a run's folder from external files whose paths take accepts. The error wraps model.ErrConflict if the folder
// exists.
func (d *Data) Adopt(id string, files fs.FS, take func(name string) bool) error {
	if !model.ValidID(id) {
		return fmt.Errorf("%q is not a valid run id", id)
	}
	dir := d.RunDir(id)
	if _, err := d.runs.Lstat(id); err == nil {
		return fmt.Errorf("run folder %s already exists: %w", dir, model.ErrConflict)
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), draftPrefix+id+"-")
	if err != nil {
		return fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	defer os.RemoveAll(draft) // no effect after the rename
	if err := copyFiles(draft, files, take); err != nil {
		return fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	f, err := Open(draft)
	if err != nil {
		return err
	}
	f.Close()
	if err := host.RenameFolder(draft, dir); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("run folder %s already exists: %w", dir, model.ErrConflict)
		}
		return fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	syncDir(filepath.Dir(dir))
	return nil
}

// copyFiles copies regular files and folders into dir and syncs them.
func copyFiles(dir string, files fs.FS, take func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	for _, sub := range []string{checkpointDir, sampleDir} {
		if err := root.Mkdir(sub, 0o755); err != nil {
			return err
		}
	}
	return fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !take(name):
			return err
		case e.IsDir():
			return root.MkdirAll(name, 0o755)
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		return copyFile(root, name, files)
	})
}

func copyFile(root *os.Root, name string, files fs.FS) error {
	from, err := files.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("write %s: %w", name, bare(err)) // without the draft's name
	}
	return to.Sync()
}

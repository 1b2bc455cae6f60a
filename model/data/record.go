package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// A dataset that was added is a folder <data>/datasets/<name>:
//
//	request.json   what was asked for
//	files/         what was downloaded for it
//	work.json      how far the work is, or why it ended
//	lock           held by the process that works on it
//	images.pack    the images, where they cannot be read from the files themselves
//	skipped.json   pictures that were damaged and are left out
//	dataset.json   written last: from then on the dataset is there
const (
	setsDir     = "datasets"
	requestFile = "request.json"
	workFile    = "work.json"
	lockFile    = "lock"
	packFile    = "images.pack"
	recordFile  = "dataset.json"
	filesDir    = "files"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func validName(name string) bool { return nameForm.MatchString(name) }

// checkName refuses what cannot name a dataset's folder.
func checkName(name string) error {
	if validName(name) {
		return nil
	}
	return model.Invalid{"name": fmt.Sprintf("%q cannot name a dataset: use 1 to 64 of a–z, 0–9, '.', '_' and '-', a letter or digit first", name)}
}

// record is dataset.json: what a dataset is, and where its images are.
type record struct {
	Info      Info        `json:"info"`
	Part      string      `json:"part,omitempty"`      // a name with a selection, of which this is another name
	Published string      `json:"published,omitempty"` // the name of the published set that it is
	Form      int         `json:"form"`                // in which form
	Format    string      `json:"format,omitempty"`    // or the name of the format of a visitor's own file
	Reading   Reading     `json:"reading,omitzero"`    // and how it is read
	Paths     []string    `json:"paths,omitempty"`     // the files that it was read from
	Prints    []filePrint `json:"prints,omitempty"`    // and their state then
	Packed    bool        `json:"packed"`              // whether the images are in images.pack; else they are read from the files
	Skipped   []int       `json:"skipped,omitempty"`   // images of images.pack that are left out, in order
	Grid      bool        `json:"grid,omitempty"`      // whether with these every combination would occur once, in the order of Grid
	Added     time.Time   `json:"added"`
}

// filePrint tells one state of a file from another.
type filePrint struct {
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

func printsOf(paths []string) ([]filePrint, error) {
	prints := make([]filePrint, len(paths))
	for i, path := range paths {
		stat, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		prints[i] = filePrint{stat.Size(), stat.ModTime().UTC()}
	}
	return prints, nil
}

// unchanged makes sure that the files are still those that were added.
func (r record) unchanged() error {
	prints, err := printsOf(r.Paths)
	if err != nil {
		return fmt.Errorf("one of its files no longer exists: %w", err)
	}
	for i := range prints {
		if i >= len(r.Prints) || prints[i].Bytes != r.Prints[i].Bytes || !prints[i].Modified.Equal(r.Prints[i].Modified) {
			return fmt.Errorf("%s has changed since the dataset was added: remove it, then add it again", r.Paths[i])
		}
	}
	return nil
}

func (c Catalogue) setDir(name string) string { return filepath.Join(c.Dir, setsDir, name) }

// root opens the folder of a dataset; fs.ErrNotExist is in the chain where there is none.
func (c Catalogue) root(name string) (*os.Root, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	data, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	return data.OpenRoot(filepath.Join(setsDir, name))
}

// makeRoot is root that makes the folder.
func (c Catalogue) makeRoot(name string) (*os.Root, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	data, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if err := data.MkdirAll(filepath.Join(setsDir, name), 0o755); err != nil {
		return nil, err
	}
	return data.OpenRoot(filepath.Join(setsDir, name))
}

func (c Catalogue) record(name string) (record, error) {
	dir, err := c.root(name)
	if err != nil {
		return record{}, err
	}
	defer dir.Close()
	r, err := readRecord[record](dir, recordFile)
	r.Info.Name = name // a folder that was renamed
	return r, err
}

func readRecord[T any](dir *os.Root, file string) (T, error) {
	var v T
	b, err := dir.ReadFile(file)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("%s cannot be read: %w", filepath.Join(dir.Name(), file), err)
	}
	return v, nil
}

func writeRecord(dir *os.Root, file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return folder.WriteFile(dir, file, append(b, '\n'))
}

// removeIfThere removes a file; none is no error.
func removeIfThere(dir *os.Root, file string) error {
	if err := dir.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

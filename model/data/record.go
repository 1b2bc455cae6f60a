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

// An added dataset is a folder <data>/datasets/<name>:
//
//	request.json   the request
//	files/         downloaded files
//	work.json      progress, or why the work stopped
//	lock           held by the process that is adding it
//	images.pack    the images, unless they are read from the original files
//	skipped.json   damaged images that were skipped
//	dataset.json   the record, written last; the dataset exists from then on
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

// checkName returns an error for names that are not allowed.
func checkName(name string) error {
	if validName(name) {
		return nil
	}
	return model.Invalid{"name": fmt.Sprintf("%q cannot name a dataset; use 1 to 64 of a–z, 0–9, '.', '_' and '-', starting with a letter or digit", name)}
}

// record is the content of dataset.json: a description of the dataset and where its images are.
type record struct {
	Info      Info        `json:"info"`
	Part      string      `json:"part,omitempty"`      // for a named part: the dataset with its selection
	Published string      `json:"published,omitempty"` // name of the published dataset
	Form      int         `json:"form"`                // index of its form
	Format    string      `json:"format,omitempty"`    // name of the format of a user's own file
	Reading   Reading     `json:"reading,omitzero"`    // options for reading it
	Paths     []string    `json:"paths,omitempty"`     // original files
	Prints    []filePrint `json:"prints,omitempty"`    // their state when the dataset was added
	Packed    bool        `json:"packed"`              // whether the images are in images.pack; else they are read from the original files
	Skipped   []int       `json:"skipped,omitempty"`   // places of skipped images in images.pack, ascending
	Grid      bool        `json:"grid,omitempty"`      // whether the dataset is complete, in the order of Grid, together with the skipped images
	Added     time.Time   `json:"added"`
}

// filePrint identifies the state of a file.
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

// unchanged returns an error if a file has changed since the dataset was added.
func (r record) unchanged() error {
	prints, err := printsOf(r.Paths)
	if err != nil {
		return fmt.Errorf("one of its files no longer exists; restore it, or remove the dataset: %w", err)
	}
	for i := range prints {
		if i >= len(r.Prints) || prints[i].Bytes != r.Prints[i].Bytes || !prints[i].Modified.Equal(r.Prints[i].Modified) {
			return fmt.Errorf("%s has changed since the dataset was added; remove the dataset, then add it again", r.Paths[i])
		}
	}
	return nil
}

func (c Catalogue) setDir(name string) string { return filepath.Join(c.Dir, setsDir, name) }

// root opens the folder of a dataset; the error wraps fs.ErrNotExist if there is none.
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

// makeRoot is like root but creates the folder.
func (c Catalogue) makeRoot(name string) (*os.Root, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := folder.MakeData(c.Dir); err != nil {
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
	r.Info.Name = name // the folder may have been renamed
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

// removeIfThere removes a file if it exists.
func removeIfThere(dir *os.Root, file string) error {
	if err := dir.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package sweep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/whole"
)

// Store stores plans in a data folder, each as sweeps/<id>/plan.json with a mark file next to it.
type Store struct{ dir string }

// WorkerLock returns the path of the file that a shell locks while it works on a sweep.
func (s Store) WorkerLock(id string) string { return filepath.Join(s.dir, id, "worker.lock") }

// OpenStore returns the store of a data folder; it creates nothing before the first Save.
func OpenStore(dataDir string) Store { return Store{filepath.Join(dataDir, "sweeps")} }

// Saved is a stored sweep.
type Saved struct {
	ID   string `json:"id"`
	Plan Plan   `json:"plan"`
	Mark
}

// Mark is the state of a sweep that does not follow from its runs.
type Mark struct {
	Active          bool      `json:"active"` // the server works on it
	Created         time.Time `json:"created"`
	model.Placement           // of its runs
}

const (
	planFile = "plan.json"
	markFile = "mark.json"
)

// Save stores a plan under its ID; a plan that is already stored keeps its mark.
func (s Store) Save(p Plan) (Saved, error) {
	if err := p.Validate(); err != nil {
		return Saved{}, err
	}
	id := p.ID()
	if old, err := s.Get(id); err == nil {
		return old, nil
	}
	if err := os.MkdirAll(filepath.Join(s.dir, id), 0o755); err != nil {
		return Saved{}, fmt.Errorf("store the sweep: %w", err)
	}
	mark := Mark{Created: time.Now().UTC().Truncate(time.Second)}
	if err := s.SetMark(id, mark); err != nil {
		return Saved{}, err
	}
	if err := replace(filepath.Join(s.dir, id, planFile), p.JSON()); err != nil { // last: a sweep exists once its plan does
		return Saved{}, fmt.Errorf("store the sweep: %w", err)
	}
	return Saved{id, p, mark}, nil
}

// SetMark replaces the mark of a sweep.
func (s Store) SetMark(id string, m Mark) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(s.dir, id, markFile), append(text, '\n')); err != nil {
		return fmt.Errorf("store sweep %s: %w", id, err)
	}
	return nil
}

// Get reads one sweep; the error wraps model.ErrNotFound if there is none.
func (s Store) Get(id string) (Saved, error) {
	if !model.ValidID(id) {
		return Saved{}, fmt.Errorf("no sweep %q: %w", id, model.ErrNotFound)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, id, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Saved{}, fmt.Errorf("no sweep %q: %w", id, model.ErrNotFound)
	}
	if err != nil {
		return Saved{}, fmt.Errorf("read sweep %s: %w", id, err)
	}
	plan, err := Read(bytes.NewReader(text))
	if err != nil {
		return Saved{}, fmt.Errorf("%s of sweep %s: %w", planFile, id, err)
	}
	out := Saved{ID: id, Plan: plan}
	if text, err = os.ReadFile(filepath.Join(s.dir, id, markFile)); err == nil {
		err = json.Unmarshal(text, &out.Mark)
	}
	if err != nil {
		return out, fmt.Errorf("%s of sweep %s: %w", markFile, id, err)
	}
	return out, nil
}

// List reads every sweep, newest first. Sweeps that cannot be read are skipped and named in the error, which is returned along with
// the others.
func (s Store) List() ([]Saved, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sweeps: %w", err)
	}
	var all []Saved
	var errs []error
	for _, e := range entries {
		one, err := s.Get(e.Name())
		switch {
		case err == nil:
			all = append(all, one)
		case !errors.Is(err, model.ErrNotFound):
			errs = append(errs, err)
		}
	}
	slices.SortFunc(all, func(a, b Saved) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return all, errors.Join(errs...)
}

// Delete deletes a sweep but not its runs.
func (s Store) Delete(id string) error {
	if _, err := s.Get(id); errors.Is(err, model.ErrNotFound) {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, id)); err != nil {
		return fmt.Errorf("delete sweep %s: %w", id, err)
	}
	return nil
}

// replace writes a file atomically.
func replace(path string, text []byte) error {
	return whole.Write(path, func(w *os.File) error {
		_, err := w.Write(text)
		return err
	})
}

// Status is a stored sweep and its progress.
type Status struct {
	Saved
	Board      Board
	Worker     string // process of a shell that works on it; empty if none
	Evaluating string // name of the run that is being evaluated; empty if none
	Problem    string // why the server cannot continue it; empty otherwise
}

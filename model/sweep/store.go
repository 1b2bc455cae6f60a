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

// Store keeps plans in a data folder, each in sweeps/<id>/plan.json, and beside it what was decided about it.
type Store struct{ dir string }

// WorkerLock is the file that a shell holds locked while it works on a sweep.
func (s Store) WorkerLock(id string) string { return filepath.Join(s.dir, id, "worker.lock") }

// OpenStore is the store of a data folder; nothing is made before the first Save.
func OpenStore(dataDir string) Store { return Store{filepath.Join(dataDir, "sweeps")} }

// Saved is a stored sweep.
type Saved struct {
	ID   string `json:"id"`
	Plan Plan   `json:"plan"`
	Mark
}

// Mark is what was decided about a sweep; the runs say the rest.
type Mark struct {
	Active          bool      `json:"active"` // a server works on it
	Created         time.Time `json:"created"`
	model.Placement           // of its runs
}

const (
	planFile = "plan.json"
	markFile = "mark.json"
)

// Save stores a plan under its ID; a plan that is there keeps its mark.
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
	if err := replace(filepath.Join(s.dir, id, planFile), p.JSON()); err != nil { // last: a sweep is there once its plan is
		return Saved{}, fmt.Errorf("store the sweep: %w", err)
	}
	return Saved{id, p, mark}, nil
}

// SetMark replaces what was decided about a sweep.
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

// Get reads one sweep; model.ErrNotFound is in the error's chain where there is none.
func (s Store) Get(id string) (Saved, error) {
	if !model.ValidID(id) {
		return Saved{}, fmt.Errorf("there is no sweep %q: %w", id, model.ErrNotFound)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, id, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Saved{}, fmt.Errorf("there is no sweep %q: %w", id, model.ErrNotFound)
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

// List reads every sweep, newest first; one that cannot be read is passed over and named in the error, which comes beside
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

// Delete forgets a sweep; its runs stay.
func (s Store) Delete(id string) error {
	if _, err := s.Get(id); errors.Is(err, model.ErrNotFound) {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, id)); err != nil {
		return fmt.Errorf("delete sweep %s: %w", id, err)
	}
	return nil
}

// replace writes a file whole or not at all.
func replace(path string, text []byte) error {
	return whole.Write(path, func(w *os.File) error {
		_, err := w.Write(text)
		return err
	})
}

// Status is a stored sweep and how it stands.
type Status struct {
	Saved
	Board      Board
	Worker     string // the process of a shell that works on it; empty for none
	Evaluating string // name of the run that is being evaluated; empty for none
	Problem    string // why the server cannot go on with it; empty otherwise
}

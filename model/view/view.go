// Package view stores saved views of the list of runs in the data folder.
package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"slotscope/model"
	"slotscope/model/whole"
)

// Limits of saved views.
const (
	Most        = 100
	longestName = 60    // characters
	longest     = 8_000 // bytes of an address
)

// View is a named URL query of the list of runs.
type View struct {
	Name    string    `json:"name"`
	Address string    `json:"address"` // the query, as in "q=model%3Dhrr&sort=-infom"
	Version int       `json:"version"` // increases by one with every save
	Changed time.Time `json:"changed"`
}

// Store stores views in one file. It is safe for concurrent use.
type Store struct {
	dir string
	mu  sync.Mutex
}

// Open returns the store of a data folder.
func Open(dataDir string) *Store { return &Store{dir: dataDir} }

const fileName = "views.json"

// List returns every view, sorted by name.
func (s *Store) List() ([]View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}

func (s *Store) read() ([]View, error) {
	file, err := os.Open(filepath.Join(s.dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read saved views: %w", err)
	}
	defer file.Close()
	var all []View
	if err := model.ReadJSON(file, &all); err != nil {
		return nil, model.Invalid{"": fmt.Sprintf("%s in the data folder is damaged: %v; repair or remove it", fileName, err)}
	}
	return all, nil
}

// Save stores a view. version is the version of this view that the user has seen, 0 for a new view; model.ErrConflict is in the error's
// chain if another version has been saved since.
func (s *Store) Save(name, address string, version int, now time.Time) (View, error) {
	name = strings.Join(strings.Fields(name), " ")
	if err := check(name, address); err != nil {
		return View{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return View{}, err
	}
	i := slices.IndexFunc(all, func(v View) bool { return v.Name == name })
	if err := unseen(all, i, name, version); err != nil {
		return View{}, err
	}
	if i < 0 {
		if len(all) >= Most {
			return View{}, model.Invalid{"name": fmt.Sprintf("the limit of %d saved views is reached; delete one first", Most)}
		}
		all, i = append(all, View{Name: name}), len(all)
	}
	v := &all[i]
	v.Address, v.Version, v.Changed = address, v.Version+1, now.UTC().Truncate(time.Second)
	saved := *v
	slices.SortFunc(all, func(a, b View) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return saved, s.write(all)
}

// Delete deletes a view. version is the version that the user has seen; the error wraps model.ErrConflict if it has changed since.
func (s *Store) Delete(name string, version int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(v View) bool { return v.Name == name })
	if i < 0 {
		return fmt.Errorf("no saved view %q: %w", name, model.ErrNotFound)
	}
	if err := unseen(all, i, name, version); err != nil {
		return err
	}
	return s.write(slices.Delete(all, i, i+1))
}

// unseen returns a conflict if the stored view is not the version that the user has seen.
func unseen(all []View, i int, name string, version int) error {
	switch {
	case i < 0 && version == 0, i >= 0 && all[i].Version == version:
		return nil
	case i < 0:
		return fmt.Errorf("view %q was deleted after you opened it; save it under another name: %w", name, model.ErrConflict)
	case version == 0:
		return fmt.Errorf("view %q already exists; choose another name, or open that view and save it: %w", name, model.ErrConflict)
	}
	return fmt.Errorf("view %q was changed at %s UTC, after you opened it; open it again, or save yours under another name: %w", name, all[i].Changed.Format("2006-01-02 15:04:05"), model.ErrConflict)
}

func check(name, address string) error {
	bad := model.Invalid{}
	switch {
	case name == "":
		bad["name"] = "enter a name for the view"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		bad["name"] = "a name must be one line of text"
	case utf8.RuneCountInString(name) > longestName:
		bad["name"] = fmt.Sprintf("the name has %d characters; use at most %d", utf8.RuneCountInString(name), longestName)
	}
	if len(address) > longest {
		bad["address"] = fmt.Sprintf("the view's address has %d bytes, more than the %d allowed; choose fewer columns or a shorter query", len(address), longest)
	}
	return bad.OrNil()
}

func (s *Store) write(all []View) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	err = whole.Write(filepath.Join(s.dir, fileName), func(w *os.File) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("save views: %w", err)
	}
	return nil
}

package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"slotscope/model"
	"slotscope/model/whole"
)

// Names holds user-chosen names of a run's slots, groups and codes, and its pinned codes. It applies to all checkpoints of the run and is
// stored in the run's folder.
type Names struct {
	Slots  map[int]string         `json:"slots,omitempty"`
	Groups map[string]string      `json:"groups,omitempty"` // by the group's factor
	Codes  map[int]map[int]string `json:"codes,omitempty"`  // by slot
	Pins   map[int][]int          `json:"pins,omitempty"`   // by slot, in order of pinning
}

// NameChange names a slot, one of its codes or the group of a factor, or pins a code.
type NameChange struct {
	Slot   *int    `json:"slot"`
	Code   *int    `json:"code"`
	Factor string  `json:"factor"`
	Name   *string `json:"name"` // empty removes the name
	Pin    *bool   `json:"pin"`
}

const (
	// NamesFile is the name of the file in the run's folder.
	NamesFile = "names.json"
	// MostName is the maximum length of a name in characters.
	MostName = 60

	mostNames     = 2000
	mostNamesFile = 1 << 20 // bytes
)

// Names returns the names of a source's run. They are empty for a shipped checkpoint that is not in the data folder.
func (l *Library) Names(src Source) (Names, error) { return l.NamesOf(src.Run) }

// NamesOf returns the names of a run, or a model.Invalid if the file is damaged.
func (l *Library) NamesOf(run string) (Names, error) {
	if !model.ValidID(run) {
		return Names{}, nil
	}
	return namesIn(filepath.Join(l.dir, "runs", run))
}

func namesIn(folder string) (n Names, err error) {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer root.Close()
	f, err := root.Open(NamesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, mostNamesFile+1))
	if err != nil {
		return n, err
	}
	if err = json.Unmarshal(raw, &n); err != nil || len(raw) > mostNamesFile {
		return Names{}, model.Invalid{"names": fmt.Sprintf("%s in the run's folder is damaged; move it away or restore it, then try again", NamesFile)}
	}
	return n, nil
}

// Rename changes one name or pin of a source's run and saves it atomically. factors lists the factors whose groups can be named.
func (l *Library) Rename(m *Model, src Source, factors []string, c NameChange) (Names, error) {
	if err := c.check(m, factors); err != nil {
		return Names{}, err
	}
	if src.Run == "" {
		return Names{}, fmt.Errorf("this model does not belong to a run folder, so its names cannot be saved: %w", model.ErrConflict)
	}
	l.naming.Lock()
	defer l.naming.Unlock()
	folder := filepath.Join(l.dir, "runs", src.Run)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return Names{}, fmt.Errorf("run %s was deleted, so names cannot be saved: %w", src.Run, model.ErrNotFound)
	}
	n, err := namesIn(folder)
	if err != nil {
		return n, err
	}
	n.apply(c)
	if n.count() > mostNames {
		return n, model.Invalid{"name": fmt.Sprintf("a run can have at most %d names and pins; remove some first", mostNames)}
	}
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return n, err
	}
	err = whole.Write(filepath.Join(folder, NamesFile), func(w *os.File) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
	if err != nil {
		return n, fmt.Errorf("saving the name: %w", err)
	}
	return n, nil
}

// check validates a change and trims its name.
func (c *NameChange) check(m *Model, factors []string) error {
	bad := model.Invalid{}
	switch {
	case c.Factor != "" && (c.Slot != nil || c.Code != nil || c.Pin != nil):
		bad["factor"] = "give a factor or a slot, not both"
	case c.Factor != "" && !slices.Contains(factors, c.Factor):
		bad["factor"] = fmt.Sprintf("%.40q is not a factor of the dataset; the factors are %s", c.Factor, strings.Join(factors, ", "))
	case c.Factor == "" && c.Slot == nil:
		bad["slot"] = "give a slot or a factor"
	case c.Slot != nil && (*c.Slot < 0 || *c.Slot >= m.Config.M):
		bad["slot"] = fmt.Sprintf("slot %d does not exist; this checkpoint has slots 0–%d", *c.Slot, m.Config.M-1)
	case c.Code != nil && (*c.Code < 0 || *c.Code >= m.Codes()):
		bad["code"] = fmt.Sprintf("code %d does not exist; this checkpoint has codes 0–%d", *c.Code, m.Codes()-1)
	case c.Pin != nil && c.Code == nil:
		bad["code"] = "give the code to pin"
	case c.Name == nil && c.Pin == nil:
		bad["name"] = "give a name or pin"
	}
	if c.Name != nil {
		name := strings.TrimSpace(*c.Name)
		c.Name = &name
		if n := utf8.RuneCountInString(name); n > MostName {
			bad["name"] = fmt.Sprintf("the name has %d characters; use at most %d", n, MostName)
		} else if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			bad["name"] = "the name contains control characters; use a single line of text"
		}
	}
	return bad.OrNil()
}

func (n *Names) apply(c NameChange) {
	if c.Factor != "" {
		set(&n.Groups, c.Factor, *c.Name)
		return
	}
	switch {
	case c.Name == nil:
	case c.Code == nil:
		set(&n.Slots, *c.Slot, *c.Name)
	default:
		codes := n.Codes[*c.Slot]
		set(&codes, *c.Code, *c.Name)
		set(&n.Codes, *c.Slot, codes)
		if len(codes) == 0 {
			delete(n.Codes, *c.Slot)
		}
	}
	if c.Pin == nil {
		return
	}
	pins := slices.DeleteFunc(n.Pins[*c.Slot], func(code int) bool { return code == *c.Code })
	if *c.Pin {
		pins = append(pins, *c.Code)
	}
	set(&n.Pins, *c.Slot, pins)
	if len(pins) == 0 {
		delete(n.Pins, *c.Slot)
	}
}

// set sets a key of a map that may be nil; it removes the key if value is the empty string.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if name, ok := any(value).(string); ok && name == "" {
		delete(*m, key)
		return
	}
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

func (n *Names) count() int {
	all := len(n.Slots) + len(n.Groups)
	for _, codes := range n.Codes {
		all += len(codes)
	}
	for _, pins := range n.Pins {
		all += len(pins)
	}
	return all
}

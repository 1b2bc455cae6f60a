package play

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/shipped"
)

// Source is a checkpoint that can be opened.
type Source struct {
	Key    string       `json:"key"`   // first 16 hex digits of the file's SHA-256
	Title  string       `json:"title"` // the run's name
	Run    string       `json:"run"`   // its ID; empty for a shipped checkpoint that is not in the data folder
	Step   int          `json:"step"`
	Config model.Config `json:"config"`
	Card   *Card        `json:"card,omitempty"`
	Saved  time.Time    `json:"saved"`

	path    string
	shipped *shipped.Run // the embedded run with the checkpoint
}

// read loads the checkpoint. It does not verify that the key still matches the file, because runs never rewrite a checkpoint in place.
func (s Source) read() (checkpoint.File, error) {
	var file checkpoint.File
	var err error
	if s.shipped != nil {
		var path string
		if path, err = s.shipped.Checkpoint(); err == nil {
			file, err = checkpoint.ReadFS(s.shipped.Files, path)
		}
	} else {
		file, err = checkpoint.Read(s.path)
	}
	if err != nil {
		return checkpoint.File{}, err
	}
	meta := map[string]string{}
	for k, v := range file.Meta {
		meta[k] = v
	}
	meta[HashKey] = s.Key
	file.Meta = meta
	return file, nil
}

// shelf finds the checkpoints of the runs in a data folder.
type shelf struct {
	dir string // the data folder

	mu     sync.Mutex
	hashes map[string]hashed // by path
}

type hashed struct {
	size  int64
	saved time.Time
	key   string
}

// newest returns the newest checkpoint of every run, last saved first. It skips unreadable folders, which may be incomplete or not a run.
func (s *shelf) newest() []Source {
	ids, _ := os.ReadDir(filepath.Join(s.dir, "runs"))
	var out []Source
	for _, e := range ids {
		if !model.ValidID(e.Name()) {
			continue
		}
		steps := s.steps(e.Name())
		if len(steps) == 0 {
			continue
		}
		if src, err := s.source(e.Name(), steps[len(steps)-1]); err == nil {
			out = append(out, src)
		}
	}
	slices.SortStableFunc(out, func(a, b Source) int { return cmp.Or(b.Saved.Compare(a.Saved), cmp.Compare(a.Run, b.Run)) })
	return out
}

var stepFile = regexp.MustCompile(`^step-(\d{1,12})\.safetensors$`)

// steps returns the steps of a run's checkpoints, ascending.
func (s *shelf) steps(id string) []int {
	files, _ := os.ReadDir(filepath.Join(s.dir, "runs", id, "checkpoints"))
	var steps []int
	for _, f := range files {
		if m := stepFile.FindStringSubmatch(f.Name()); m != nil && f.Type().IsRegular() {
			n, _ := strconv.Atoi(m[1]) // at most twelve digits
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps
}

func (s *shelf) source(id string, step int) (Source, error) {
	dir := filepath.Join(s.dir, "runs", id)
	path := filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%09d.safetensors", step))
	h, err := s.hash(path)
	if err != nil {
		return Source{}, err
	}
	src := Source{Key: h.key, Title: id, Run: id, Step: step, Saved: h.saved, path: path}
	if err := readJSON(filepath.Join(dir, "config.json"), &src.Config); err != nil {
		return Source{}, model.Invalid{"checkpoint": fmt.Sprintf("cannot open run %s: its config.json is missing or damaged: %v", id, model.JSONFault(err))}
	}
	var about struct {
		Name string `json:"name"`
	}
	if readJSON(filepath.Join(dir, "run.json"), &about) == nil && about.Name != "" {
		src.Title = about.Name
	}
	return src, nil
}

func readJSON(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// hash returns the hash of a file, cached by size and modification time.
func (s *shelf) hash(path string) (hashed, error) {
	info, err := os.Stat(path)
	if err != nil {
		return hashed{}, err
	}
	s.mu.Lock()
	known, ok := s.hashes[path]
	s.mu.Unlock()
	if ok && known.size == info.Size() && known.saved.Equal(info.ModTime()) {
		return known, nil
	}
	sum, err := checkpoint.Hash(path)
	if err != nil {
		return hashed{}, err
	}
	known = hashed{info.Size(), info.ModTime(), KeyOf(sum)}
	s.mu.Lock()
	s.hashes[path] = known
	s.mu.Unlock()
	return known, nil
}

// KeyOf returns the key of a checkpoint from the SHA-256 of its file, in hex.
func KeyOf(sum string) string { return sum[:keyLength] }

var keyForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// find resolves a checkpoint name: a key, a run ID (its newest checkpoint), ID@step, or ID@best.
func (s *shelf) find(name string) (Source, error) {
	if keyForm.MatchString(name) {
		if src, ok := s.byKey(name); ok {
			return src, nil
		}
	}
	id, at, chosen := strings.Cut(name, "@")
	if !model.ValidID(id) {
		return Source{}, fmt.Errorf("no checkpoint or run is named %q: %w", name, model.ErrNotFound)
	}
	steps := s.steps(id)
	if len(steps) == 0 {
		return Source{}, fmt.Errorf("no checkpoint, or run with a checkpoint, is named %q: %w", name, model.ErrNotFound)
	}
	step := steps[len(steps)-1]
	switch {
	case at == model.Best:
		f, err := folder.Open(filepath.Join(s.dir, "runs", id))
		if err != nil {
			return Source{}, err
		}
		defer f.Close()
		if step, err = f.Best(); err != nil {
			return Source{}, err
		}
	case chosen:
		n, err := strconv.Atoi(at)
		if err != nil || !slices.Contains(steps, n) {
			return Source{}, fmt.Errorf("run %s has no checkpoint of step %q: %w", id, at, model.ErrNotFound)
		}
		step = n
	}
	return s.source(id, step)
}

// byKey searches the newest checkpoint of every run first, then all others.
func (s *shelf) byKey(key string) (Source, bool) {
	newest := s.newest()
	for _, src := range newest {
		if src.Key == key {
			return src, true
		}
	}
	for _, run := range newest {
		for _, step := range s.steps(run.Run) {
			if src, err := s.source(run.Run, step); err == nil && src.Key == key {
				return src, true
			}
		}
	}
	return Source{}, false
}

// Package folder stores a run on disk: its configuration (config.json), name (run.json), status (state.json), measurements (points.jsonl),
// checkpoints/, samples/, log.txt, and the lock of the process that works on it. Only the holder of the lock writes state.json and
// points.jsonl; anyone may read at any time.
//
// Records are replaced atomically: written to a temporary file, synced, renamed. Files are accessed through os.Root, so that no name and
// no link leads out of the folder.
package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"slotscope/model"
	"slotscope/model/host"
)

// AttemptVariable is the environment variable with the number of a process among those of its run, starting at 1.
const AttemptVariable = "SLOTSCOPE_ATTEMPT"

const (
	configFile = "config.json"
	metaFile   = "run.json"
	stateFile  = "state.json"
	pointsFile = "points.jsonl"
	logFile    = "log.txt"
	lockFile   = "lock"
	evalLock   = "eval.lock"

	checkpointDir = "checkpoints"
	sampleDir     = "samples"
)

// Folder is an open run folder. Its methods except SetConfig are safe for concurrent use.
type Folder struct {
	dir  string // absolute path
	root *os.Root
	cfg  model.Config
}

// Damaged describes what is wrong with a run folder or one of its records, in a sentence that names it.
type Damaged string

func (d Damaged) Error() string { return string(d) }

// Meta is the name and notes of a run, which its owner may edit at any time.
type Meta struct {
	ID      string    `json:"id"` // as created; the folder's current name takes precedence
	Name    string    `json:"name"`
	Notes   string    `json:"notes"`
	Created time.Time `json:"created"`

	Tags     model.Tags `json:"tags,omitempty"`
	Star     bool       `json:"star,omitempty"`
	Archived bool       `json:"archived,omitempty"`
}

// Create makes dir, which must be absent or empty, the folder of a new run. The folder is created atomically and has no status yet.
// An empty name becomes model, preset and seed.
func Create(dir string, cfg model.Config, name string) (*Folder, error) {
	return create(dir, cfg, name, nil)
}

func create(dir string, cfg model.Config, name string, status *model.Status) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("create run folder: %w", err)
	}
	if name == "" {
		name = fmt.Sprintf("%s %s seed %d", cfg.Model, cfg.Preset, cfg.Seed)
	}
	parent, id := filepath.Split(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	draft, err := os.MkdirTemp(parent, draftPrefix+id+"-")
	if err != nil {
		return nil, fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	defer os.RemoveAll(draft) // no effect after the rename
	meta := Meta{ID: id, Name: name, Created: time.Now().UTC().Truncate(time.Millisecond)}
	if err := fill(draft, dir, cfg, meta, status); err != nil {
		return nil, fmt.Errorf("create run folder %s: %w", dir, err)
	}
	if err := host.RenameFolder(draft, dir); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("run folder %s already contains files: %w", dir, model.ErrConflict)
		}
		return nil, fmt.Errorf("create run folder %s: %w", dir, bare(err))
	}
	syncDir(parent)
	return Open(dir)
}

// fill writes the content of a new run folder into a draft; errors name dir.
func fill(draft, dir string, cfg model.Config, meta Meta, status *model.Status) error {
	root, err := os.OpenRoot(draft)
	if err != nil {
		return err
	}
	defer root.Close()
	f := &Folder{dir: dir, root: root, cfg: cfg}
	for _, sub := range []string{checkpointDir, sampleDir} {
		if err := root.Mkdir(sub, 0o755); err != nil {
			return bare(err)
		}
	}
	if err := root.Chmod(".", 0o755); err != nil {
		return bare(err)
	}
	if err := f.writeJSON(configFile, cfg); err != nil {
		return err
	}
	if err := f.writeJSON(metaFile, meta); err != nil {
		return err
	}
	if status == nil {
		return nil
	}
	return f.SetStatus(*status)
}

// Open reads the configuration of the run in dir. The error names the file at fault; it wraps model.ErrNotFound if dir does not exist, and
// Damaged if the configuration is missing or unreadable.
func Open(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open run folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no run folder %s: %w", dir, model.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open run folder %s: %w", dir, bare(err))
	}
	return opened(dir, root)
}

func opened(dir string, root *os.Root) (*Folder, error) {
	f := &Folder{dir: dir, root: root}
	err := f.readJSON(configFile, &f.cfg)
	if errors.Is(err, fs.ErrNotExist) {
		err = Damaged(fmt.Sprintf("%s has no %s: not a run folder, or an incomplete copy", dir, configFile))
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the folder; its locks and appenders remain valid.
func (f *Folder) Close() error { return f.root.Close() }

// Dir is the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// ID is the run's id: the name of its folder.
func (f *Folder) ID() string { return filepath.Base(f.dir) }

// Config is the configuration of the run.
func (f *Folder) Config() model.Config { return f.cfg }

// SetConfig replaces the configuration, to resume with more steps. Only the holder of the lock may call it, or the server while the run
// is queued.
func (f *Folder) SetConfig(cfg model.Config) error {
	if err := f.writeJSON(configFile, cfg); err != nil {
		return err
	}
	f.cfg = cfg
	return nil
}

// Meta returns the name and notes of the run; without run.json, they are derived from the folder's name and the configuration's age.
func (f *Folder) Meta() (Meta, error) {
	var m Meta
	err := f.readJSON(metaFile, &m)
	if err == nil && m.Name != "" {
		m.ID = f.ID()
		return m, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	m.ID, m.Name = f.ID(), f.ID()
	if info, statErr := f.root.Stat(configFile); statErr == nil && m.Created.IsZero() {
		m.Created = info.ModTime().UTC()
	}
	return m, err
}

// SetMeta replaces name and notes; a zero Created keeps the stored value.
func (f *Folder) SetMeta(m Meta) error {
	if m.Created.IsZero() {
		old, _ := f.Meta()
		m.Created = old.Created
	}
	m.ID = f.ID()
	return f.writeJSON(metaFile, m)
}

// Status is the recorded status of the run; Locked reports whether a process is working on it. Before the first SetStatus it is the zero
// Status.
func (f *Folder) Status() (model.Status, error) {
	var s model.Status
	err := f.readJSON(stateFile, &s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return model.Status{}, nil
	case err != nil:
		return s, err
	case s.State != "" && !s.State.Live() && !s.State.Ended() && s.State != model.Queued:
		return s, f.damaged(stateFile, fmt.Errorf("%q is not a run state", s.State))
	case min(s.Step, s.Checkpoint, s.Resumed, s.Attempt) < 0:
		return s, f.damaged(stateFile, errors.New("a count is negative"))
	}
	return s, nil
}

// SetStatus replaces the status and sets Updated. Only the holder of the lock may call it, or the server for a queued run.
func (f *Folder) SetStatus(s model.Status) error {
	s.Updated = time.Now().UTC().Truncate(time.Millisecond)
	s.ImagesPerSecond, s.SecondsLeft = finite(s.ImagesPerSecond), finite(s.SecondsLeft)
	return f.writeJSON(stateFile, s)
}

// finite replaces values that JSON cannot represent with 0, which means unknown.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// Run combines configuration, name and status. If run.json is damaged, it returns the run with the folder's name, and the error.
func (f *Folder) Run() (model.Run, error) {
	status, err := f.Status()
	if err != nil {
		return model.Run{}, err
	}
	m, err := f.Meta()
	return model.Run{ID: m.ID, Name: m.Name, Notes: m.Notes, Created: m.Created, Tags: m.Tags, Star: m.Star, Archived: m.Archived, Config: f.cfg, Status: status}, err
}

// Standing is the run's state as far as the folder alone can tell: a run recorded as live without a process is interrupted. If run.json is
// damaged, the run has the folder's name.
func (f *Folder) Standing() (model.Run, error) {
	run, err := f.Run()
	if run.ID == "" {
		return run, err
	}
	if run.State.Live() && !f.Locked() {
		run.State, run.Reason = model.Interrupted, "Its process exited unexpectedly."
	}
	return run, nil
}

// Age is the time since the configuration was written.
func (f *Folder) Age() time.Duration {
	info, err := f.root.Stat(configFile)
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}

// readJSON reads one record. Unknown fields are an error, because they would be ignored. The error of an invalid record wraps Damaged.
func (f *Folder) readJSON(name string, v any) error {
	b, err := f.root.ReadFile(name)
	if errors.Is(err, syscall.EISDIR) {
		return f.damaged(name, errors.New("it is a folder"))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.path(name), bare(err))
	}
	if err := model.ReadJSON(bytes.NewReader(b), v); err != nil {
		return f.damaged(name, err)
	}
	return nil
}

func (f *Folder) damaged(name string, why error) error {
	return Damaged(fmt.Sprintf("%s is damaged or from another version: %v", f.path(name), why))
}

func (f *Folder) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), err)
	}
	return f.replace(name, append(b, '\n'))
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

package adopt

import (
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
	"slotscope/model/host"
	"slotscope/model/whole"
)

// Command is how an adopted model is run. Commands are kept in a file of the user's, never in a data folder, so that a data folder
// from elsewhere runs nothing.
type Command struct {
	ID      string   `json:"id"`   // the model's, as its checkpoint says; random
	Args    []string `json:"args"` // the program's path, then its arguments
	Dir     string   `json:"dir"`  // that it runs in
	Seconds float64  `json:"seconds,omitempty"`
	Folder  string   `json:"folder"` // of the run
}

// Title is a command in a few words.
func (c Command) Title() string { return title(c.Args) }

func (c Command) wait() time.Duration {
	return cmp.Or(time.Duration(c.Seconds*float64(time.Second)), DefaultWait)
}

// Variable names the environment variable that says where commands are kept.
const Variable = "SLOTSCOPE_MODELS"

// commandsPath is $SLOTSCOPE_MODELS, else models.json in the user's configuration folder.
func commandsPath() (string, error) {
	if path := os.Getenv(Variable); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("commands of adopted models are kept in your configuration folder, which is not known (%w); set $%s to a file", err, Variable)
	}
	return filepath.Join(dir, "slotscope", "models.json"), nil
}

const mostCommands = 1 << 20 // bytes of the file

// readCommands reads what is kept; a file that others may write is refused, for it would let them run programs as this user.
func readCommands() (path string, list []Command, err error) {
	if path, err = commandsPath(); err != nil {
		return "", nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	if err != nil {
		return path, nil, err
	}
	if err := host.Private(info); err != nil {
		return path, nil, fmt.Errorf("%s says which commands run adopted models, and %w", path, err)
	}
	if info.Size() > mostCommands {
		return path, nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), mostCommands)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return path, nil, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return path, nil, fmt.Errorf("%s, the list of commands of adopted models, cannot be read: %w", path, err)
	}
	return path, list, nil
}

// keepCommand adds a command, or replaces the one of the same model. Commands of runs that are gone are dropped.
func keepCommand(c Command) error {
	path, list, err := readCommands()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(old Command) bool {
		_, err := os.Stat(old.Folder)
		return old.ID == c.ID || errors.Is(err, fs.ErrNotExist)
	})
	raw, err := json.MarshalIndent(append(list, c), "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keeping the command: %w", err)
	}
	err = whole.Write(path, func(w *os.File) error {
		_, err := w.Write(append(raw, '\n'))
		return errors.Join(err, w.Chmod(0o600))
	})
	if err != nil {
		return fmt.Errorf("keeping the command in %s: %w", path, err)
	}
	return nil
}

// commandOf finds the command of a model.
func commandOf(id string) (Command, error) {
	path, list, err := readCommands()
	if err != nil {
		return Command{}, err
	}
	i := slices.IndexFunc(list, func(c Command) bool { return c.ID == id })
	if i < 0 || id == "" {
		return Command{}, model.Invalid{"model": fmt.Sprintf("this model runs as a program of its own, and %s names no command for it; give one with `slotscope adopt --run RUN COMMAND`", path)}
	}
	return list[i], nil
}

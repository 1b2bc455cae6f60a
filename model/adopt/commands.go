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

// Command starts the program of an adopted model. Commands are stored in a file of the user, never in a data folder, so that a data folder
// from elsewhere cannot run programs.
type Command struct {
	ID      string   `json:"id"`   // of the model, random; also in its checkpoint
	Args    []string `json:"args"` // path of the program, then its arguments
	Dir     string   `json:"dir"`  // working directory
	Seconds float64  `json:"seconds,omitempty"`
	Folder  string   `json:"folder"` // of the run
}

// Title describes a command briefly.
func (c Command) Title() string { return title(c.Args) }

func (c Command) wait() time.Duration {
	return cmp.Or(time.Duration(c.Seconds*float64(time.Second)), DefaultWait)
}

// Variable is the environment variable with the path of the file of commands.
const Variable = "SLOTSCOPE_MODELS"

// commandsPath is $SLOTSCOPE_MODELS, or models.json in the user's configuration folder.
func commandsPath() (string, error) {
	if path := os.Getenv(Variable); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot locate your configuration folder, where commands of adopted models are stored (%w); set $%s to a file path", err, Variable)
	}
	return filepath.Join(dir, "slotscope", "models.json"), nil
}

const mostCommands = 1 << 20 // bytes of the file

// readCommands reads the stored commands. It rejects a file that others can write, because they could run programs as this user.
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
		return path, nil, fmt.Errorf("%s, the list of commands of adopted models, %w", path, err)
	}
	if info.Size() > mostCommands {
		return path, nil, fmt.Errorf("%s has %d bytes (limit %d)", path, info.Size(), mostCommands)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return path, nil, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return path, nil, fmt.Errorf("reading %s, the list of commands of adopted models: %w", path, err)
	}
	return path, list, nil
}

// keepCommand adds a command, or replaces the command of the same model. It drops the commands of deleted runs.
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
		return fmt.Errorf("saving the command: %w", err)
	}
	err = whole.Write(path, func(w *os.File) error {
		_, err := w.Write(append(raw, '\n'))
		return errors.Join(err, w.Chmod(0o600))
	})
	if err != nil {
		return fmt.Errorf("saving the command in %s: %w", path, err)
	}
	return nil
}

// commandOf returns the command of a model.
func commandOf(id string) (Command, error) {
	path, list, err := readCommands()
	if err != nil {
		return Command{}, err
	}
	i := slices.IndexFunc(list, func(c Command) bool { return c.ID == id })
	if i < 0 || id == "" {
		return Command{}, model.Invalid{"model": fmt.Sprintf("this model runs in a separate program, and %s has no command for it; set one with `slotscope adopt --run RUN COMMAND`", path)}
	}
	return list[i], nil
}

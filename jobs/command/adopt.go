package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slotscope/model"
	"slotscope/model/adopt"
	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
	"slotscope/model/play"
)

type adoptCommand struct {
	Model   []string `arg:"" rest:"" name:"model" help:"bundle, FILE.safetensors, or a command with arguments that implements encode and decode; flags go before it"`
	Dataset string   `placeholder:"NAME" help:"dataset of the model; required for a command"`
	Name    string   `placeholder:"NAME" help:"name of the run; default: the name that the model reports"`
	Timeout float64  `default:"${adopt_timeout}" placeholder:"SECONDS" help:"time limit for one response of the command"`
	Again   string   `name:"run" placeholder:"ID" help:"adopted run whose command is replaced by this one"`
	dataFlag
	jsonFlag
}

// Run creates a run from an external model: a bundle, a safetensors file with the program's tensor shapes, or a command that implements
// encode and decode.
func (c *adoptCommand) Run(ctx context.Context, env environment) error {
	if c.Timeout < 0.1 || c.Timeout > 86400 {
		return fmt.Errorf("%w: --timeout %g is out of range 0.1–86,400 seconds", errUsage, c.Timeout)
	}
	clean, err := model.CleanName(c.Name)
	if err != nil {
		return err
	}
	root, err := folder.Root(c.Data)
	if err != nil {
		return err
	}
	defer root.Close()
	w := adoption{root: root, name: clean, dataset: c.Dataset, seconds: c.Timeout}
	if holdsWeights(c.Model) {
		if c.Again != "" || c.Dataset != "" {
			return fmt.Errorf("%w: --run and --dataset are for commands; %s already names its dataset", errUsage, c.Model[0])
		}
		id, err := w.weights(ctx, c.Model[0])
		return tellAdopted(env, id, err, c.JSON)
	}
	if c.Again != "" {
		command, err := w.command(c.Model)
		if err == nil {
			err = adopt.Again(root, c.Again, command)
		}
		return tellAdopted(env, c.Again, err, c.JSON)
	}
	id, err := w.program(ctx, c.Model)
	return tellAdopted(env, id, err, c.JSON)
}

// holdsWeights reports whether the argument is a bundle or a weights file.
func holdsWeights(args []string) bool {
	if len(args) != 1 {
		return false
	}
	info, err := os.Stat(args[0])
	extension := strings.ToLower(filepath.Ext(args[0]))
	return err == nil && (info.IsDir() || extension == ".zip" || extension == ".safetensors")
}

// adoption holds the options for adopting a model.
type adoption struct {
	root          *folder.Data
	name, dataset string
	seconds       float64
}

func (a adoption) command(args []string) (adopt.Command, error) {
	program, err := exec.LookPath(args[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return adopt.Command{}, model.Invalid{"command": fmt.Sprintf("%q is not an executable program: %v", args[0], err)}
	}
	dir, err := os.Getwd()
	return adopt.Command{Args: append([]string{program}, args[1:]...), Dir: dir, Seconds: a.seconds}, err
}

// program adopts a command.
func (a adoption) program(ctx context.Context, args []string) (id string, err error) {
	if a.dataset == "" {
		return "", fmt.Errorf("%w: name the model's dataset with --dataset; `slotscope data list` lists the datasets", errUsage)
	}
	c, err := a.command(args)
	if err != nil {
		return "", err
	}
	set, err := data.Open(ctx, a.dataset, a.root.Dir())
	if err != nil {
		return "", fmt.Errorf("opening dataset %q: %w", a.dataset, err)
	}
	defer set.Close()
	id, _, err = adopt.Adopt(ctx, a.root, set, a.name, c)
	return id, err
}

// weights adopts a bundle, or a safetensors file with its configuration in the metadata or in a config.json in the same folder.
func (a adoption) weights(ctx context.Context, path string) (id string, err error) {
	name, scores, file, probe := a.name, (*model.Scores)(nil), checkpoint.File{}, (*checkpoint.File)(nil)
	if strings.EqualFold(filepath.Ext(path), ".safetensors") {
		file, err = readWeights(path)
	} else {
		var o *bundle.Opened
		if o, err = openWhole(path); err == nil {
			file, scores, probe = o.File, o.Scores, o.Probe
			if name == "" {
				name = o.Manifest.Name
			}
		}
	}
	if err != nil {
		return "", err
	}
	file.Step = max(1, file.Step)
	engine, err := compute.Open("cpu")
	if err != nil {
		return "", err
	}
	m, err := play.Open(ctx, engine, file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	m.Close()
	if probe != nil { // so that a bundle of the run contains it again
		if err := evaluate.KeepProbe(filepath.Join(a.root.Dir(), evaluate.ProbesDir), *probe); err != nil {
			return "", err
		}
	}
	return adopt.Take(a.root, name, filepath.Base(path), file, scores)
}

// openWhole opens a bundle and returns an error if it is inconsistent.
func openWhole(path string) (*bundle.Opened, error) {
	o, closer, err := bundle.Open(path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	if len(o.Problems) > 0 {
		return nil, fmt.Errorf("%s: %d problems, first: %s: %w", path, len(o.Problems), o.Problems[0], errDiffers)
	}
	return o, nil
}

// readWeights reads a safetensors file; if it has no configuration, it reads the config.json in the same folder.
func readWeights(path string) (checkpoint.File, error) {
	file, err := checkpoint.Read(path)
	if err != nil || file.Config.Model != "" {
		return file, err
	}
	beside := filepath.Join(filepath.Dir(path), bundle.ConfigFile)
	raw, err := os.ReadFile(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return file, model.Invalid{"checkpoint": fmt.Sprintf("%s has no configuration: put the run's %s in the same folder", path, bundle.ConfigFile)}
	}
	if err != nil {
		return file, err
	}
	var m bundle.Manifest
	if err := json.Unmarshal(raw, &m); err == nil && m.Config.Model != "" { // a bundle's
		file.Config, file.Step = m.Config, m.Step
		return file, nil
	}
	if err := json.Unmarshal(raw, &file.Config); err != nil || file.Config.Model == "" {
		return file, model.Invalid{"checkpoint": fmt.Sprintf("%s is not a run configuration", beside)}
	}
	return file, nil
}

func tellAdopted(env environment, id string, err error, asJSON bool) error {
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(env.out, map[string]string{"run": id})
	}
	fmt.Fprintf(env.out, "%s\nOpen it at /play/%s, or evaluate it with `slotscope eval %s`.\n", id, id, id)
	return nil
}

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
	Model   []string `arg:"" rest:"" name:"model" help:"bundle, FILE.safetensors, or a command that answers encode and decode, with its arguments; flags stand before it"`
	Dataset string   `placeholder:"NAME" help:"dataset that the model reads; a command needs it"`
	Name    string   `placeholder:"NAME" help:"name of the run; else what the model calls itself"`
	Timeout float64  `default:"${adopt_timeout}" placeholder:"SECONDS" help:"how long the command may take for one answer"`
	Again   string   `name:"run" placeholder:"ID" help:"adopted run that gets this command in place of its own"`
	dataFlag
	jsonFlag
}

// Run makes a run of a model from elsewhere: a bundle, a safetensors file of our shapes, or a command that answers encode and decode.
func (c *adoptCommand) Run(ctx context.Context, env environment) error {
	if c.Timeout < 0.1 || c.Timeout > 86400 {
		return fmt.Errorf("%w: --timeout %g is out of range 0.1 to 86,400", errUsage, c.Timeout)
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
			return fmt.Errorf("%w: --run and --dataset are for commands; %s says its dataset itself", errUsage, c.Model[0])
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

// holdsWeights says whether what was given is a bundle or a file of weights.
func holdsWeights(args []string) bool {
	if len(args) != 1 {
		return false
	}
	info, err := os.Stat(args[0])
	extension := strings.ToLower(filepath.Ext(args[0]))
	return err == nil && (info.IsDir() || extension == ".zip" || extension == ".safetensors")
}

// adoption is how a model is taken in.
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
		return adopt.Command{}, model.Invalid{"command": fmt.Sprintf("%q is not a program that can be run: %v", args[0], err)}
	}
	dir, err := os.Getwd()
	return adopt.Command{Args: append([]string{program}, args[1:]...), Dir: dir, Seconds: a.seconds}, err
}

// program adopts a command.
func (a adoption) program(ctx context.Context, args []string) (id string, err error) {
	if a.dataset == "" {
		return "", fmt.Errorf("%w: name the dataset that the model reads, with --dataset; `slotscope data list` lists them", errUsage)
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

// weights adopts a bundle, or a safetensors file whose configuration is its metadata or lies beside it.
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
	if probe != nil { // so that a bundle of the run holds it again
		if err := evaluate.KeepProbe(filepath.Join(a.root.Dir(), evaluate.ProbesDir), *probe); err != nil {
			return "", err
		}
	}
	return adopt.Take(a.root, name, filepath.Base(path), file, scores)
}

// openWhole reads a bundle that does not contradict itself.
func openWhole(path string) (*bundle.Opened, error) {
	o, closer, err := bundle.Open(path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	if len(o.Problems) > 0 {
		return nil, fmt.Errorf("%s: %d problems, the first: %s: %w", path, len(o.Problems), o.Problems[0], errDiffers)
	}
	return o, nil
}

// readWeights reads a safetensors file, with the configuration of the config.json beside it where it has none of its own.
func readWeights(path string) (checkpoint.File, error) {
	file, err := checkpoint.Read(path)
	if err != nil || file.Config.Model != "" {
		return file, err
	}
	beside := filepath.Join(filepath.Dir(path), bundle.ConfigFile)
	raw, err := os.ReadFile(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return file, model.Invalid{"checkpoint": fmt.Sprintf("%s has no configuration: put the run's %s beside it", path, bundle.ConfigFile)}
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
		return file, model.Invalid{"checkpoint": fmt.Sprintf("%s is not the configuration of a run", beside)}
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
	fmt.Fprintf(env.out, "%s\nPlay with it on /play/%s, measure it with `slotscope eval %s`.\n", id, id, id)
	return nil
}

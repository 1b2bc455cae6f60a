package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/exchange"
	"slotscope/model/folder"
	"slotscope/model/learn/evaluate"
	"slotscope/model/learn/train"
)

// collectOften reduces the memory of a training process, unless $GOGC is set. Training creates little garbage, so collecting when the heap
// has grown by a quarter instead of doubled has no measurable cost.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}

type trainCommand struct {
	Folder        string `name:"run" placeholder:"DIR" help:"folder of a run to start or resume; its config.json sets name and hyperparameters"`
	Name          string `placeholder:"NAME" help:"name of the run"`
	EvaluateLater bool   `help:"queue the final evaluation for the server or job that started this process"`
	Tensorboard   bool   `help:"write TensorBoard event files to tensorboard/ in the run's folder during training"`
	dataFlag
	jsonFlag
	executorFlags
	hyperparameters `group:"Hyperparameters:"`
}

// hyperparameters are the flags for the hyperparameters of a new run; nil if not given.
type hyperparameters struct {
	Dataset *string  `placeholder:"NAME" help:"${help_dataset}"`
	Model   *string  `enum:"${models}" placeholder:"NAME" help:"${help_model}"`
	Preset  *string  `enum:"${presets}" placeholder:"NAME" help:"${help_preset}"`
	Steps   *string  `placeholder:"N" help:"${help_steps}"`
	Batch   *string  `placeholder:"N" help:"${help_batch}"`
	Seed    *string  `placeholder:"N" help:"${help_seed}"`
	Engine  *string  `enum:"${engines}" placeholder:"NAME" help:"${help_engine}"`
	Set     []string `sep:"none" placeholder:"NAME=VALUE" help:"any hyperparameter listed below (repeatable); overrides the flags above"`
}

// namedFlags are the hyperparameters that have their own flag.
var namedFlags = []string{"dataset", "model", "preset", "steps", "batch", "seed", "engine"}

func (h hyperparameters) assignments() (assignments, error) {
	a := assignments{}
	for i, text := range []*string{h.Dataset, h.Model, h.Preset, h.Steps, h.Batch, h.Seed, h.Engine} {
		if text != nil {
			a[namedFlags[i]] = *text
		}
	}
	for _, text := range h.Set {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return a, badFlag{"set", fmt.Errorf("%q is not of the form name=value", text)}
		}
		if _, ok := model.FieldByName(name); !ok {
			return a, badFlag{"set", fmt.Errorf("unknown hyperparameter %q", name)}
		}
		a[name] = value
	}
	return a, nil
}

// printMore lists the hyperparameters of the model and preset on the command line.
func (c *trainCommand) printMore(ctx *kong.Context) error {
	set, err := c.assignments()
	if err != nil {
		return err
	}
	return set.list(ctx.Stdout)
}

// Run trains a new run, or resumes the run of a folder, in this process.
func (c *trainCommand) Run(ctx context.Context, env environment) error {
	collectOften()
	set, err := c.assignments()
	if err != nil {
		return err
	}
	if c.Name, err = model.CleanName(c.Name); err != nil {
		return err
	}
	where, options, err := c.heeded()
	if err != nil {
		return err
	}
	if where == model.Slurm && c.Tensorboard {
		return fmt.Errorf("%w: --tensorboard works only for local runs; export the run after it has finished: slotscope export RUN --as tensorboard", errUsage)
	}
	f, err := runFolder(ctx, c.Folder, c.Data, c.Name, set)
	if err != nil {
		return err
	}
	defer f.Close()
	if runs := filepath.Dir(f.Dir()); c.Folder != "" && filepath.Base(runs) == "runs" {
		c.Data = filepath.Dir(runs) // a run in a data folder uses the datasets there
	}
	if c.Folder == "" {
		fmt.Fprintln(env.err, "run folder:", f.Dir())
	}
	if where == model.Slurm {
		return submit(ctx, env, f, slurm.New(c.Data, options), c.JSON)
	}
	attempt, _ := strconv.Atoi(os.Getenv(folder.AttemptVariable))
	ended := func() {}
	if c.Tensorboard {
		ended = liveBoard(env, f)
	}
	live := newLiveLine(env.err)
	err = train.Run(ctx, train.Request{Folder: f, DataDir: c.Data, Revision: Revision(), Attempt: attempt, QueueEvaluation: c.EvaluateLater,
		Log: slog.New(slog.NewTextHandler(live, nil)), Report: live.show})
	ended()
	if c.JSON {
		status, statusErr := f.Status()
		if statusErr == nil {
			printJSON(env.out, status)
		}
	}
	if err != nil || c.EvaluateLater || f.Config().Evaluate == "" {
		return err
	}
	return evaluateTrained(ctx, env, f, c.Data, !c.JSON)
}

// liveBoard writes event files during training until ended is called; it reports a failure without ending the run.
func liveBoard(env environment, f *folder.Folder) (ended func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- exchange.Live(ctx, f, filepath.Join(f.Dir(), "tensorboard")) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(env.err, "TensorBoard files are incomplete:", err)
		}
	}
}

// evaluateTrained evaluates a run that has just finished training in this process.
func evaluateTrained(ctx context.Context, env environment, f *folder.Folder, dataDir string, show bool) error {
	cfg := f.Config()
	w := evalWork{env: env, o: evaluate.Default(cfg.Seed), effort: cfg.Evaluate, engine: cfg.Engine, dataDir: dataDir, dataGiven: true, heldOut: true}
	if w.o.Images = 0; cfg.Evaluate == model.Quick {
		w.o = evaluate.Quick(cfg.Seed)
		w.o.Images = 0 // the configuration's eval_images, limited for a quick evaluation
	}
	fmt.Fprintln(env.err, "evaluating the run; if you interrupt this, evaluate it later with: slotscope eval", f.Dir())
	r, s, err := w.run(ctx, f.Dir())
	if err != nil {
		return fmt.Errorf("training has finished, but the evaluation failed: %w", err)
	}
	if !show {
		return nil
	}
	return printScores(env, s, r.Scores)
}

// assignments are hyperparameters by name, as typed.
type assignments map[string]string

// helpWidth leaves room for names and values within 120 columns.
const helpWidth = 76

// wrapped breaks text between words into lines of at most width characters; a longer word gets its own line.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		if *last != "" && utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, word)
			continue
		}
		*last = strings.TrimPrefix(*last+" "+word, " ")
	}
	return lines
}

// list writes the remaining hyperparameters of the chosen model with the values that a run has without --set.
func (a assignments) list(w io.Writer) error {
	cfg, err := a.config()
	if err != nil {
		_, err = fmt.Fprintln(w, "\nNo hyperparameters to list:", err)
		return err
	}
	fmt.Fprintf(w, "\nHyperparameters of %s (preset %s) for --set, with their values.\nFor other models: slotscope train --model NAME --preset NAME -h\n", cfg.Model, cfg.Preset)
	rows := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for _, f := range model.FieldsOf(cfg.Model) {
		if slices.Contains(namedFlags, f.Name) {
			continue
		}
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(rows, "\n%s\n", group)
		}
		help := f.Help
		if len(f.Choices) > 0 {
			help += " One of " + strings.Join(f.Choices, ", ") + "."
		}
		lines := wrapped(help, helpWidth)
		fmt.Fprintf(rows, "  %s\t%s\t%s\n", f.Name, f.Get(cfg), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(rows, "\t\t%s\n", line)
		}
	}
	return rows.Flush()
}

// config starts from the defaults of the named model, preset and dataset, and sets the rest.
func (a assignments) config() (model.Config, error) {
	or := func(name, otherwise string) string {
		if v, ok := a[name]; ok {
			return v
		}
		return otherwise
	}
	cfg, err := model.Default(or("model", "hrr"), or("preset", "tiny"), or("dataset", "shapes3d-synthetic"))
	if err != nil {
		return cfg, err
	}
	for name, text := range a {
		if err := cfg.Set(name, text); err != nil {
			return cfg, err
		}
	}
	return cfg, cfg.Validate().OrNil()
}

// runFolder opens the folder of a run, or checks the configuration and creates a new one.
func runFolder(ctx context.Context, dir, dataDir, name string, set assignments) (*folder.Folder, error) {
	if dir != "" {
		if len(set) > 0 || name != "" {
			return nil, fmt.Errorf("%w: --run takes the name and hyperparameters from the folder; remove the other flags", errUsage)
		}
		return folder.Open(dir)
	}
	cfg, err := set.config()
	if err != nil {
		return nil, err
	}
	images, err := data.Open(ctx, cfg.Dataset, dataDir)
	if err != nil {
		return nil, err
	}
	defer images.Close()
	if _, given := set["m"]; !given {
		cfg = cfg.WithFactors(len(images.Info().Factors))
	}
	if n := images.Info().Len; cfg.Batch > n {
		return nil, model.Invalid{"batch": fmt.Sprintf("%s is larger than the dataset %s (%s images)", grouped(cfg.Batch), cfg.Dataset, grouped(n))}
	}
	root, err := folder.Root(dataDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return folder.Create(root.RunDir(model.NewID(time.Now())), cfg, name)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

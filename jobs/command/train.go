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

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/exchange"
	"slotscope/model/folder"
	"slotscope/model/learn/evaluate"
	"slotscope/model/learn/train"
)

// collectOften keeps a process that trains small, unless $GOGC says otherwise: it makes little garbage, so that to collect it when it
// comes to a quarter of what lives, not to as much again, costs nothing that was seen.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}

// trainRun trains a new run, or goes on with the run of a folder, in this process.
func trainRun(ctx context.Context, env environment, args []string) error {
	collectOften()
	fs := flags(env, "train")
	dir := fs.String("run", "", "folder of a run to start or go on with; the other flags are then its config.json's")
	name := fs.String("name", "", "what to call the run")
	later := fs.Bool("evaluate-later", false, "leave the evaluation of the finished run in the queue of the server, or of the job, that started this process")
	board := fs.Bool("tensorboard", false, "write TensorBoard event files into the run's folder, tensorboard/, while it trains")
	dataDir, asJSON, executor := dataFlag(fs), jsonFlag(fs), executorFlags(fs)
	set := assignments{}
	for _, f := range namedFlags {
		field, _ := model.FieldByName(f)
		fs.Func(f, field.Help, func(text string) error { return set.add(f, text) })
	}
	fs.Func("set", "a hyperparameter as `name=value`; may be given again; the names are listed below", func(text string) error {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("%q is not of the form name=value", text)
		}
		return set.add(name, value)
	})
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "Usage of %s:\n", fs.Name())
		fs.PrintDefaults()
		set.list(fs.Output())
	}
	err := parse(fs, args, 0)
	if err != nil {
		return err
	}
	if *name, err = model.CleanName(*name); err != nil {
		return err
	}
	where, options, err := executor()
	if err == nil {
		err = heeded(fs, where)
	}
	if err != nil {
		return err
	}
	if where == model.Slurm && *board {
		return fmt.Errorf("%w: --tensorboard works for local runs; export the run when it has finished: slotscope export RUN --as tensorboard", errUsage)
	}
	f, err := runFolder(ctx, *dir, *dataDir, *name, set)
	if err != nil {
		return err
	}
	defer f.Close()
	if runs := filepath.Dir(f.Dir()); *dir != "" && filepath.Base(runs) == "runs" {
		*dataDir = filepath.Dir(runs) // a run in a data folder finds its datasets there
	}
	if *dir == "" {
		fmt.Fprintln(env.err, "run folder:", f.Dir())
	}
	if where == model.Slurm {
		return submit(ctx, env, f, slurm.New(*dataDir, options), *asJSON)
	}
	attempt, _ := strconv.Atoi(os.Getenv(folder.AttemptVariable))
	ended := func() {}
	if *board {
		ended = liveBoard(env, f)
	}
	live := newLiveLine(env.err)
	err = train.Run(ctx, train.Request{Folder: f, DataDir: *dataDir, Revision: Revision(), Attempt: attempt, QueueEvaluation: *later,
		Log: slog.New(slog.NewTextHandler(live, nil)), Report: live.show})
	ended()
	if *asJSON {
		status, statusErr := f.Status()
		if statusErr == nil {
			printJSON(env.out, status)
		}
	}
	if err != nil || *later || f.Config().Evaluate == "" {
		return err
	}
	return evaluateTrained(ctx, env, f, *dataDir, !*asJSON)
}

// liveBoard writes event files beside a training until ended is called; a failure is told and does not end the run.
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

// evaluateTrained measures a run that has just finished in this process.
func evaluateTrained(ctx context.Context, env environment, f *folder.Folder, dataDir string, show bool) error {
	cfg := f.Config()
	w := evalWork{env: env, o: evaluate.Default(cfg.Seed), effort: cfg.Evaluate, engine: cfg.Engine, dataDir: dataDir, dataGiven: true, heldOut: true}
	if w.o.Images = 0; cfg.Evaluate == model.Quick {
		w.o = evaluate.Quick(cfg.Seed)
		w.o.Images = 0 // as many as the configuration says, within what is quick
	}
	fmt.Fprintln(env.err, "evaluating the run; an interrupt ends this, and", "slotscope eval "+f.Dir(), "does it again")
	r, s, err := w.run(ctx, f.Dir())
	if err != nil {
		return fmt.Errorf("the run is trained; its evaluation: %w", err)
	}
	if !show {
		return nil
	}
	return printScores(env, s, r.Scores)
}

// assignments are hyperparameters by name, as typed.
type assignments map[string]string

// namedFlags are the hyperparameters that have a flag each.
var namedFlags = []string{"dataset", "model", "preset", "steps", "batch", "seed", "engine"}

// list writes the other hyperparameters of the model that is set, with the values that a run has without --set.
func (a assignments) list(w io.Writer) {
	cfg, err := a.config()
	if err != nil {
		fmt.Fprintln(w, "\nNo hyperparameters to list:", err)
		return
	}
	fmt.Fprintf(w, "\nHyperparameters of %s, %s, for -set, with their values; name another -model or -preset before -h.\n", cfg.Model, cfg.Preset)
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
		fmt.Fprintf(rows, "  %s\t%s\t%s\n", f.Name, f.Get(cfg), help)
	}
	rows.Flush()
}

func (a assignments) add(name, text string) error {
	if _, ok := model.FieldByName(name); !ok {
		return fmt.Errorf("unknown hyperparameter %q", name)
	}
	a[name] = text
	return nil
}

// config starts from the defaults of the model, preset and dataset that are named, and sets the rest.
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

// runFolder opens the folder of a run, or makes one for a configuration that was checked first.
func runFolder(ctx context.Context, dir, dataDir, name string, set assignments) (*folder.Folder, error) {
	if dir != "" {
		if len(set) > 0 || name != "" {
			return nil, fmt.Errorf("%w: --run takes configuration and name from the folder", errUsage)
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
		return nil, model.Invalid{"batch": fmt.Sprintf("%d images are more than the %d of %s", cfg.Batch, n, cfg.Dataset)}
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

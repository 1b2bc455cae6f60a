package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/host"
	"slotscope/model/sweep"
)

type sweepCommand struct {
	What     string `arg:"" name:"paper|field|own|file|id" help:"paper or field (published protocols), own (a sweep set by flags), a JSON plan file, or the ID of a stored sweep"`
	Preset   string `default:"tiny" enum:"${presets}" placeholder:"NAME" help:"network width, for paper, field and own"`
	Steps    int    `default:"0" placeholder:"N" help:"training steps per run, for paper, field and own; 0 uses the preset's"`
	Seeds    int    `default:"5" placeholder:"N" help:"seeds per setting, for paper, field and own"`
	Datasets string `placeholder:"NAMES" help:"comma-separated datasets, for paper, field and own; default: those of the protocol that are installed, shapes3d-synthetic for own"`
	Models   string `placeholder:"NAMES" help:"comma-separated models, for paper, field and own; default: all, hrr for own"`
	Parts    string `placeholder:"NAMES" help:"comma-separated parts: main, grid, ablations, ratio for paper (default: all but ratio); models, tuned, ratio, splits for field (default: models)"`
	sweepOptions
	ownFlags
	dataFlag
	jsonFlag
	executorFlags
}

// sweepOptions are the options for running a plan.
type sweepOptions struct {
	parallelFlag
	Engine  string `default:"auto" enum:"${engines}" placeholder:"NAME" help:"compute engine"`
	Retry   bool   `help:"retry failed runs"`
	Records string `placeholder:"DIR" help:"folder of finished runs without weights; reused, so a sweep can continue on another machine"`
	Dry     bool   `help:"print the plan and a time estimate without training"`
}

// Run trains and evaluates all remaining runs of a plan.
func (c *sweepCommand) Run(ctx context.Context, env environment, typed given) error {
	if c.Executor == model.Slurm && c.Parallel > 1 {
		return fmt.Errorf("%w: --parallel applies only to runs on this machine; SLURM decides how many jobs run at the same time", errUsage)
	}
	where, asks, err := c.heeded()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	plan, err := c.plan(ctx, env, typed)
	if err != nil {
		return err
	}
	s := newShellSweep(c.Data, sweep.Saved{ID: plan.ID(), Plan: plan}, c.sweepOptions, env)
	if !c.Dry {
		if err = s.store(); err != nil {
			return err
		}
		defer s.root.Close()
		defer s.show()()
		if err := s.recall(); err != nil {
			return err
		}
		if where == model.Slurm {
			s.cluster = &onCluster{slurm.New(s.root.Dir(), asks), map[string]int{}}
		}
		err = s.work(ctx)
	}
	if tell := s.tell(c.JSON); err == nil {
		err = tell
	}
	return err
}

// plan returns the plan of a protocol, a user-defined sweep, a stored sweep or a file.
func (c *sweepCommand) plan(ctx context.Context, env environment, typed given) (sweep.Plan, error) {
	if err := refused(typed, c.What); err != nil {
		return sweep.Plan{}, err
	}
	protocol, whole := sweep.Paper, sweep.PaperDatasets()
	switch c.What {
	case "paper":
	case "field":
		protocol, whole = sweep.Field, []string{"shapes3d"}
	case "own":
		return c.own(ctx, c.Data)
	default:
		return readPlan(ctx, c.Data, c.What)
	}
	scale := sweep.Scale{Preset: c.Preset, Steps: c.Steps, Seeds: c.Seeds, Datasets: commas(c.Datasets), Models: commas(c.Models), Parts: commas(c.Parts)}
	if len(scale.Datasets) == 0 {
		var missing []string
		scale.Datasets, missing = sweep.Available(whole, func(d string) bool { _, err := factorsOf(ctx, d, c.Data); return err == nil })
		if len(missing) > 0 {
			fmt.Fprintf(env.err, "not installed: %s; using: %s\n", strings.Join(missing, ", "), strings.Join(scale.Datasets, ", "))
		}
	}
	p, err := protocol(scale)
	if err != nil {
		return p, err
	}
	return settled(ctx, p, c.Data)
}

// commas splits text at commas and spaces; nil for empty text.
func commas(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func readPlan(ctx context.Context, dataDir, name string) (sweep.Plan, error) {
	if saved, err := sweep.OpenStore(dataDir).Get(name); err == nil {
		return saved.Plan, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return sweep.Plan{}, fmt.Errorf("%w: %q is not paper, field, own, the ID of a sweep in %s, or a readable plan file", errUsage, name, dataDir)
	}
	defer f.Close()
	p, err := sweep.Read(f)
	if err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	return settled(ctx, p, dataDir)
}

// settled completes a plan with the factors of its datasets; it fails if one of them cannot be opened.
func settled(ctx context.Context, p sweep.Plan, dataDir string) (sweep.Plan, error) {
	return p.Settle(func(dataset string) (int, error) { return factorsOf(ctx, dataset, dataDir) })
}

// factorsOf opens a dataset and returns its number of factors.
func factorsOf(ctx context.Context, dataset, dataDir string) (int, error) {
	set, err := data.Open(ctx, dataset, dataDir)
	if err != nil {
		return 0, err
	}
	defer set.Close()
	return len(set.Info().Factors), nil
}

// finder looks up runs in a data folder.
func finder(dataDir string) sweep.Lookup { return finderIn(filepath.Join(dataDir, "runs")) }

// finderIn looks up runs in a folder that contains run folders.
func finderIn(runs string) sweep.Lookup {
	return func(id string) (sweep.Found, bool) {
		f, err := folder.Open(filepath.Join(runs, id))
		if err != nil {
			return sweep.Found{}, false
		}
		defer f.Close()
		found, err := look(f)
		if err != nil {
			found.Problem = err.Error()
		}
		return found, found.Run.ID != ""
	}
}

// shellSweep runs a plan in this shell. Each run is a separate process, so that a crash affects no other run.
type shellSweep struct {
	dataDir  string
	root     *folder.Data // nil if nothing is trained
	saved    sweep.Saved
	options  sweepOptions
	env      environment
	cluster  *onCluster      // nil if runs are trained on this machine
	recorded map[string]bool // runs saved in the --records folder
	retried  map[string]int  // times this shell took over a queued or failed run, by run
	doing    map[string]bool // runs that processes of this shell train or evaluate

	mu     sync.Mutex
	stand  sweep.Board       // as of the last start of a task
	failed map[string]string // evaluations that failed in this shell, by run
	now    map[string]string // current tasks, by run
	said   string            // the tasks in the last plain line
	saidAt time.Time
}

func newShellSweep(dataDir string, saved sweep.Saved, o sweepOptions, env environment) *shellSweep {
	return &shellSweep{dataDir: dataDir, saved: saved, options: o, env: env, recorded: map[string]bool{}, retried: map[string]int{},
		doing: map[string]bool{}, failed: map[string]string{}, now: map[string]string{}}
}

// store saves the plan in the data folder, which it creates if necessary.
func (s *shellSweep) store() (err error) {
	if s.root, err = folder.Root(s.dataDir); err != nil {
		return err
	}
	s.dataDir = s.root.Dir()
	if s.saved, err = sweep.OpenStore(s.dataDir).Save(s.saved.Plan); err != nil {
		return errors.Join(err, s.root.Close())
	}
	fmt.Fprintf(s.env.err, "sweep %s: at most %d runs; run the same command to resume\n", s.saved.ID, s.saved.Plan.Runs())
	return nil
}

// show marks the sweep as running for the pages until end is called. Of several shells only one holds the mark.
func (s *shellSweep) show() (end func()) {
	lock, err := folder.LockPath(sweep.OpenStore(s.dataDir).WorkerLock(s.saved.ID), "sweep "+s.saved.ID)
	if err != nil {
		return func() {}
	}
	return func() { lock.Unlock() }
}

// board returns the state of the sweep, including the evaluations that failed in this shell.
func (s *shellSweep) board() sweep.Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	find := finder(s.dataDir)
	return s.saved.Plan.Look(func(id string) (sweep.Found, bool) {
		found, ok := find(id)
		if !ok && s.options.Dry && s.options.Records != "" { // a real sweep first copies records into the data folder
			found, ok = finderIn(s.options.Records)(id)
		}
		if why := s.failed[id]; ok && why != "" && found.Problem == "" {
			found.Problem = why
		}
		return found, ok
	})
}

// work runs all possible tasks, up to --parallel at a time, until none are left or ctx ends.
func (s *shellSweep) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan deed)
	var failure error
	for {
		more := false
		if failure == nil && ctx.Err() == nil {
			more, failure = s.begin(ctx, ended)
		}
		if failure != nil {
			cancel() // the other runs save and end
		}
		switch {
		case len(s.doing) > 0:
			failure = errors.Join(failure, s.end(<-ended))
		case failure != nil:
			return failure
		case ctx.Err() != nil:
			return fmt.Errorf("the sweep was interrupted; run the same command to resume: %w", ctx.Err())
		case !more:
			return nil
		}
	}
}

// deed is the result of a task on a run; an error ends the sweep.
type deed struct {
	id  string
	err error
}

func (s *shellSweep) end(d deed) error {
	delete(s.doing, d.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, d.id)
	return d.err
}

// begin starts as many runs as there are free places. If there is nothing to start, it waits for runs of other processes. It returns false
// if nothing is running and nothing is left.
func (s *shellSweep) begin(ctx context.Context, ended chan<- deed) (more bool, err error) {
	b, theirs := s.board(), false
	s.mu.Lock()
	s.stand = b
	s.mu.Unlock()
	s.record(b)
	if s.cluster != nil {
		if theirs, err = s.submit(ctx, b); err != nil {
			return false, err
		}
	}
	for len(s.doing) < s.options.Parallel {
		item, ok := s.next(b)
		if !ok {
			break
		}
		s.doing[item.ID] = true
		go func() { ended <- deed{item.ID, s.do(ctx, item)} }()
	}
	if len(s.doing) > 0 {
		return true, nil
	}
	if b.Count(sweep.Live, sweep.Unmeasured) == 0 && !theirs {
		return false, nil
	}
	return true, s.wait(ctx)
}

// next returns the first run with a possible task. Evaluations come first, because choices depend on them.
func (s *shellSweep) next(b sweep.Board) (sweep.Standing, bool) {
	stages := []sweep.Stage{sweep.Unmeasured, sweep.Halted, sweep.Planned, sweep.Live, sweep.Failed}
	if s.cluster != nil {
		stages = stages[:1]
	}
	for _, stage := range stages {
		for _, item := range b.Items {
			if item.Stage != stage || s.doing[item.ID] || item.Next(s.worker(), false, s.retried[item.ID]) == sweep.Wait || s.busy(item) {
				continue
			}
			if stage == sweep.Live || stage == sweep.Failed {
				s.retried[item.ID]++
			}
			return item, true
		}
	}
	return sweep.Standing{}, false
}

// worker returns the rules for a shell: it also continues runs that somebody stopped.
func (s *shellSweep) worker() sweep.Worker {
	w := sweep.Worker{Stopped: true, Orphans: true, Retry: s.options.Retry}
	if s.cluster != nil {
		w.Most = mostTries
	}
	return w
}

// busy reports whether a process is training an item or, if the item is due for evaluation, evaluating it.
func (s *shellSweep) busy(item sweep.Standing) bool {
	switch item.Stage {
	case sweep.Planned, sweep.Halted: // training takes the run's lock and reports who holds it
		return false
	case sweep.Unmeasured:
		return s.has(item.ID, (*folder.Folder).Evaluator)
	}
	return s.has(item.ID, (*folder.Folder).Holder)
}

// has reports whether a process is training a run (who is Holder) or evaluating it (who is Evaluator).
func (s *shellSweep) has(id string, who func(*folder.Folder) (folder.Holder, bool)) bool {
	f, err := s.root.Open(id)
	if err != nil {
		return false
	}
	defer f.Close()
	_, some := who(f)
	return some
}

// wait pauses while another process works on the remaining runs.
func (s *shellSweep) wait(ctx context.Context) error {
	who := "another process"
	if s.cluster != nil {
		who = "SLURM"
	}
	s.say("", "waiting for "+who+" to finish the remaining runs")
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
	return nil
}

// do trains or evaluates one run. It returns only errors that end the sweep; the board shows failed runs.
func (s *shellSweep) do(ctx context.Context, item sweep.Standing) error {
	dir := s.root.RunDir(item.ID)
	if item.Stage == sweep.Unmeasured {
		s.say(item.ID, "evaluating "+item.Name)
		if err := s.process(ctx, item.ID, nil, append([]string{"eval", dir, "--data", s.dataDir, "--engine", s.options.Engine}, item.EvalFlags()...)...); err != nil && ctx.Err() == nil && !s.has(item.ID, (*folder.Folder).Evaluator) {
			s.mu.Lock()
			s.failed[item.ID] = "trained, but its evaluation failed: " + err.Error()
			s.mu.Unlock()
		}
		return nil
	}
	if item.Stage == sweep.Planned {
		cfg := item.Config
		cfg.Engine = s.options.Engine
		f, err := folder.Create(dir, cfg, item.Name)
		if err != nil && !errors.Is(err, model.ErrConflict) {
			return err
		}
		if err == nil {
			f.Close()
		}
	}
	follow := func(status model.Status) {
		s.say(item.ID, fmt.Sprintf("%s  step %d of %d  %.0f images/s  %s left for this run", item.Name, status.Step, item.Config.Steps, status.ImagesPerSecond, left(status)))
	}
	if err := s.process(ctx, item.ID, follow, "train", "--run", dir, "--data", s.dataDir); err != nil && ctx.Err() == nil {
		fmt.Fprintf(s.env.err, "%s: %v\n", item.Name, err)
		if found, ok := finder(s.dataDir)(item.ID); !ok || found.Run.State != model.Failed && found.Run.State != model.Finished {
			return fmt.Errorf("run %s exited without a final state: %w", item.ID, err)
		}
	}
	return nil
}

// process runs this program on a run, with its output in the run's log. A process group of its own shields it from Ctrl-C in the terminal:
// it receives one signal, from us, to save and end.
func (s *shellSweep) process(ctx context.Context, id string, follow func(model.Status), args ...string) error {
	f, err := s.root.Open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	log, err := f.OpenLog()
	if err != nil {
		return err
	}
	defer log.Close()
	program, err := host.Self()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), compute.Share(s.options.Parallel)...)
	host.Group(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Minute
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return s.why(f, err)
		case <-tick.C:
			if status, err := f.Status(); err == nil && follow != nil {
				follow(status)
			}
		}
	}
}

// why adds the last line of the run's log to the error of a process.
func (s *shellSweep) why(f *folder.Folder, err error) error {
	if err == nil {
		return nil
	}
	text, _ := f.Log(1)
	if text = strings.TrimSpace(text); text == "" {
		return err
	}
	return fmt.Errorf("%w; last log line: %s", err, text)
}

// say shows the progress of all current tasks in one line: updated in place on a terminal, otherwise printed every ten seconds and whenever
// the tasks change.
func (s *shellSweep) say(id, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[id] = what
	if id != "" {
		delete(s.now, "") // waiting is over
	}
	b := s.stand
	line := fmt.Sprintf("%d of %d done", b.Count(sweep.Done, sweep.Failed), b.Total()-b.Count(sweep.Out))
	if n := b.Count(sweep.Failed); n > 0 {
		line += fmt.Sprintf(", %d failed", n)
	}
	if seconds, known := b.Left(); known {
		line += fmt.Sprintf(", about %v left", time.Duration(seconds)*time.Second/time.Duration(s.options.Parallel))
	}
	var all, tasks []string
	for _, id := range slices.Sorted(maps.Keys(s.now)) {
		task, _, _ := strings.Cut(s.now[id], "  ")
		all, tasks = append(all, s.now[id]), append(tasks, task)
	}
	line += "  " + strings.Join(all, "  |  ")
	task := strings.Join(tasks, "|")
	switch {
	case isTerminal(s.env.err):
		fmt.Fprintf(s.env.err, "\r\x1b[K%s", line)
	case task != s.said || time.Since(s.saidAt) >= 10*time.Second:
		s.said, s.saidAt = task, time.Now()
		fmt.Fprintln(s.env.err, line)
	}
}

// tell prints the state of the sweep. It returns an error if runs failed or wait for a choice that cannot be made.
func (s *shellSweep) tell(asJSON bool) error {
	b := s.board()
	if asJSON {
		record := sweep.Status{Saved: s.saved, Board: b}.Record()
		if s.options.Dry {
			estimate := s.estimate(b).Record()
			record.Estimate = &estimate
		}
		if err := printJSON(s.env.out, record); err != nil {
			return err
		}
	} else {
		s.print(s.env.out, b)
	}
	failed := b.Count(sweep.Failed)
	if s.options.Dry || failed == 0 && len(b.Problems()) == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d runs failed; use --retry to retry them", strconv.Itoa(failed), b.Total())
}

func (s *shellSweep) print(w io.Writer, b sweep.Board) {
	if isTerminal(s.env.err) {
		fmt.Fprintln(s.env.err)
	}
	for _, c := range b.Choices {
		if c.Chosen != "" {
			fmt.Fprintf(w, "chosen for %s on %s: %s %s\n", c.Model, c.Dataset, c.Axis.Field, c.Chosen)
		}
	}
	for _, why := range b.Problems() {
		fmt.Fprintln(w, why)
	}
	for _, item := range b.Items {
		switch {
		case item.Stage == sweep.Failed:
			fmt.Fprintf(w, "failed: %s (%s): %s\n", item.Name, item.ID, item.Problem)
		case s.options.Dry:
			fmt.Fprintf(w, "%-11s %s\n", item.Stage, item.Name)
		}
	}
	if s.options.Dry {
		fmt.Fprintf(w, "%s; nothing was stored\n", told(s.estimate(b)))
		return
	}
	if n := b.Count(sweep.Out); n > 0 {
		fmt.Fprintf(w, "skipped %d runs: their settings lost the race\n", n)
	}
	fmt.Fprintf(w, "sweep %s: %d of %d runs are done; `slotscope report %[1]s` writes the tables\n", s.saved.ID, b.Count(sweep.Done), b.Total())
}

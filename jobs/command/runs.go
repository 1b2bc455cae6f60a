package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/measure/report"
	"slotscope/model/query"
)

type runsCommand struct {
	List   runsList   `cmd:"" help:"list all runs, or those that match a query"`
	Show   runsShow   `cmd:"" help:"print all details of a run"`
	Stop   runsStop   `cmd:"" help:"stop runs after saving a checkpoint; remove queued runs from the queue"`
	Tag    runsTag    `cmd:"" help:"tag, star and archive runs"`
	Delete runsDelete `cmd:"" help:"permanently delete runs with their checkpoints and points"`
	Logs   runsLogs   `cmd:"" help:"print a run's log"`
	Wait   runsWait   `cmd:"" help:"wait for runs to end; exit status 0 if all finished, 1 if any failed, 3 if any were stopped, 124 after --timeout"`
}

// runsFlags are the flags of every subcommand of runs. All of them work on the runs' folders, with or without a running server.
type runsFlags struct {
	dataFlag
	jsonFlag
}

// oneRun is the argument of a subcommand for a single run.
type oneRun struct {
	Name string `arg:"" name:"run" help:"run ID or folder"`
	runsFlags
}

// severalRuns are the arguments of a subcommand for several runs: a query or IDs.
type severalRuns struct {
	Words []string `arg:"" query:"" name:"query|run" help:"query (see docs/query.md) or run IDs"`
	runsFlags
}

// changedRuns are the arguments of a subcommand that changes several runs.
type changedRuns struct {
	severalRuns
	Yes bool `help:"change all runs that match a query; without it they are only listed"`
}

// lasting are series that are measured only occasionally, so that the last points of a run may lack them.
var lasting = []string{"psnr/eval", "infom/eval", "infoe/eval", "infoc/eval", "owned/factors", "owned/coverage"}

// overviews reads the folder of every run: the data of lists, the last values of the named series, however old, and optionally the scores.
// It reports damaged folders on env.err and skips them.
func overviews(ctx context.Context, env environment, dataDir string, names []string, scores bool) ([]model.Overview, error) {
	data, err := folder.Root(dataDir)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	ids, err := data.Runs()
	if err != nil {
		return nil, err
	}
	all := make([]model.Overview, 0, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := overviewOf(data, id, names, scores)
		if err != nil {
			fmt.Fprintln(env.err, "slotscope:", sentence(err))
			continue
		}
		all = append(all, o)
	}
	return all, nil
}

func overviewOf(data *folder.Data, id string, names []string, scores bool) (o model.Overview, err error) {
	f, err := data.Open(id)
	if err != nil {
		return o, err
	}
	defer f.Close()
	if o.Run, err = f.Standing(); err != nil {
		return o, err
	}
	if o.Values, err = f.LastValues(names...); err != nil {
		return o, err
	}
	if e, err := f.Evaluation(); err == nil {
		o.Evaluation = e.State
	}
	if !scores {
		return o, nil
	}
	switch s, err := f.Scores(); {
	case err == nil:
		o.Scores = report.Values(s)
	case !errors.Is(err, model.ErrNotFound):
		return o, err
	}
	return o, nil
}

// asked returns the runs that match a command's query, with the values that the query and the named fields need.
func (f runsFlags) asked(ctx context.Context, env environment, words []string, fields ...string) (chosen []model.Overview, c *query.Catalogue, err error) {
	text := strings.Join(words, " ")
	all, err := overviews(ctx, env, f.Data, nil, false)
	if err != nil {
		return nil, nil, err
	}
	c = query.New(append(namesIn(all), lasting...)...)
	q, err := c.Parse(text)
	if err != nil {
		return nil, nil, model.Invalid{"query": err.Error()}
	}
	var series []string
	scores := false
	for _, name := range append(q.Fields(), fields...) {
		known, ok := c.Field(name)
		switch {
		case !ok:
			return nil, nil, model.Invalid{"columns": fmt.Sprintf("unknown column %q; docs/query.md lists the columns", name)}
		case known.Group == query.OfLastValue:
			series = append(series, known.Name)
		case known.Group == query.OfScores || known.Name == "scored":
			scores = true
		}
	}
	if len(series) > 0 || scores || f.JSON {
		if all, err = overviews(ctx, env, f.Data, series, scores || f.JSON); err != nil {
			return nil, nil, err
		}
	}
	return q.Choose(all, time.Now()), c, nil
}

func namesIn(all []model.Overview) (names []string) {
	seen := map[string]bool{}
	for _, o := range all {
		for name := range o.Values {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

type runsList struct {
	Query   []string `arg:"" optional:"" query:"" help:"query (see docs/query.md); default: all runs"`
	Columns string   `default:"state,step,name" placeholder:"NAMES" help:"comma-separated columns after the ID (see docs/query.md)"`
	Sort    string   `default:"-created" placeholder:"NAME" help:"sort column; a leading - sorts in descending order"`
	Limit   int      `default:"0" placeholder:"N" help:"maximum number of runs; 0 for all"`
	runsFlags
}

func (o *runsList) Run(ctx context.Context, env environment) error {
	names := strings.FieldsFunc(o.Columns, func(r rune) bool { return r == ',' || r == ' ' })
	by, down := strings.CutPrefix(o.Sort, "-")
	chosen, c, err := o.asked(ctx, env, o.Query, append(slices.Clone(names), by)...)
	if err != nil {
		return err
	}
	now, order := time.Now(), field(c, by)
	slices.SortStableFunc(chosen, func(a, b model.Overview) int {
		if c := order.Compare(&a, &b, now, down); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	if o.Limit > 0 {
		chosen = chosen[:min(o.Limit, len(chosen))]
	}
	if o.JSON {
		return printJSON(env.out, map[string]any{"runs": chosen})
	}
	return table(env.out, c, chosen, names)
}

// field returns a field that asked has already checked.
func field(c *query.Catalogue, name string) query.Field {
	f, _ := c.Field(name)
	return f
}

func table(w io.Writer, c *query.Catalogue, runs []model.Overview, columns []string) error {
	out, now := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), time.Now()
	fmt.Fprint(out, "ID")
	for _, name := range columns {
		fmt.Fprint(out, "\t", strings.ToUpper(field(c, name).Name))
	}
	fmt.Fprintln(out)
	for i := range runs {
		fmt.Fprint(out, runs[i].ID)
		for _, name := range columns {
			text := oneLine(field(c, name).Shown(&runs[i], now))
			if text == "" {
				text = "–"
			}
			fmt.Fprint(out, "\t", text)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

func (o oneRun) open() (*folder.Folder, error) {
	dir, err := runDir(o.Data, o.Name)
	if err != nil {
		return nil, err
	}
	return folder.Open(dir)
}

type runsShow struct{ oneRun }

func (o *runsShow) Run(env environment) error {
	f, err := o.open()
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := folder.Root(o.Data)
	if err != nil {
		return err
	}
	defer data.Close()
	run, err := overviewOf(data, f.ID(), lasting, true)
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(env.out, run)
	}
	out, now := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0), time.Now()
	c := query.Of([]model.Overview{run})
	for _, group := range query.Groups {
		fmt.Fprintf(out, "%s\n", strings.ToUpper(group))
		for _, f := range c.Fields() {
			if text := f.Shown(&run, now); f.Group == group && text != "" {
				fmt.Fprintf(out, "  %s\t%s\n", f.Name, strings.TrimSpace(oneLine(text)+" "+shownUnit(f)))
			}
		}
	}
	return out.Flush()
}

// shownUnit returns the unit to print after a value; durations include theirs.
func shownUnit(f query.Field) string {
	if f.Kind == query.Duration {
		return ""
	}
	return f.Unit
}

// selected returns the IDs of the runs that a command names or that match its query. If unsure is not empty, it names the change, and
// selected returns an error that asks for --yes before the runs that match a query are changed.
func (o severalRuns) selected(ctx context.Context, env environment, unsure string) ([]string, error) {
	if err := placeShipped(o.Data, o.Words...); err != nil {
		return nil, err
	}
	named := true
	for _, word := range o.Words {
		_, err := os.Stat(filepath.Join(o.Data, "runs", word))
		named = named && model.ValidID(word) && err == nil
	}
	if named {
		return o.Words, nil
	}
	chosen, c, err := o.asked(ctx, env, o.Words)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no run matches %q: %w", strings.Join(o.Words, " "), model.ErrNotFound)
	}
	if unsure != "" {
		if err := table(env.err, c, chosen, []string{"state", "step", "name"}); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the query matches %s; add --yes to %s them", errUsage, counted(len(chosen), "run"), unsure)
	}
	ids := make([]string, len(chosen))
	for i, run := range chosen {
		ids[i] = run.ID
	}
	return ids, nil
}

// outcome is the result for a run.
type outcome struct {
	Run   string      `json:"run"`
	State model.State `json:"state,omitempty"`
	Error string      `json:"error,omitempty"`
}

// each calls do for the selected runs and prints the outcome of each; it fails if any call failed.
func (o changedRuns) each(ctx context.Context, env environment, deed, did string, do func(data *folder.Data, id string) error) error {
	if o.Yes {
		deed = ""
	}
	ids, err := o.selected(ctx, env, deed)
	if err != nil {
		return err
	}
	data, err := folder.Root(o.Data)
	if err != nil {
		return err
	}
	defer data.Close()
	all, failures := []outcome{}, 0
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(data, id); err != nil {
			failures++
			all = append(all, outcome{Run: id, Error: sentence(err)})
			fmt.Fprintln(env.err, "slotscope:", sentence(err))
			continue
		}
		all = append(all, outcome{Run: id})
		if !o.JSON {
			fmt.Fprintln(env.out, id, did)
		}
	}
	if o.JSON {
		if err := printJSON(env.out, map[string]any{"runs": all}); err != nil {
			return err
		}
	}
	if failures > 0 {
		return exitStatus(failed)
	}
	return nil
}

type runsStop struct{ changedRuns }

func (o *runsStop) Run(ctx context.Context, env environment) error {
	return o.each(ctx, env, "stop", "is stopping", func(data *folder.Data, id string) error {
		f, err := data.Open(id)
		if err != nil {
			return err
		}
		defer f.Close()
		return stopRun(f)
	})
}

// stopRun signals a run's process to save and end, or removes a run from the queue.
func stopRun(f *folder.Folder) error {
	if f.Locked() {
		return f.Signal(syscall.SIGTERM)
	}
	run, err := f.Standing()
	if err != nil {
		return err
	}
	if run.State != model.Queued {
		return fmt.Errorf("run %s is not running; it is %s: %w", f.ID(), run.State, model.ErrConflict)
	}
	if job, err := f.Job(); err == nil && job.Executor == model.Slurm && job.ID != "" {
		return fmt.Errorf("run %s is queued as SLURM job %s; stop it on the runs page, or with scancel %s: %w", f.ID(), job.ID, job.ID, model.ErrConflict)
	}
	lock, err := f.Lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	status := run.Status
	status.State, status.Reason, status.Ended = model.Stopped, "Removed from the queue.", now()
	return f.SetStatus(status)
}

type runsTag struct {
	changedRuns
	Add       string `placeholder:"TAGS" help:"comma-separated tags to add"`
	Remove    string `placeholder:"TAGS" help:"comma-separated tags to remove"`
	Star      bool   `help:"star the runs"`
	Unstar    bool   `help:"unstar the runs"`
	Archive   bool   `help:"archive the runs; they are listed only if a query contains archived"`
	Unarchive bool   `help:"unarchive the runs"`
}

func (o *runsTag) Run(ctx context.Context, env environment) error {
	marks := model.Marks{Add: listed(o.Add), Remove: listed(o.Remove)}
	for _, pair := range []struct {
		yes, no bool
		names   string
		to      **bool
	}{{o.Star, o.Unstar, "--star and --unstar", &marks.Star}, {o.Archive, o.Unarchive, "--archive and --unarchive", &marks.Archived}} {
		if pair.yes && pair.no {
			return fmt.Errorf("%w: %s cannot be combined", errUsage, pair.names)
		}
		if pair.yes || pair.no {
			*pair.to = &pair.yes
		}
	}
	if marks.Star == nil && marks.Archived == nil && len(marks.Add)+len(marks.Remove) == 0 {
		return fmt.Errorf("%w: runs tag needs at least one of --add, --remove, --star, --unstar, --archive and --unarchive", errUsage)
	}
	if _, _, _, err := marks.Apply("", false, false); err != nil {
		return err
	}
	return o.each(ctx, env, "tag", "is updated", func(data *folder.Data, id string) error {
		f, err := data.Open(id)
		if err != nil {
			return err
		}
		defer f.Close()
		m, err := f.Meta()
		if err == nil {
			m.Tags, m.Star, m.Archived, err = marks.Apply(m.Tags, m.Star, m.Archived)
		}
		if err != nil {
			return err
		}
		return f.SetMeta(m)
	})
}

func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

type runsDelete struct{ changedRuns }

func (o *runsDelete) Run(ctx context.Context, env environment) error {
	return o.each(ctx, env, "delete", "is deleted", func(data *folder.Data, id string) error {
		f, err := data.Open(id)
		if err == nil {
			defer f.Close()
			run, err := f.Standing()
			if err == nil && !run.State.Ended() && run.State != "" {
				return fmt.Errorf("run %s is %s; stop it before deleting it: %w", id, run.State, model.ErrConflict)
			}
			if holder, busy := f.Evaluator(); busy {
				return fmt.Errorf("run %s is being evaluated by %s; stop that before deleting it: %w", id, holder, model.ErrConflict)
			}
		} else if errors.Is(err, model.ErrNotFound) {
			return err
		}
		return data.Remove(id) // even if the folder is damaged
	})
}

type runsLogs struct {
	oneRun
	Lines  int  `default:"200" placeholder:"N" help:"number of lines to print, from the end"`
	Follow bool `help:"keep printing new lines until the run ends"`
}

func (o *runsLogs) Run(ctx context.Context, env environment) error {
	f, err := o.open()
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := f.Log(max(1, o.Lines))
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(env.out, map[string]any{"run": f.ID(), "log": text})
	}
	fmt.Fprint(env.out, text)
	if !o.Follow {
		return nil
	}
	info, err := os.Stat(f.LogPath())
	at := int64(0)
	if err == nil {
		at = info.Size()
	}
	for {
		run, err := f.Standing()
		if err != nil {
			return err
		}
		if at, err = copyFrom(env.out, f.LogPath(), at); err != nil || run.State.Ended() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// copyFrom prints a file from an offset on, and returns the offset of its end.
func copyFrom(w io.Writer, path string, at int64) (int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	defer file.Close()
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return at, err
	}
	n, err := io.Copy(w, file)
	return at + n, err
}

// Exit codes of wait in addition to done and failed.
const (
	waitStopped exitStatus = 3   // no run failed, but some were stopped
	waitTimeout exitStatus = 124 // as in timeout(1)
)

type runsWait struct {
	severalRuns
	Timeout time.Duration `default:"0" placeholder:"DURATION" help:"time limit, e.g. 2h; 0 waits without limit"`
	Poll    time.Duration `default:"1s" placeholder:"DURATION" help:"time between checks"`
}

// Run waits until every selected run has ended.
func (o *runsWait) Run(ctx context.Context, env environment) error {
	ids, err := o.selected(ctx, env, "")
	if err != nil {
		return err
	}
	data, err := folder.Root(o.Data)
	if err != nil {
		return err
	}
	defer data.Close()
	var deadline <-chan time.Time
	if o.Timeout > 0 {
		timer := time.NewTimer(o.Timeout)
		defer timer.Stop()
		deadline = timer.C
	}
	states := map[string]model.State{}
	for {
		if err := lookAll(env, data, ids, states); err != nil {
			return err
		}
		if code, over := verdictOf(ids, states); over {
			return o.waited(env, ids, states, code)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return o.waited(env, ids, states, waitTimeout)
		case <-time.After(max(10*time.Millisecond, o.Poll)):
		}
	}
}

// lookAll updates the states of the runs and reports changes on env.err. A deleted run counts as failed.
func lookAll(env environment, data *folder.Data, ids []string, states map[string]model.State) error {
	for _, id := range ids {
		if states[id].Ended() {
			continue
		}
		f, err := data.Open(id)
		if errors.Is(err, model.ErrNotFound) && states[id] != "" {
			fmt.Fprintln(env.err, id, "was deleted")
			states[id] = model.Failed
			continue
		}
		if err != nil {
			return err
		}
		run, err := f.Standing()
		f.Close()
		if err != nil {
			return err
		}
		if states[id] != run.State {
			fmt.Fprintln(env.err, strings.TrimSpace(fmt.Sprintf("%s %s, step %d of %d. %s", id, run.State, run.Step, run.Config.Steps, oneLine(run.Reason))))
			states[id] = run.State
		}
	}
	return nil
}

// verdictOf returns the exit code for the final states of runs; false while any run has not ended.
func verdictOf(ids []string, states map[string]model.State) (exitStatus, bool) {
	code := exitStatus(done)
	for _, id := range ids {
		switch s := states[id]; {
		case !s.Ended():
			return 0, false
		case s == model.Failed || s == model.Interrupted:
			code = failed
		case s == model.Stopped && code == done:
			code = waitStopped
		}
	}
	return code, true
}

func (o *runsWait) waited(env environment, ids []string, states map[string]model.State, code exitStatus) error {
	if o.JSON {
		all := []outcome{}
		for _, id := range ids {
			all = append(all, outcome{Run: id, State: states[id]})
		}
		if err := printJSON(env.out, map[string]any{"runs": all, "timed_out": code == waitTimeout}); err != nil {
			return err
		}
	}
	if code == done {
		return nil
	}
	return code
}

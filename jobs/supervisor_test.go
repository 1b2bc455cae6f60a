//go:build linux

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"slotscope/db"
	"slotscope/model"
	"slotscope/model/folder"
)

var background = context.Background()

// bench is a data folder with a supervisor that can be replaced, as a server is by the next.
type bench struct {
	*Supervisor
	t     *testing.T
	data  *folder.Data
	store *db.DB
	opt   Options
	said  *lines
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	data, err := folder.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(t.Context(), filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, data: data, store: store, opt: options(data, store), said: &lines{}}
	b.opt.Log = slog.New(slog.NewTextHandler(b.said, nil))
	for _, c := range change {
		c(&b.opt)
	}
	b.open()
	t.Cleanup(func() {
		b.Close()
		b.killAll()
		store.Close()
		data.Close()
		if t.Failed() {
			t.Log(b.said.text.String())
		}
	})
	return b
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.Supervisor, err = New(b.t.Context(), b.opt); err != nil {
		b.t.Fatal(err)
	}
}

// restart is the end of one server and the beginning of the next.
func (b *bench) restart() {
	b.t.Helper()
	b.Close()
	b.open()
}

// killAll ends the processes that a test leaves behind.
func (b *bench) killAll() {
	names, _ := b.data.Runs()
	for _, id := range names {
		if f, err := b.data.Open(id); err == nil {
			f.Signal(os.Kill)
			f.SignalEvaluation(os.Kill)
			f.Close()
		}
	}
}

func config(steps int) model.Config {
	cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	cfg.Steps, cfg.CheckpointEvery, cfg.Engine = steps, 10, "cpu"
	return cfg
}

func (b *bench) create(name string, steps int) string {
	b.t.Helper()
	r, err := b.Create(b.t.Context(), config(steps), name)
	if err != nil {
		b.t.Fatal(err)
	}
	if r.State != model.Queued || r.Created.IsZero() {
		b.t.Fatalf("created as %+v", r)
	}
	return r.ID
}

func (b *bench) get(id string) model.Run {
	b.t.Helper()
	r, err := b.Get(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// await waits for a run to be as wanted; it is what a page does.
func (b *bench) await(id, what string, ok func(model.Run) bool) model.Run {
	b.t.Helper()
	changes, cancel := b.Watch(id)
	defer cancel()
	for deadline := time.After(30 * time.Second); ; {
		r := b.get(id)
		if ok(r) {
			return r
		}
		select {
		case <-changes:
		case <-deadline:
			log, _ := b.Log(b.t.Context(), id, 20)
			b.t.Fatalf("no %s after 30 s: %+v\nlog: %s", what, r.Status, log)
		}
	}
}

func (b *bench) awaitState(id string, s model.State) model.Run {
	b.t.Helper()
	return b.await(id, string(s), func(r model.Run) bool { return r.State == s })
}

func (b *bench) awaitStep(id string, step int) model.Run {
	b.t.Helper()
	return b.await(id, fmt.Sprint("step ", step), func(r model.Run) bool { return r.Step >= step })
}

// complete fails unless points.jsonl and the index both hold every step from 1 to last exactly once, with the same values.
func (b *bench) complete(id string, last int) {
	b.t.Helper()
	fromFile := readFile(b.t, b.data, id)
	var page model.PointPage
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if page, err = b.store.Points(b.t.Context(), id, model.PointQuery{Limit: 50_000}); err != nil {
			b.t.Fatal(err)
		}
		if page.Head >= last || time.Now().After(deadline) {
			break
		}
	}
	compare(b.t, fromFile, page, last)
}

func readFile(t *testing.T, data *folder.Data, id string) (all []model.Point) {
	t.Helper()
	f, err := data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for offset := int64(0); ; {
		points, next, err := f.Tail(offset)
		if err != nil {
			t.Fatal(err)
		}
		if next == offset {
			return all
		}
		all, offset = append(all, points...), next
	}
}

func compare(t *testing.T, fromFile []model.Point, page model.PointPage, last int) {
	t.Helper()
	want := map[string][]model.Sample{}
	for i, p := range fromFile {
		if p.Step != i+1 {
			t.Fatalf("points.jsonl: line %d is of step %d", i+1, p.Step)
		}
		for name, v := range p.Values {
			want[name] = append(want[name], model.Sample{Step: p.Step, Value: v})
		}
	}
	if len(fromFile) != last || page.Head != last || page.Count != last {
		t.Fatalf("points.jsonl has %d steps, the index %d up to %d; want %d", len(fromFile), page.Count, page.Head, last)
	}
	if diff := cmp.Diff(want, page.Series, cmpopts.EquateNaNs()); diff != "" {
		t.Fatal("the index and points.jsonl differ: ", diff)
	}
}

func TestEveryEnding(t *testing.T) {
	const steps = 30
	for _, c := range []struct {
		name   string // of the run, which is what goes wrong in it
		act    func(b *bench, id string)
		state  model.State
		reason string // in it
		kept   int    // step of the checkpoint that is left
	}{
		{"well", nil, model.Finished, "All steps", steps},
		{"error@7", nil, model.Failed, "The loss is not a number at step 7.", 0},
		{"panic@17", nil, model.Failed, "exited with status 2 and no message. Last log line: \"panic: the tensor is upside down\". The checkpoint of step 10 is kept.", 10},
		{"exit@13", nil, model.Failed, "exited with status 3 and no message. Last log line: \"no such luck\"", 10},
		{"kill@25", nil, model.Failed, "killed (signal 9); the machine may have run out of memory. The checkpoint of step 20 is kept.", 20},
		{"kill@5", nil, model.Failed, "No checkpoint was saved.", 0},
		{"stop", func(b *bench, id string) { b.awaitStep(id, 5); b.stop(id) }, model.Stopped, "saved", -1},
		{"stop@queue", func(b *bench, id string) { b.stop(id) }, model.Stopped, "Removed from the queue.", 0},
		{"slow", func(b *bench, id string) { b.awaitChild(id); b.stop(id) }, model.Stopped, "Stopped before it started.", 0},
		{"deaf", func(b *bench, id string) { b.awaitStep(id, 5); b.force(id) }, model.Interrupted, "Killed after", -1},
		{"killed by a visitor", func(b *bench, id string) { b.awaitStep(id, 15); b.kill(id) }, model.Failed, "signal 9", -1},
		{"killed unseen", func(b *bench, id string) {
			b.awaitStep(id, 15)
			b.Close()
			b.kill(id)
			b.open()
		}, model.Interrupted, "exited unexpectedly", -1},
		{"killed after a restart", func(b *bench, id string) { b.awaitStep(id, 15); b.restart(); b.kill(id) }, model.Interrupted, "exited unexpectedly", -1},
		{"finished unseen", func(b *bench, id string) {
			b.awaitStep(id, 5)
			b.Close()
			time.Sleep(steps * 8 * time.Millisecond)
			b.open()
		}, model.Finished, "All steps", steps},
		{"restarted over", func(b *bench, id string) { b.awaitStep(id, 5); b.restart(); b.restart() }, model.Finished, "All steps", steps},
		{"stopped after a restart", func(b *bench, id string) { b.awaitStep(id, 5); b.restart(); b.stop(id) }, model.Stopped, "saved", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			total := steps
			b := newBench(t, func(o *Options) {
				if c.act != nil && !strings.Contains(c.name, "finished") && !strings.Contains(c.name, "over") {
					total = 100_000
				}
			})
			ahead := ""
			if c.name == "stop@queue" {
				ahead = b.create("in front", total)
				b.awaitState(ahead, model.Running)
			}
			id := b.create(c.name, total)
			if c.act != nil {
				c.act(b, id)
			}
			r := b.await(id, "end", func(r model.Run) bool { return r.State.Ended() })
			if r.State != c.state || !strings.Contains(r.Reason, c.reason) || r.Ended.IsZero() || r.SecondsLeft != 0 {
				t.Errorf("ended as %s: %q", r.State, r.Reason)
			}
			if c.kept >= 0 && r.Checkpoint != c.kept {
				t.Errorf("checkpoint %d is kept, not %d", r.Checkpoint, c.kept)
			}
			b.sameOnDisk(r)
			if n := len(readFile(t, b.data, id)); n > 0 {
				if page, _ := b.Points(t.Context(), id, model.PointQuery{}); page.Head != n {
					t.Errorf("said to have ended with %d of %d steps stored", page.Head, n)
				}
				b.complete(id, n)
				if r.Step != n {
					t.Errorf("it says step %d; %d are stored", r.Step, n)
				}
			}
			if ahead != "" {
				b.stop(ahead)
				b.awaitState(ahead, model.Stopped)
			}
			b.resumes(r)
		})
	}
}

// sameOnDisk compares what state.json says with what is listed.
func (b *bench) sameOnDisk(r model.Run) {
	b.t.Helper()
	f, err := b.data.Open(r.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	status, err := f.Status()
	if status.State != r.State || status.Reason != r.Reason || status.Step != r.Step || err != nil {
		b.t.Errorf("listed as %+v, on disk %+v, %v", r.Status, status, err)
	}
}

// resumes goes on with an ended run, well this time, and wants every step once.
func (b *bench) resumes(r model.Run) {
	b.t.Helper()
	ctx := b.t.Context()
	if err := b.Rename(ctx, r.ID, "again"); err != nil {
		b.t.Fatal(err)
	}
	steps := r.Checkpoint + 25
	var bad model.Invalid
	if r.Checkpoint > 1 {
		if err := b.Resume(ctx, r.ID, r.Checkpoint-1); !errors.As(err, &bad) || bad["steps"] == "" {
			b.t.Errorf("resumed for fewer steps than are done: %v", err)
		}
	}
	if err := b.Resume(ctx, r.ID, steps); err != nil {
		b.t.Fatal(err)
	}
	if err := b.Resume(ctx, r.ID, steps); !errors.Is(err, model.ErrConflict) {
		b.t.Errorf("resumed while it is resumed: %v", err)
	}
	again := b.awaitState(r.ID, model.Finished)
	if again.Step != steps || again.Resumed != r.Checkpoint || again.Attempt != r.Attempt+1 || again.Config.Steps != steps {
		b.t.Errorf("resumed from %+v to %+v", r.Status, again.Status)
	}
	b.complete(r.ID, steps)
}

func (b *bench) stop(id string) {
	b.t.Helper()
	if err := b.Stop(b.t.Context(), id); err != nil {
		b.t.Fatal(err)
	}
	if r := b.get(id); r.State != model.Stopping && r.State != model.Stopped {
		b.t.Errorf("asked to stop it is %s", r.State)
	}
}

// force stops a run that does not listen: a second Stop is refused until the time is over.
func (b *bench) force(id string) {
	b.t.Helper()
	b.stop(id)
	if err := b.Stop(b.t.Context(), id); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "kill it in 1 seconds") {
		b.t.Errorf("a second stop at once: %v", err)
	}
	if at := b.ForceAt(id); time.Until(at) > b.opt.ForceAfter || at.IsZero() {
		b.t.Errorf("may be forced at %v", at)
	}
	time.Sleep(b.opt.ForceAfter + 20*time.Millisecond)
	if r := b.get(id); r.State != model.Stopping {
		b.t.Errorf("deaf to a stop it is %s", r.State)
	}
	if err := b.Stop(b.t.Context(), id); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) kill(id string) {
	b.t.Helper()
	f, err := b.data.Open(id)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if err := f.Signal(syscall.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
	for f.Locked() {
		time.Sleep(time.Millisecond)
	}
}

func (b *bench) awaitChild(id string) {
	b.t.Helper()
	for range 1000 {
		if b.started(id) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatal("not started")
}

// started says whether the supervisor has a process for the run, which may not have taken its lock yet.
func (b *bench) started(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[id].child != nil
}

func TestQueueIsOneAtATimePerDevice(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	first, second, last := b.create("first", 100_000), b.create("second", 100_000), b.create("last", 5)
	gpu := config(100_000)
	gpu.Engine = "xla:cuda"
	third, err := b.Create(ctx, gpu, "on the GPU")
	if err != nil {
		t.Fatal(err)
	}
	b.awaitStep(first, 5)
	b.awaitStep(third.ID, 5)
	if r := b.get(second); r.State != model.Queued {
		t.Fatalf("beside the first, the second is %s", r.State)
	}
	b.restart() // the queue outlives the server
	time.Sleep(50 * time.Millisecond)
	if r := b.get(second); r.State != model.Queued {
		t.Fatalf("after a restart the second is %s", r.State)
	}
	b.stop(first)
	b.awaitState(first, model.Stopped)
	b.awaitStep(second, 5)
	if r := b.get(last); r.State != model.Queued || b.started(last) {
		t.Errorf("beside the second, the last is %s", r.State)
	}
	for _, id := range []string{second, third.ID} {
		b.stop(id)
		b.awaitState(id, model.Stopped)
	}
	b.awaitState(last, model.Finished)
	runs, err := b.List(ctx)
	if err != nil || len(runs) != 4 || runs[0].ID != third.ID && !runs[0].Created.Equal(runs[1].Created) {
		t.Errorf("listed %v, %v", runs, err)
	}
}

func TestStopRestartStopDoesNotSignalTwice(t *testing.T) {
	b := newBench(t)
	id := b.create("deaf", 100_000)
	b.awaitStep(id, 5)
	b.stop(id)
	b.restart()
	b.awaitState(id, model.Stopping)
	if err := b.Stop(t.Context(), id); !errors.Is(err, model.ErrConflict) { // a second signal would end the real trainer unsaved
		t.Errorf("after a restart a second stop: %v", err)
	}
	b.kill(id)
	b.awaitState(id, model.Interrupted)
}

func TestEditsAndDeletion(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	id := b.create("  first ", 100_000)
	b.awaitStep(id, 12)
	var bad model.Invalid
	for _, name := range []string{"", "two\nlines", strings.Repeat("x", 201), "\xff"} {
		if err := b.Rename(ctx, id, name); !errors.As(err, &bad) || bad["name"] == "" {
			t.Errorf("renamed to %q: %v", name, err)
		}
	}
	if err := errors.Join(b.Rename(ctx, id, "renamed"), b.Annotate(ctx, id, "notes\nof two lines")); err != nil {
		t.Fatal(err)
	}
	if err := b.Annotate(ctx, id, strings.Repeat("x", 100_001)); !errors.As(err, &bad) {
		t.Errorf("endless notes: %v", err)
	}
	if err := b.Delete(ctx, id); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleted while running: %v", err)
	}
	if err := b.Resume(ctx, id, 0); !errors.Is(err, model.ErrConflict) {
		t.Errorf("resumed while running: %v", err)
	}
	b.stop(id)
	r := b.awaitState(id, model.Stopped)
	if r.Name != "renamed" || r.Notes != "notes\nof two lines" {
		t.Errorf("%+v", r)
	}
	b.restart()
	if r := b.get(id); r.Name != "renamed" || r.Notes != "notes\nof two lines" {
		t.Errorf("after a restart: %+v", r)
	}
	if err := b.Stop(ctx, id); !errors.Is(err, model.ErrConflict) {
		t.Errorf("stopped twice: %v", err)
	}
	steps, err := b.Checkpoints(ctx, id)
	if err != nil || !slices.Contains(steps, r.Checkpoint) {
		t.Errorf("checkpoints %v, %v", steps, err)
	}
	path, err := b.CheckpointPath(ctx, id, r.Checkpoint)
	if _, statErr := os.Stat(path); err != nil || statErr != nil {
		t.Errorf("%v, %v", err, statErr)
	}
	sample, samples, err := b.Sample(ctx, id, 0)
	if err != nil || !slices.Equal(samples, steps) || !strings.HasSuffix(sample, fmt.Sprintf("%09d.png", r.Checkpoint)) {
		t.Errorf("%s, %v, %v", sample, samples, err)
	}
	if err := b.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	b.nowhere(id)
	time.Sleep(60 * time.Millisecond) // some scans later
	b.nowhere(id)
	if _, err := os.Stat(b.data.RunDir(id)); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// nowhere wants every method to answer that there is no such run.
func (b *bench) nowhere(id string) {
	b.t.Helper()
	ctx := b.t.Context()
	_, get := b.Get(ctx, id)
	_, points := b.Points(ctx, id, model.PointQuery{})
	_, log := b.Log(ctx, id, 3)
	_, _, sample := b.Sample(ctx, id, 0)
	_, checkpoints := b.Checkpoints(ctx, id)
	_, path := b.CheckpointPath(ctx, id, 10)
	for what, err := range map[string]error{
		"get": get, "points": points, "log": log, "sample": sample, "checkpoints": checkpoints, "path": path,
		"stop": b.Stop(ctx, id), "resume": b.Resume(ctx, id, 0), "delete": b.Delete(ctx, id), "rename": b.Rename(ctx, id, "x"), "annotate": b.Annotate(ctx, id, "x"),
	} {
		if !errors.Is(err, model.ErrNotFound) || !strings.HasPrefix(err.Error(), "there is no run ") && !strings.Contains(err.Error(), "an id has") {
			b.t.Errorf("%s of an unknown run %q: %v", what, id, err)
		}
	}
}

func TestUnknownRuns(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"none", "../../etc", "", "A b"} {
		b.nowhere(id)
	}
}

func TestCreateRefusesWhatCannotRun(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Check = func(_ context.Context, cfg model.Config) error {
			if cfg.Batch > 1000 {
				return model.Invalid{"batch": "more than there are images"}
			}
			return nil
		}
	})
	for field, change := range map[string]func(*model.Config){
		"k": func(c *model.Config) { c.K = 1 }, "batch": func(c *model.Config) { c.Batch = 2000 }, "engine": func(c *model.Config) { c.Engine = "abacus" },
	} {
		cfg := config(10)
		change(&cfg)
		var bad model.Invalid
		if _, err := b.Create(t.Context(), cfg, ""); !errors.As(err, &bad) || bad[field] == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if names, _ := b.data.Runs(); len(names) != 0 {
		t.Errorf("folders of refused runs: %v", names)
	}
}

func TestProcessThatCannotBeStarted(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Command = func(string) (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil }
	})
	r := b.awaitState(b.create("", 10), model.Failed)
	if !strings.Contains(r.Reason, "could not be started") || !strings.Contains(r.Reason, "/no/such/program") || r.Name != "hrr tiny seed 0" {
		t.Errorf("%+v", r)
	}
}

func TestFoldersThatAppearByThemselves(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	from := b.create("made elsewhere", 40)
	b.awaitState(from, model.Finished)
	b.complete(from, 40)
	// A copy, as from another machine, of a run that was alive there.
	copied := b.data.RunDir("copied-in")
	if err := os.CopyFS(copied, os.DirFS(b.data.RunDir(from))); err != nil {
		t.Fatal(err)
	}
	b.awaitListed("copied-in")
	if r := b.awaitState("copied-in", model.Finished); r.Name != "made elsewhere" || r.Step != 40 {
		t.Errorf("%+v", r)
	}
	b.complete("copied-in", 40)
	// A run from a shell.
	cmd, _ := command(2 * time.Millisecond)(b.data.RunDir("from-a-shell"))
	f, err := folder.Create(b.data.RunDir("from-a-shell"), config(60), "shell")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.awaitListed("from-a-shell")
	b.awaitState("from-a-shell", model.Running)
	waits := b.create("waits for the shell's run", 5) // one at a time per device, whoever started it
	b.await("from-a-shell", "end or wrong start", func(r model.Run) bool {
		if !r.State.Ended() && b.get(waits).State == model.Running && b.get("from-a-shell").State.Live() {
			t.Error("two runs on one device")
		}
		return r.State.Ended()
	})
	cmd.Wait()
	b.complete("from-a-shell", 60)
	b.awaitState(waits, model.Finished)
	// A folder that goes away takes its row along.
	if err := os.RemoveAll(copied); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := b.Get(ctx, "copied-in"); errors.Is(err, model.ErrNotFound) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("listed without a folder: %v", err)
		}
	}
}

func (b *bench) awaitListed(id string) {
	b.t.Helper()
	for range 2000 {
		if _, err := b.Get(b.t.Context(), id); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatalf("%s is not listed", id)
}

func TestBrokenFoldersDoNotStopTheOthers(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	good := b.create("good", 30)
	os.MkdirAll(b.data.RunDir("no-config"), 0o755)
	os.MkdirAll(b.data.RunDir("My Run"), 0o755)
	os.Symlink("/etc", b.data.RunDir("link"))
	spoiled := b.create("spoiled", 30)
	b.awaitState(spoiled, model.Finished)
	os.WriteFile(filepath.Join(b.data.RunDir(spoiled), "state.json"), []byte("{half"), 0o644)
	b.awaitState(good, model.Finished)
	b.complete(good, 30)
	for id, want := range map[string]string{"no-config": "has no config.json", "link": "is a link that leads out of the data folder", spoiled: "state.json is damaged"} {
		b.awaitListed(id)
		r := b.await(id, "sentence", func(r model.Run) bool { return strings.Contains(r.Reason, want) })
		if !r.State.Ended() || !b.said.contains(want) {
			t.Errorf("%s: %+v", id, r.Status)
		}
		var invalid model.Invalid
		if err := b.Resume(ctx, id, 0); !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s was resumed, or without a sentence: %v", id, err)
		}
		if err := b.Stop(ctx, id); id != spoiled && !errors.As(err, &invalid) {
			t.Errorf("%s was stopped, or without a sentence: %v", id, err)
		}
		if _, err := b.Checkpoints(ctx, id); id != spoiled && !errors.As(err, &invalid) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if p := b.Problems(); len(p) != 1 || !strings.Contains(p[0], `"My Run"`) {
		t.Errorf("%q", p)
	}
	os.Remove(b.data.RunDir("My Run"))
	if err := b.Delete(ctx, "no-config"); err != nil {
		t.Errorf("a broken folder cannot be deleted: %v", err)
	}
	var invalid model.Invalid
	if err := b.Delete(ctx, "link"); !errors.As(err, &invalid) {
		t.Errorf("a link is deleted, or without a sentence: %v", err)
	}
	os.WriteFile(filepath.Join(b.data.RunDir(good), "scores.json"), []byte("{half"), 0o644)
	if _, err := b.Scores(ctx, good); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "scores.json is damaged") {
		t.Errorf("damaged scores: %v", err)
	}
	// Repaired, it is a run again.
	f, _ := b.data.Open(spoiled)
	defer f.Close()
	f.SetStatus(model.Status{State: model.Finished, Step: 30, Reason: "repaired"})
	b.await(spoiled, "repair", func(r model.Run) bool { return r.Reason == "repaired" })
	b.restart()
	if p := b.Problems(); len(p) != 0 {
		t.Errorf("%q", p)
	}
}

// TestDamagedStateLeavesTheRest: what stands in the other records of a folder that comes with a damaged state is shown.
func TestDamagedStateLeavesTheRest(t *testing.T) {
	b := newBench(t)
	made := filepath.Join(t.TempDir(), "copied")
	f, err := folder.Create(made, config(10), "my copy")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	os.WriteFile(filepath.Join(made, "state.json"), []byte(`{"state":"dancing"}`), 0o644)
	if err := os.Rename(made, b.data.RunDir("copied")); err != nil {
		t.Fatal(err)
	}
	b.awaitListed("copied")
	if r := b.get("copied"); r.Name != "my copy" || r.Config != config(10) || r.State != model.Interrupted || !strings.Contains(r.Reason, `"dancing" is not a state`) {
		t.Errorf("%+v", r)
	}
}

func TestFolderWithoutStateIsLeftToItsMaker(t *testing.T) {
	b := newBench(t)
	f, err := folder.Create(b.data.RunDir("young"), config(10), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	time.Sleep(60 * time.Millisecond)
	if _, err := b.Get(t.Context(), "young"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("listed, or worse, started: %v", err)
	}
	old := time.Now().Add(-time.Minute)
	os.Chtimes(filepath.Join(f.Dir(), "config.json"), old, old)
	b.awaitListed("young")
	if r := b.get("young"); r.State != model.Interrupted || !strings.Contains(r.Reason, "state.json") {
		t.Errorf("%+v", r.Status)
	}
}

func TestDamagedLineIsSaidAndPassedOver(t *testing.T) {
	b := newBench(t)
	id := b.create("", 20)
	b.awaitState(id, model.Finished)
	file, _ := os.OpenFile(filepath.Join(b.data.RunDir(id), "points.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	file.WriteString("not a point\n{\"step\":21,\"time\":\"2026-01-01T00:00:00Z\",\"values\":{\"total\":1}}\n")
	file.Close()
	for range 1000 {
		if page, _ := b.Points(t.Context(), id, model.PointQuery{}); page.Head == 21 && b.said.contains("skipped the line") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the line behind the damaged one is not stored, or nothing was said")
}

func TestWatchersAreToldAndNeverWaitedFor(t *testing.T) {
	b := newBench(t)
	all, cancelAll := b.Watch("")
	defer cancelAll()
	idle, cancelIdle := b.Watch("another")
	defer cancelIdle()
	b.Watch("") // never read
	id := b.create("", 20)
	<-all
	b.awaitState(id, model.Finished)
	<-all
	select {
	case <-idle:
		t.Error("told about another run")
	default:
	}
	cancelAll()
	cancelAll()
	if err := b.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all: // what was there before
	default:
	}
	b.watchers.notify(id)
	select {
	case <-all:
		t.Error("told after cancel")
	default:
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBench(t)
	id := b.create("busy", 400)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 30 {
				b.Get(t.Context(), id)
				b.List(t.Context())
				b.Points(t.Context(), id, model.PointQuery{Columns: 10})
				b.Annotate(t.Context(), id, fmt.Sprint("note ", i))
				b.Resume(t.Context(), id, 0)
				if i == 0 {
					b.Stop(t.Context(), id)
				}
			}
		})
	}
	wg.Wait()
	for { // however it went, it ends well
		r := b.await(id, "end", func(r model.Run) bool { return r.State.Ended() })
		if r.State == model.Finished {
			break
		}
		if err := b.Resume(t.Context(), id, 0); err != nil && !errors.Is(err, model.ErrConflict) {
			t.Fatal(err)
		}
	}
	b.complete(id, 400)
}

func BenchmarkScanOfAThousandRuns(b *testing.B) {
	dir := b.TempDir()
	data, err := folder.Root(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer data.Close()
	store, err := db.Open(b.Context(), filepath.Join(dir, "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	first, err := data.Create(config(10), "", model.Status{State: model.Finished})
	if err != nil {
		b.Fatal(err)
	}
	defer first.Close()
	for i := range 999 {
		if err := os.CopyFS(data.RunDir(fmt.Sprint("copy-", i)), os.DirFS(first.Dir())); err != nil {
			b.Fatal(err)
		}
	}
	o := options(data, store)
	o.Scan = time.Hour
	began := time.Now()
	s, err := New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Logf("first sight of a thousand runs: %v", time.Since(began))
	for len(s.active()) > 0 {
		time.Sleep(time.Millisecond)
	}
	for b.Loop() {
		if err := s.scan(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Twenty times a run, its server, or both are killed at random. A visitor who reads along all the while, through resumes
// and restarts, ends with the stored series; so do the index and points.jsonl, each with every step once.
func TestKilledAtRandomTwentyTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const steps = 1500
	dir := t.TempDir()
	data, err := folder.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	f, err := data.Create(config(steps), "survivor", model.Status{State: model.Queued})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer f.Signal(os.Kill)
	server := startServer(t, dir)
	defer func() { server.Process.Kill(); server.Wait() }()
	store, err := db.Open(t.Context(), filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := &visitor{store: store, id: f.ID(), series: map[string][]model.Sample{}}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := map[string]int{}
	for kills := 0; kills < 20; kills++ {

		for until := time.Now().Add(time.Duration(60+rng.IntN(140)) * time.Millisecond); time.Now().Before(until); {
			v.read(t)
			time.Sleep(time.Millisecond)
		}
		for range 1000 { // until there is something to kill
			if f.Locked() {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		what := []string{"run", "server", "both"}[rng.IntN(3)]
		if what != "server" {
			f.Signal(os.Kill)
		}
		if what != "run" {
			server.Process.Kill()
			server.Wait()
			server = startServer(t, dir)
		}
		killed[what]++

	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		v.read(t)
		if s, err := f.Status(); err == nil && s.State == model.Finished && v.page.Head == steps && v.since == steps {
			t.Logf("killed %v; attempt %d finished", killed, s.Attempt)
			break
		} else if time.Now().After(deadline) {
			log, _ := f.Log(20)
			t.Fatalf("not finished: %+v, %v\n%s", s, err, log)
		}
	}
	page, err := store.Points(t.Context(), f.ID(), model.PointQuery{Limit: steps})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, readFile(t, data, f.ID()), page, steps)
	for i, s := range page.Series["total"] {
		if s.Value != 1/float64(i+1) {
			t.Fatalf("step %d: %v", i+1, s)
		}
	}
	if diff := cmp.Diff(page.Series, v.series, cmpopts.EquateNaNs()); diff != "" {
		t.Error("the visitor who read along has something else: ", diff)
	}
}

func startServer(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), "JOBS_TEST_ROLE=server", "JOBS_TEST_PAUSE=2ms")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Fatalf("the server did not come up: %v", err)
	}
	return cmd
}

// visitor keeps the series of a run by asking for what it lacks, as a page does.
type visitor struct {
	store  *db.DB
	id     string
	since  int
	page   model.PointPage
	series map[string][]model.Sample
}

func (v *visitor) read(t *testing.T) {
	t.Helper()
	page, err := v.store.Points(t.Context(), v.id, model.PointQuery{Since: v.since, Attempt: v.page.Attempt, Limit: 100})
	if errors.Is(err, model.ErrNotFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	moved := v.page.Attempt != 0 && page.Attempt != v.page.Attempt
	v.page = page
	if moved && page.Resumed < v.since {
		v.since = page.Resumed
		for name, samples := range v.series {
			v.series[name] = slices.DeleteFunc(samples, func(s model.Sample) bool { return s.Step > v.since })
		}
		return
	}
	for name, samples := range page.Series {
		v.series[name] = append(v.series[name], samples...)
	}
	v.since = page.Last
}

func TestResumeWithNothingLeftToLearn(t *testing.T) {
	for _, c := range []struct {
		state   model.State
		steps   int
		refused bool
	}{{model.Finished, 0, true}, {model.Finished, 40, true}, {model.Finished, 41, false}, {model.Stopped, 0, false}, {model.Failed, 39, true}, {model.Failed, -1, true}, {model.Failed, 2e8, true}} {
		cfg, err := longer(config(40), model.Status{State: c.state, Step: 40, Checkpoint: 40}, c.steps)
		var bad model.Invalid
		if c.refused != errors.As(err, &bad) || c.refused != (bad["steps"] != "") || err == nil && cfg.Steps != max(40, c.steps) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDiskThatRefusesIsTold(t *testing.T) {
	full := fmt.Errorf("write /data/runs/x/state.json: %w", syscall.ENOSPC)
	var bad model.Invalid
	if err := told(full); !errors.As(err, &bad) || bad[""] != full.Error() {
		t.Errorf("%v", err)
	}
	if err := told(model.ErrConflict); err != model.ErrConflict {
		t.Errorf("%v", err)
	}
}

// A full disk keeps from the folder how its run ended: the list says it all the same, and the folder is told once there is room.
func TestEndOnFullDisk(t *testing.T) {
	b := newBench(t)
	id := b.create("well", 1_000_000)
	b.awaitStep(id, 15)
	b.Close()
	b.kill(id)
	dir, copied := b.data.RunDir(id), filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		b.open()
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := os.CopyFS(dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	if err := b.data.Sweep(); err != nil { // what the killed run left half written would make room when the next server removes it
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 65<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	b.open()
	r := b.awaitState(id, model.Interrupted)
	if err := b.Resume(t.Context(), id, 0); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("resumed without room: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		said, err := f.Status()
		if err == nil && said.State == r.State && said.Reason == r.Reason {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the folder says %+v, %v; the list said %+v", said, err, r.Status)
		}
	}
	if err := b.Resume(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, model.Running)
	b.Close()
	b.kill(id) // before its disk goes
}

// A run that ends while its state and the index are behind has done the steps of its newest checkpoint.
func TestEndAtTheNewestCheckpoint(t *testing.T) {
	b := newBench(t)
	f, err := b.data.Create(config(300), "a", model.Status{State: model.Running, Step: 240})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{f.CheckpointPath(245), f.OptimizerPath(245)} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := end(f, 243, func(model.Status) (model.State, string) { return model.Interrupted, "no space left" })
	if err != nil || run.Checkpoint != 245 || run.Step != 245 {
		t.Errorf("%+v, %v", run.Status, err)
	}
}

func TestLastWords(t *testing.T) {
	for log, want := range map[string]string{
		"":               "",
		"one\n two \n\n": ` Last log line: "two".`,
		"panic: oh\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2\n": ` Last log line: "panic: oh".`,
		strings.Repeat("x", 400): ` Last log line: "` + strings.Repeat("x", 300) + `…".`,
	} {
		if got := lastWords(log); got != want {
			t.Errorf("%.20q: %q", log, got)
		}
	}

}

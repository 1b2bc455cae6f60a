//go:build linux

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slotscope/db"
	"slotscope/model"
	"slotscope/model/folder"
)

var background = context.Background()

// bench is a data folder with a supervisor that can be replaced, like a server by its successor.
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

// restart ends one server and starts the next.
func (b *bench) restart() {
	b.t.Helper()
	b.Close()
	b.open()
}

// killAll kills the remaining processes of a test.
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

// await waits until a run meets a condition, as a page does.
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

// complete fails unless points.jsonl and the index both have every step from 1 to last exactly once, with the same values.
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
			t.Fatalf("points.jsonl: line %d has step %d", i+1, p.Step)
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

func (b *bench) stop(id string) {
	b.t.Helper()
	if err := b.Stop(b.t.Context(), id); err != nil {
		b.t.Fatal(err)
	}
	if r := b.get(id); r.State != model.Stopping && r.State != model.Stopped {
		b.t.Errorf("after a stop request it is %s", r.State)
	}
}

// force kills a run that ignores a stop request: a second Stop is an error until ForceAfter has passed.
func (b *bench) force(id string) {
	b.t.Helper()
	b.stop(id)
	if err := b.Stop(b.t.Context(), id); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "kill it in 1 seconds") {
		b.t.Errorf("an immediate second stop: %v", err)
	}
	if at := b.ForceAt(id); time.Until(at) > b.opt.ForceAfter || at.IsZero() {
		b.t.Errorf("ForceAt returns %v", at)
	}
	time.Sleep(b.opt.ForceAfter + 20*time.Millisecond)
	if r := b.get(id); r.State != model.Stopping {
		b.t.Errorf("while it ignores a stop it is %s", r.State)
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
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := f.Signal(syscall.SIGKILL)
		if err == nil {
			break
		}
		if !errors.Is(err, model.ErrConflict) || !f.Locked() || time.Now().After(deadline) { // otherwise its lock may not name it yet
			b.t.Fatal(err)
		}
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

// started reports whether the supervisor has a process for the run, which may not have taken its lock yet.
func (b *bench) started(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[id].child != nil
}

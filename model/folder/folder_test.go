//go:build linux

package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
)

// TestMain lets the test binary act as another process: one that holds a lock, or one on a full disk.
func TestMain(m *testing.M) {
	switch os.Getenv("FOLDER_TEST_ROLE") {
	case "hold":
		hold(os.Getenv("FOLDER_TEST_DIR"))
	case "full":
		full(os.Getenv("FOLDER_TEST_DIR"))
	case "readonly":
		readOnly(os.Getenv("FOLDER_TEST_DIR"))
	}
	os.Exit(m.Run())
}

func config(t testing.TB) model.Config {
	t.Helper()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Seed = 7
	return cfg
}

func newFolder(t testing.TB) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "run-1"), config(t), "first")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func point(step int) model.Point {
	return model.Point{Step: step, Time: time.Unix(int64(step), 0).UTC(), Values: map[string]float64{"total": 1 / float64(step)}}
}

func steps(points []model.Point) []int {
	var s []int
	for _, p := range points {
		s = append(s, p.Step)
	}
	return s
}

func TestCreatedRunReadsBack(t *testing.T) {
	f := newFolder(t)
	again, err := Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	run, err := again.Run()
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(run.Created) > time.Minute {
		t.Errorf("created %v", run.Created)
	}
	run.Created = time.Time{}
	if diff := cmp.Diff(model.Run{ID: "run-1", Name: "first", Config: config(t)}, run); diff != "" {
		t.Error(diff)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.Dir()), ".*")); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestStatusReadsBack(t *testing.T) {
	f := newFolder(t)
	want := model.Status{State: model.Running, Step: 12, Checkpoint: 10, Attempt: 2, Resumed: 10, PID: 99, Engine: "cpu", ImagesPerSecond: 31.5, SecondsLeft: math.Inf(1)}
	if err := f.SetStatus(want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Status()
	if err != nil {
		t.Fatal(err)
	}
	if time.Since(got.Updated) > time.Minute {
		t.Errorf("updated %v", got.Updated)
	}
	got.Updated, want.SecondsLeft = time.Time{}, 0 // JSON has no infinity, so it becomes unknown
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetaIsEditedInPlace(t *testing.T) {
	f := newFolder(t)
	before, _ := f.Meta()
	if err := f.SetMeta(Meta{Name: "second", Notes: "warmer\n"}); err != nil {
		t.Fatal(err)
	}
	got, err := f.Meta()
	want := Meta{ID: "run-1", Name: "second", Notes: "warmer\n", Created: before.Created}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestCopiedFolderTakesItsOwnName(t *testing.T) {
	f := newFolder(t)
	copied := filepath.Join(t.TempDir(), "run-2")
	if err := os.CopyFS(copied, os.DirFS(f.Dir())); err != nil {
		t.Fatal(err)
	}
	g, err := Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if run, err := g.Run(); err != nil || run.ID != "run-2" || run.Name != "first" {
		t.Errorf("%+v, %v", run, err)
	}
	os.Remove(filepath.Join(copied, "run.json"))
	if run, err := g.Run(); err != nil || run.Name != "run-2" || run.Created.IsZero() {
		t.Errorf("without run.json: %+v, %v", run, err)
	}
}

func TestBrokenFoldersGetASentence(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		want  string // in the message
		is    error
	}{
		{"absent", os.RemoveAll, "there is no run folder", model.ErrNotFound},
		{"no config", func(d string) error { return os.Remove(filepath.Join(d, "config.json")) }, "has no config.json", nil},
		{"half a config", func(d string) error { return os.Truncate(filepath.Join(d, "config.json"), 40) }, "config.json is damaged", nil},
		{"unknown field", func(d string) error {
			return os.WriteFile(filepath.Join(d, "config.json"), []byte(`{"modell":"hrr"}`), 0o644)
		}, `unknown field "modell"`, nil},
		{"state is a list", func(d string) error { return os.WriteFile(filepath.Join(d, "state.json"), []byte("[1"), 0o644) }, "state.json is damaged", nil},
		{"unknown state", func(d string) error {
			return os.WriteFile(filepath.Join(d, "state.json"), []byte(`{"state":"dancing"}`), 0o644)
		}, `"dancing" is not a run state`, nil},
		{"negative steps", func(d string) error {
			return os.WriteFile(filepath.Join(d, "state.json"), []byte(`{"state":"finished","step":-7}`), 0o644)
		}, "a count is negative", nil},
		{"state is a folder", func(d string) error { return os.Mkdir(filepath.Join(d, "state.json"), 0o755) }, "state.json is damaged or from another version: it is a folder", nil},
		{"config is null", func(d string) error { return os.WriteFile(filepath.Join(d, "config.json"), []byte("null"), 0o644) }, "it is null", nil},
		{"a file", func(d string) error { os.RemoveAll(d); return os.WriteFile(d, nil, 0o644) }, "not a directory", nil},
		{"config is a link outside", func(d string) error {
			out := filepath.Join(filepath.Dir(d), "out.json")
			os.Rename(filepath.Join(d, "config.json"), out)
			return os.Symlink(out, filepath.Join(d, "config.json"))
		}, "escapes", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := newFolder(t).Dir()
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			f, err := Open(dir)
			if err == nil {
				defer f.Close()
				_, err = f.Run()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %q with the path", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v does not wrap %v", err, c.is)
			}
		})
	}
}

func TestDamagedNameKeepsTheRun(t *testing.T) {
	f := newFolder(t)
	os.WriteFile(filepath.Join(f.Dir(), "run.json"), []byte("{"), 0o644)
	run, err := f.Run()
	if run.ID != "run-1" || run.Name != "run-1" || err == nil || !strings.Contains(err.Error(), "run.json is damaged") {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestCreateRefusesFilledFolder(t *testing.T) {
	f := newFolder(t)
	if _, err := Create(f.Dir(), config(t), ""); !errors.Is(err, model.ErrConflict) {
		t.Errorf("second Create: %v", err)
	}
	empty := t.TempDir()
	g, err := Create(empty, config(t), "")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if m, _ := g.Meta(); m.Name != "hrr tiny seed 7" {
		t.Errorf("named %q", m.Name)
	}
}

func TestNothingUserNamedLeavesTheDataFolder(t *testing.T) {
	dir := t.TempDir()
	d, err := Root(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	outside, err := Create(filepath.Join(dir, "outside"), config(t), "")
	if err != nil {
		t.Fatal(err)
	}
	outside.Close()
	if err := os.Symlink(outside.Dir(), d.RunDir("link")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", "..", "../../outside", "a/b", "A", "link", "-x", strings.Repeat("a", 65)} {
		if f, err := d.Open(id); err == nil {
			t.Errorf("%q opened %s", id, f.Dir())
		}
		if err := d.Remove(id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
	if _, err := os.Stat(filepath.Join(outside.Dir(), "config.json")); err != nil {
		t.Error(err)
	}
	// A link among the samples is not served.
	f, err := d.Create(config(t), "", model.Status{State: model.Queued})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	os.Symlink("/etc/passwd", f.SamplePath(10))
	if _, err := f.Sample(10); !errors.Is(err, model.ErrNotFound) || len(f.Samples()) != 0 {
		t.Errorf("link as sample: %v, listed %v", err, f.Samples())
	}
}

func TestDataFolderListsAndRemoves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fresh", "data")
	d, err := Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Create(config(t), "one", model.Status{State: model.Queued})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	os.WriteFile(filepath.Join(dir, "runs", "README"), nil, 0o644)
	os.Mkdir(filepath.Join(dir, "runs", ".old-x"), 0o755)
	os.Mkdir(filepath.Join(dir, "runs", "My Run"), 0o755)
	names, err := d.Runs()
	if diff := cmp.Diff([]string{f.ID(), "My Run"}, names); diff != "" && !slices.Equal(names, []string{"My Run", f.ID()}) || err != nil {
		t.Error(diff, err)
	}
	if s, err := f.Status(); s.State != model.Queued || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	if err := d.Sweep(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", ".old-x")); !os.IsNotExist(err) {
		t.Error("an interrupted deletion was not completed")
	}
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(f.ID()); !errors.Is(err, model.ErrConflict) {
		t.Errorf("removed while locked: %v", err)
	}
	lock.Unlock()
	if err := d.Remove(f.ID()); err != nil {
		t.Error(err)
	}
	if _, err := d.Open(f.ID()); !errors.Is(err, model.ErrNotFound) || !strings.HasPrefix(err.Error(), "there is no run ") {
		t.Errorf("after removal: %v", err)
	}
}

func TestPointsReadBackWhole(t *testing.T) {
	f := newFolder(t)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	p := point(1)
	p.Values["recon"], p.Values["vq"] = math.NaN(), math.Inf(-1)
	for _, p := range []model.Point{p, point(2)} {
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, _ := f.Tail(0); got != nil {
		t.Errorf("read before Flush: %v", got)
	}
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	got, offset, err := f.Tail(0)
	if err != nil || !slices.Equal(steps(got), []int{1, 2}) {
		t.Fatalf("%v, %v", got, err)
	}
	if v := got[0].Values; !math.IsNaN(v["recon"]) || !math.IsInf(v["vq"], -1) || v["total"] != 1 || !got[0].Time.Equal(p.Time) {
		t.Errorf("%v", got[0])
	}
	if err := errors.Join(a.Append(point(3)), a.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := f.Tail(offset); !slices.Equal(steps(got), []int{3}) {
		t.Errorf("from %d on: %v", offset, got)
	}
}

func TestTornLastLine(t *testing.T) {
	f := newFolder(t)
	write(t, f, 1, 2)
	path := filepath.Join(f.Dir(), "points.jsonl")
	whole, _ := os.ReadFile(path)
	for cut := len(whole) - 1; cut > 0; cut -= 3 { // inside the header, the first point and the second
		os.WriteFile(path, whole[:cut], 0o644)
		lines := bytes.Count(whole[:cut], []byte("\n"))
		got, offset, err := f.Tail(0)
		if err != nil || !slices.Equal(steps(got), []int{1, 2}[:max(0, lines-1)]) || int(offset) != bytesUpToLine(whole, lines) {
			t.Fatalf("cut at %d: %v, %d, %v", cut, steps(got), offset, err)
		}
	}
	os.WriteFile(path, whole[:len(whole)-9], 0o644)
	write(t, f, 5) // reopening removes the incomplete line
	if got, _, err := f.Tail(0); err != nil || !slices.Equal(steps(got), []int{1, 5}) {
		t.Errorf("%v, %v", steps(got), err)
	}
}

func bytesUpToLine(b []byte, lines int) int {
	return len(strings.Join(strings.SplitAfter(string(b), "\n")[:lines], ""))
}

func write(t testing.TB, f *Folder, steps ...int) {
	t.Helper()
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if err := a.Append(point(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedLineIsNamedAndPassedOver(t *testing.T) {
	f := newFolder(t)
	write(t, f, 1)
	path := filepath.Join(f.Dir(), "points.jsonl")
	b, _ := os.ReadFile(path)
	os.WriteFile(path, append(b, "\x00\x00\n{\"step\":0}\n"...), 0o644)
	write(t, f, 2)
	got, _, err := f.Tail(0)
	if !slices.Equal(steps(got), []int{1, 2}) || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("%v, %v", steps(got), err)
	}
	if err := f.TruncatePoints(10); err != nil {
		t.Fatal(err)
	}
	if got, _, err := f.Tail(0); !slices.Equal(steps(got), []int{1, 2}) || err != nil {
		t.Errorf("after truncation: %v, %v", steps(got), err)
	}
}

func TestTruncatePoints(t *testing.T) {
	for _, c := range []struct {
		have []int
		to   int
		want []int
	}{
		{[]int{1, 2, 3, 4}, 2, []int{1, 2}},
		{[]int{1, 2, 3, 4}, 0, nil},
		{[]int{1, 2}, 9, []int{1, 2}},
		{[]int{1, 2, 2, 3, 1}, 9, []int{1, 2, 3}}, // no step is repeated
		{nil, 3, nil},
	} {
		f := newFolder(t)
		if c.have != nil {
			write(t, f, c.have...)
		}
		if err := f.TruncatePoints(c.to); err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.Tail(0); !slices.Equal(steps(got), c.want) || err != nil {
			t.Errorf("%v to %d: %v, %v", c.have, c.to, steps(got), err)
		}
	}
}

func TestFollowSeesRewrites(t *testing.T) {
	f := newFolder(t)
	follow := func(at Cursor, want []int, wantRewound bool) Cursor {
		t.Helper()
		got, next, rewound, err := f.Follow(at)
		if err != nil || !slices.Equal(steps(got), want) || rewound != wantRewound {
			t.Fatalf("%v, rewound %v, %v", steps(got), rewound, err)
		}
		return next
	}
	at := follow(Cursor{}, nil, false) // no file yet
	write(t, f, 1, 2, 3)
	at = follow(at, []int{1, 2, 3}, false)
	at = follow(at, nil, false)
	if err := f.TruncatePoints(2); err != nil {
		t.Fatal(err)
	}
	write(t, f, 4, 5)
	at = follow(at, nil, true)
	at = follow(at, []int{1, 2, 4, 5}, false)
	if err := f.TruncatePoints(5); err != nil { // drops nothing, but writes a new file with the same content
		t.Fatal(err)
	}
	at = follow(at, nil, false)
	if err := f.TruncatePoints(4); err != nil {
		t.Fatal(err)
	}
	at = follow(at, nil, true)
	at = follow(at, []int{1, 2, 4}, false)
	os.Truncate(filepath.Join(f.Dir(), "points.jsonl"), 0)
	at = follow(at, nil, true)
	at = follow(at, nil, false)
	write(t, f, 1)
	at = follow(at, []int{1}, false)
	os.Remove(filepath.Join(f.Dir(), "points.jsonl"))
	follow(at, nil, true)
}

func TestTailReadsInBoundedPieces(t *testing.T) {
	f := newFolder(t)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	const n = 30_000
	for s := 1; s <= n; s++ {
		if err := a.Append(point(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	calls, last := 0, 0
	for offset := int64(0); ; calls++ {
		got, next, err := f.Tail(offset)
		if err != nil {
			t.Fatal(err)
		}
		if next == offset {
			break
		}
		for _, p := range got {
			if last++; p.Step != last {
				t.Fatalf("step %d after %d", p.Step, last-1)
			}
		}
		offset = next
	}
	if last != n || calls < 2 {
		t.Errorf("%d points in %d calls", last, calls)
	}
}

func TestFilesOfSteps(t *testing.T) {
	f := newFolder(t)
	for _, path := range []string{f.CheckpointPath(20), f.CheckpointPath(100), f.OptimizerPath(20), f.CheckpointPath(3) + ".tmp", filepath.Join(f.Dir(), "checkpoints", "step-7.safetensors")} {
		os.WriteFile(path, []byte("x"), 0o644)
	}
	if err := f.WriteSample(50, []byte("png")); err != nil {
		t.Fatal(err)
	}
	if got := f.Checkpoints(); !slices.Equal(got, []int{20, 100}) {
		t.Errorf("checkpoints %v", got)
	}
	if f.Latest() != 20 {
		t.Errorf("latest %d: 100 has no optimizer state", f.Latest())
	}
	if got := f.Samples(); !slices.Equal(got, []int{50}) {
		t.Errorf("samples %v", got)
	}
	if path, err := f.Checkpoint(100); err != nil || filepath.Base(path) != "step-000000100.safetensors" {
		t.Errorf("%s, %v", path, err)
	}
	if _, err := f.Checkpoint(99); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), "has no checkpoint of step 99") {
		t.Errorf("no checkpoint: %v", err)
	}
}

func TestLogEnds(t *testing.T) {
	f := newFolder(t)
	if text, err := f.Log(5); text != "" || err != nil {
		t.Errorf("before the first line: %q, %v", text, err)
	}
	for _, line := range []string{"one\n", "two\n", "three"} {
		w, err := f.OpenLog()
		if err != nil {
			t.Fatal(err)
		}
		w.WriteString(line)
		w.Close()
	}
	for lines, want := range map[int]string{0: "", 1: "three", 2: "two\nthree", 9: "one\ntwo\nthree"} {
		if text, err := f.Log(lines); text != want || err != nil {
			t.Errorf("%d lines: %q, %v", lines, text, err)
		}
	}
}

// hold takes the lock, reports it, and waits to be killed.
func hold(dir string) {
	f, err := Open(dir)
	if err == nil {
		_, err = f.Lock()
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString("held")
	time.Sleep(time.Minute)
	os.Exit(0)
}

func helper(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FOLDER_TEST_ROLE="+role, "FOLDER_TEST_DIR="+dir)
	return cmd
}

func TestLockSaysWhoHoldsIt(t *testing.T) {
	f := newFolder(t)
	if f.Locked() {
		t.Fatal("locked from the start")
	}
	if err := f.Signal(syscall.SIGTERM); !errors.Is(err, model.ErrConflict) {
		t.Errorf("signal without a holder: %v", err)
	}
	cmd := helper(t, "hold", f.Dir())
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	out.Read(said)
	h, held := f.Holder()
	if string(said) != "held" || !held || h.PID != cmd.Process.Pid || !h.Here() {
		t.Fatalf("%s: %+v, %v", said, h, held)
	}
	if _, err := f.Lock(); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), h.String()) {
		t.Errorf("second lock: %v", err)
	}
	if err := f.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if f.Locked() {
		t.Error("locked by a killed process")
	}
	l, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Signal(syscall.SIGKILL); !errors.Is(err, model.ErrConflict) { // otherwise a server would stop itself here
		t.Errorf("signal to own process: %v", err)
	}
	l.Unlock()
	if err := l.Unlock(); err != nil {
		t.Errorf("second Unlock: %v", err)
	}
	if f.Locked() {
		t.Error("locked after Unlock")
	}
}

func TestLookingNeverRefusesALock(t *testing.T) {
	f := newFolder(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				f.Locked()
			}
		}
	}()
	for range 200 {
		l, err := f.Lock()
		if err != nil {
			t.Fatal(err)
		}
		l.Unlock()
	}
	close(stop)
	<-done
}

func TestSecondServerIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l, err := LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockData(dir)
	var want = "is in use by process "
	if !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second server: %v", err)
	}
	l.Unlock()
	l, err = LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
}

// TestDataFolderIsPrivate: only its owner can read a new data folder; an existing one is not changed.
func TestDataFolderIsPrivate(t *testing.T) {
	base := t.TempDir()
	mode := func(dir string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	existing := filepath.Join(base, "existing")
	if err := errors.Join(os.Mkdir(existing, 0o755), os.Chmod(existing, 0o755)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]fs.FileMode{existing: 0o755, filepath.Join(base, "new"): 0o700, filepath.Join(base, "above", "new") + "/": 0o700} {
		for range 2 {
			d, err := Root(dir)
			if err != nil {
				t.Fatal(err)
			}
			d.Close()
			if got := mode(dir); got != want {
				t.Errorf("%s has mode %v, want %v", dir, got, want)
			}
		}
	}
}

// TestSweepBesideRuns: temporary files of killed writers are removed everywhere in a data folder; other files are kept.
func TestSweepBesideRuns(t *testing.T) {
	dir := t.TempDir()
	d, err := Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	places := []string{".", "cache/play", "datasets/mine", "probes", "sweeps/s"}
	for _, place := range places {
		if err := os.MkdirAll(filepath.Join(dir, place), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{".tmp-a-XYZ", "kept.json"} {
			if err := os.WriteFile(filepath.Join(dir, place, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	living := filepath.Join(dir, "probes", ".tmp-b-XYZ")
	lock, err := LockFile(living, "a probe")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if err := d.Sweep(); err != nil {
		t.Fatal(err)
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join(dir, place, ".tmp-a-XYZ")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the temporary file was not removed: %v", place, err)
		}
		if _, err := os.Stat(filepath.Join(dir, place, "kept.json")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(living); err != nil {
		t.Errorf("the file of a living writer: %v", err)
	}
}

func TestDataFolderThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	os.WriteFile(path, nil, 0o644)
	if _, err := LockData(path); err == nil || !strings.Contains(err.Error(), "data folder") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// mountAt mounts a file system at dir that is private to this process.
func mountAt(dir string, flags uintptr, options string) {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		os.Exit(77)
	}
	if err := syscall.Mount("slotscope-test", dir, "tmpfs", flags, options); err != nil {
		os.Exit(77)
	}
}

// full fills a 64 KiB disk: existing content is kept, and writes that do not fit return an error.
func full(dir string) {
	mountAt(dir, 0, "size=64k")
	answer := map[string]any{}
	cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	d, err := Root(dir)
	if err != nil {
		os.Exit(77)
	}
	f, err := d.CreateAs("run", cfg, "", model.Status{})
	if err != nil {
		answer["create"] = err.Error()
	}
	f.SetStatus(model.Status{State: model.Running, Step: 1})
	a, _ := f.Points()
	var written error
	for s := 1; s < 100_000 && written == nil; s++ {
		written = a.Append(point(s))
	}
	answer["append"] = written.Error()
	if err := f.SetStatus(model.Status{State: model.Running, Step: 2}); err != nil {
		answer["status"] = err.Error()
	}
	s, err := f.Status()
	answer["step"], answer["read"] = s.Step, err
	points, _, err := f.Tail(0)
	answer["points"], answer["tail"] = len(points) > 100, err
	lock, err := LockData(dir) // as a server does, whose user deletes runs
	answer["lock"] = err
	_, second := LockData(dir)
	answer["second"] = strings.HasSuffix(second.Error(), "is in use by another process: "+model.ErrConflict.Error())
	if err := errors.Join(d.Remove("run"), lock.Unlock()); err != nil {
		answer["remove"] = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(answer)
	os.Exit(0)
}

// readOnly reads from, and fails to write to, a folder on a read-only file system.
func readOnly(dir string) {
	mountAt(dir, 0, "size=1m")
	cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	f, err := Create(filepath.Join(dir, "runs", "run"), cfg, "kept")
	if err != nil {
		os.Exit(77)
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		os.Exit(77)
	}
	run, err := f.Run()
	answer := map[string]any{"name": run.Name, "read": err}
	_, err = f.Lock()
	answer["lock"] = err.Error()
	_, err = LockData(dir)
	answer["data"] = err.Error()
	answer["meta"] = f.SetMeta(Meta{Name: "lost"}).Error()
	json.NewEncoder(os.Stdout).Encode(answer)
	os.Exit(0)
}

func inNamespace(t *testing.T, role string) (answer map[string]any, dir string) {
	t.Helper()
	dir = t.TempDir()
	cmd := helper(t, role, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 || errors.Is(err, syscall.EPERM) {
		t.Skip("cannot mount a file system here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return answer, dir
}

func TestFullDisk(t *testing.T) {
	answer, dir := inNamespace(t, "full")
	full := "no space left on device"
	want := map[string]any{
		"append": "write " + filepath.Join(dir, "runs", "run", "points.jsonl") + ": " + full,
		"status": "write " + filepath.Join(dir, "runs", "run", "state.json") + ": " + full,
		"step":   1.0, "read": nil, // the old record is kept
		"points": true, "tail": nil,
		"lock": nil, "second": true,
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Error(diff)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	answer, dir := inNamespace(t, "readonly")
	ro := ": read-only file system"
	want := map[string]any{
		"name": "kept", "read": nil,
		"lock": "write " + filepath.Join(dir, "runs/run/lock") + ro,
		"data": "cannot write the data folder: " + filepath.Join(dir, "lock") + ro,
		"meta": "write " + filepath.Join(dir, "runs/run/run.json") + ro,
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Error(diff)
	}
}

// TestLookingWritesNothing opens a folder as copied, without a lock file: reading must not interfere with someone who deletes it.
func TestLookingWritesNothing(t *testing.T) {
	dir := newFolder(t).Dir()
	for _, sub := range []string{checkpointDir, sampleDir} {
		if err := os.Remove(filepath.Join(dir, sub)); err != nil {
			t.Fatal(err)
		}
	}
	before := entries(t, dir)
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Holder()
	f.Run()
	f.Checkpoints()
	f.Tail(0)
	if diff := cmp.Diff(before, entries(t, dir)); diff != "" {
		t.Error(diff)
	}
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if got := entries(t, dir); !slices.Contains(got, checkpointDir) || !slices.Contains(got, sampleDir) {
		t.Errorf("files of a locked run: %q", got)
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// TestEvaluationOfOldScores: scores without a record, such as those of an earlier version, belong to a finished evaluation.
func TestEvaluationOfOldScores(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "a"), model.Config{Model: "hrr"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if e, err := f.Evaluation(); err != nil || e.State != "" {
		t.Errorf("without scores: %+v (%v)", e, err)
	}
	if err := f.SetScores(model.Scores{PSNR: 20}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Evaluation(); err != nil || e.State != "" {
		t.Errorf("with only the training PSNR: %+v (%v)", e, err)
	}
	if err := f.SetScores(model.Scores{PSNR: 20, Metrics: &model.Metrics{}, Effort: model.Quick}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Evaluation(); err != nil || e.State != model.Finished || e.Effort != model.Quick || e.Ended.IsZero() {
		t.Errorf("with scores: %+v (%v)", e, err)
	}
}

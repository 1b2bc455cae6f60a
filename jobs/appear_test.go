//go:build linux

package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/db"
	"slotscope/model"
	"slotscope/model/folder"
)

func TestFoldersThatAppearByThemselves(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	from := b.create("made elsewhere", 40)
	b.awaitState(from, model.Finished)
	b.complete(from, 40)
	// A copy of a run from another machine, where it was live.
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
	waits := b.create("waits for the shell's run", 5) // one run at a time per device, regardless of who started it
	b.await("from-a-shell", "end or wrong start", func(r model.Run) bool {
		if !r.State.Ended() && b.get(waits).State == model.Running && b.get("from-a-shell").State.Live() {
			t.Error("two runs on one device")
		}
		return r.State.Ended()
	})
	cmd.Wait()
	b.complete("from-a-shell", 60)
	b.awaitState(waits, model.Finished)
	// If a folder is removed, its row is deleted.
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
			t.Errorf("%s was resumed, or the error has no sentence: %v", id, err)
		}
		if err := b.Stop(ctx, id); id != spoiled && !errors.As(err, &invalid) {
			t.Errorf("%s was stopped, or the error has no sentence: %v", id, err)
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
		t.Errorf("a link is deleted, or the error has no sentence: %v", err)
	}
	os.WriteFile(filepath.Join(b.data.RunDir(good), "scores.json"), []byte("{half"), 0o644)
	if _, err := b.Scores(ctx, good); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "scores.json is damaged") {
		t.Errorf("damaged scores: %v", err)
	}
	// A repaired folder is a run again.
	f, _ := b.data.Open(spoiled)
	defer f.Close()
	f.SetStatus(model.Status{State: model.Finished, Step: 30, Reason: "repaired"})
	b.await(spoiled, "repair", func(r model.Run) bool { return r.Reason == "repaired" })
	b.restart()
	if p := b.Problems(); len(p) != 0 {
		t.Errorf("%q", p)
	}
}

// TestDamagedStateLeavesTheRest checks that the other records of a folder with a damaged state are shown.
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
	if r := b.get("copied"); r.Name != "my copy" || r.Config != config(10) || r.State != model.Interrupted || !strings.Contains(r.Reason, `"dancing" is not a run state`) {
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
	t.Error("the line after the damaged one is not stored, or nothing was logged")
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
	b.Logf("first scan of a thousand runs: %v", time.Since(began))
	for len(s.active()) > 0 {
		time.Sleep(time.Millisecond)
	}
	for b.Loop() {
		if err := s.scan(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

package whole

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model/expect"
)

func text(s string) func(*os.File) error {
	return func(w *os.File) error {
		_, err := w.WriteString(s)
		return err
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func clean(t *testing.T, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(Clean(root, "."), Clean(root, "not there")); err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, content := range []string{"old", "new"} {
		if err := Write(path, text(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Errorf("%q, %v", b, err)
		}
	}
	failed := errors.New("no more")
	if err := Write(path, func(w *os.File) error { return errors.Join(text("half")(w), failed) }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" || len(names(t, dir)) != 1 {
		t.Errorf("after a failure: content %q in %q", b, names(t, dir))
	}
	if err := Write(filepath.Join(dir, "none", "a"), text("")); err == nil {
		t.Error("wrote into a folder that does not exist")
	}
}

// TestErrorsNameTheFile: messages name the file to replace, not the temporary file.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path, taken, missing := filepath.Join(dir, "a"), filepath.Join(dir, "taken"), strings.Repeat("n", 230) // the temporary name is too long
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := func(w *os.File) error {
		w.Close()
		_, err := w.WriteString("x")
		return fmt.Errorf("packing: %w", err)
	}
	for want, err := range map[string]error{
		"packing: write " + path + ": file already closed": Write(path, broken),
		"write " + taken + ": ":                            Write(taken, text("x")),
		"write " + filepath.Join(dir, missing) + ": ":      Write(filepath.Join(dir, missing), text("x")),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), prefix) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if err := Write(path, broken); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestKilledWriter: files of a process killed while writing are removed, but not while it is alive.
func TestKilledWriter(t *testing.T) {
	if dir := os.Getenv("WHOLE_CHILD"); dir != "" {
		_ = Write(filepath.Join(dir, "state.json"), func(w *os.File) error {
			os.Stdout.WriteString("writing\n")
			time.Sleep(time.Minute)
			return nil
		})
		return
	}
	dir := t.TempDir()
	line, kill := expect.Child(t, "WHOLE_CHILD="+dir)
	if line != "writing" {
		t.Fatal(line)
	}
	clean(t, dir)
	if left := names(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], ".tmp-state.json-") {
		t.Fatalf("while its writer is alive: %q", left)
	}
	cleanFor := func(name string) {
		t.Helper()
		if err := CleanFor(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	cleanFor("state.json")
	if left := names(t, dir); len(left) != 1 {
		t.Fatalf("while its writer is alive: %q", left)
	}
	kill()
	temp := filepath.Join(dir, names(t, dir)[0])
	cleanFor("another.json")
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("another file's temporary file was removed: %q", left)
	}
	cleanFor("state.json")
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("after its writer was killed: %q", left)
	}
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	clean(t, dir)
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("after its writer was killed: %q", left)
	}
}

// TestCleanLeavesTheRest: only old temporary files of earlier versions are removed.
func TestCleanLeavesTheRest(t *testing.T) {
	dir, past := t.TempDir(), time.Now().Add(-2*time.Hour)
	for _, name := range []string{"step-1", ".step-1", ".optimizer-1", ".hidden"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, past, past)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".step-2"), nil, 0o600), os.Mkdir(filepath.Join(dir, ".tmp-folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	clean(t, dir)
	if left := strings.Join(names(t, dir), " "); left != ".hidden .step-2 .tmp-folder step-1" {
		t.Errorf("remaining files: %s", left)
	}
}

// TestManyWriters replaces one file from many goroutines while another cleans: every writer succeeds, and nothing is left.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var cleaning, writing sync.WaitGroup
	cleaning.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				clean(t, dir)
			}
		}
	})
	for range 4 {
		writing.Go(func() {
			for range 25 {
				if err := Write(filepath.Join(dir, "a"), text("whole")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	cleaning.Wait()
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "whole" || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v, %q", b, err, names(t, dir))
	}
}

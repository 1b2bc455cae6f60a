//go:build linux

package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A page that finds no room leaves the one before it as it was, and nothing beside it.
func TestFreezeOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	out := filepath.Join(dir, "page.html")
	if err := os.WriteFile(out, []byte("the page before"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := environment{out: io.Discard, err: io.Discard, freeze: func(_ context.Context, _ FreezeOptions, w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}}
	err := freezePages(t.Context(), env, []string{"run-1", "--out", out})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), out) || !strings.Contains(err.Error(), "no file was changed") {
		t.Errorf("%v", err)
	}
	if raw, _ := os.ReadFile(out); string(raw) != "the page before" {
		t.Errorf("the page before is now %d bytes", len(raw))
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFreezePages(t *testing.T) {
	var asked FreezeOptions
	page := func(_ context.Context, o FreezeOptions, w io.Writer) error {
		asked = o
		_, err := io.WriteString(w, "<!DOCTYPE html>")
		return err
	}
	out := filepath.Join(t.TempDir(), "page.html")
	var said bytes.Buffer
	env := environment{out: &said, err: io.Discard, freeze: page}
	if err := freezePages(t.Context(), env, []string{"run-1", "run-2@500", "--out", out, "--data", "/somewhere"}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(out); err != nil || string(raw) != "<!DOCTYPE html>" || !strings.Contains(said.String(), out) {
		t.Errorf("the file holds %q (%v), and was told as %q", raw, err, said.String())
	}
	if !slices.Equal(asked.Names, []string{"run-1", "run-2@500"}) || asked.Data != "/somewhere" {
		t.Errorf("asked for %+v", asked)
	}

	env.freeze = func(context.Context, FreezeOptions, io.Writer) error { return errors.New("too large") }
	if err := freezePages(t.Context(), env, []string{"run-1", "--out", out}); err == nil {
		t.Error("what cannot be frozen is no error")
	}
	env.freeze = page
	missing := filepath.Join(t.TempDir(), "no", "such", "page.html")
	if err := freezePages(t.Context(), env, []string{"--out", missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := freezePages(t.Context(), env, []string{"--out", "page.pdf"}); err == nil || !strings.Contains(err.Error(), ".html") {
		t.Errorf("a name that is no page: %v", err)
	}
	if raw, _ := os.ReadFile(out); string(raw) != "<!DOCTYPE html>" {
		t.Errorf("a failure left %q", raw)
	}
}

//go:build linux

package command

import (
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

// TestFreezeOnFullDisk checks that on a full disk the existing file is unchanged and no other file is left.
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
	env := environment{freeze: func(_ context.Context, _ FreezeOptions, w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}}
	code, _, stderr := calledIn(t, env, "freeze", "run-1", "--out", out)
	if code != failed || !strings.Contains(stderr, syscall.ENOSPC.Error()) || !strings.Contains(stderr, out) || !strings.Contains(stderr, "no file was changed") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if raw, _ := os.ReadFile(out); string(raw) != "the page before" {
		t.Errorf("the page before is now %d bytes", len(raw))
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files left: %v", left)
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
	env := environment{freeze: page}
	code, said, stderr := calledIn(t, env, "freeze", "run-1", "run-2@500", "--out", out, "--data", "/somewhere")
	if raw, err := os.ReadFile(out); code != done || err != nil || string(raw) != "<!DOCTYPE html>" || !strings.Contains(said, out) {
		t.Errorf("exit code %d, %s; the file contains %q (%v), the output is %q", code, stderr, raw, err, said)
	}
	if !slices.Equal(asked.Names, []string{"run-1", "run-2@500"}) || asked.Data != "/somewhere" {
		t.Errorf("the options are %+v", asked)
	}

	env.freeze = func(context.Context, FreezeOptions, io.Writer) error { return errors.New("too large") }
	if code, _, stderr := calledIn(t, env, "freeze", "run-1", "--out", out); code != failed || !strings.Contains(stderr, "too large") {
		t.Errorf("a failed freeze: exit code %d, %s", code, stderr)
	}
	env.freeze = page
	missing := filepath.Join(t.TempDir(), "no", "such", "page.html")
	if code, _, stderr := calledIn(t, env, "freeze", "--out", missing); code != failed || !strings.Contains(stderr, missing) {
		t.Errorf("a folder that does not exist: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := calledIn(t, env, "freeze", "--out", "page.pdf"); code != usage || !strings.Contains(stderr, ".html") {
		t.Errorf("a name that does not end in .html: exit code %d, %s", code, stderr)
	}
	if raw, _ := os.ReadFile(out); string(raw) != "<!DOCTYPE html>" {
		t.Errorf("a failure left %q", raw)
	}
}

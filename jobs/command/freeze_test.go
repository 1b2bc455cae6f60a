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
	"testing"
)

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

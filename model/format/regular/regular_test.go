//go:build unix

package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"slotscope/model/expect"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := expect.Open(t, func(path string) (*os.File, error) {
		return Open(path, func(f *os.File, size int64) (*os.File, error) {
			if size != 7 {
				t.Errorf("the size is %d, want 7", size)
			}
			return f, nil
		})
	}, path)
	if b, err := io.ReadAll(f); err != nil || string(b) != "content" {
		t.Errorf("%q: %v", b, err)
	}
	var left *os.File
	_, err := Open(path, func(f *os.File, _ int64) (int, error) {
		left = f
		return 1, errors.New("unknown format")
	})
	expect.Says(t, err, path, "unknown format")
	if _, err := left.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// TestOpenRefuses: missing files, folders, and pipes without a writer, where opening would block, are errors.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	never := func(*os.File, int64) (int, error) {
		t.Error("read was called")
		return 0, nil
	}
	if _, err := Open(filepath.Join(dir, "missing"), never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_, err := Open(dir, never)
	expect.Says(t, err, dir, "not a regular file")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("cannot create a pipe: %v", err)
	}
	_, err = Open(pipe, never)
	expect.Says(t, err, pipe, "not a regular file")
}

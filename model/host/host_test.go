package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain lets the test binary act as the child of TestReap, which waits to be killed, and as the children of TestSelf.
func TestMain(m *testing.M) {
	switch os.Getenv("HOST_TEST_ROLE") {
	case "child":
		time.Sleep(time.Minute)
		os.Exit(0)
	case "again":
		again()
	case "greet":
		os.Stdout.WriteString("the same program")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestLock: an exclusive lock excludes all others, shared locks coexist, and the holder's text stays readable.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	if err := Lock(a); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteString("12"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "12" {
		t.Errorf("%q, %v", text, err)
	}
	if err := Lock(b); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if err := Share(b); !errors.Is(err, ErrLocked) {
		t.Errorf("shared lock next to an exclusive lock: %v", err)
	}
	Unlock(a)
	if err := errors.Join(Share(a), Share(b)); err != nil {
		t.Errorf("second shared lock: %v", err)
	}
	if err := Lock(open(t, path)); !errors.Is(err, ErrLocked) {
		t.Errorf("exclusive lock next to shared locks: %v", err)
	}
}

func TestRenameFolder(t *testing.T) {
	dir := t.TempDir()
	from, empty, full := filepath.Join(dir, "from"), filepath.Join(dir, "empty"), filepath.Join(dir, "full")
	for _, d := range []string{from, empty, full} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open(t, filepath.Join(full, "kept"))
	if err := RenameFolder(from, full); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a non-empty folder: %v", err)
	}
	if err := RenameFolder(from, empty); err != nil {
		t.Errorf("over an empty folder: %v", err)
	}
	if err := RenameFolder(empty, from); err != nil {
		t.Errorf("to a new name: %v", err)
	}
}

func TestSpace(t *testing.T) {
	if free, all, known := Space(t.TempDir()); !known || free > all || all <= 0 {
		t.Errorf("%d of %d bytes, %v", free, all, known)
	}
	if _, _, known := Space(filepath.Join(t.TempDir(), "missing")); known {
		t.Error("got the space of a missing folder")
	}
}

// TestReap: a child in a separate session is running, is then killed, and is reported once.
func TestReap(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HOST_TEST_ROLE=child")
	Detach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, ended, known := Reap(cmd.Process); ended || !known {
		t.Fatalf("ended %v, known %v", ended, known)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	status, ended, known := Reap(cmd.Process)
	for ; !ended; status, ended, known = Reap(cmd.Process) {
		time.Sleep(time.Millisecond)
	}
	if !known || status.ExitStatus() == 0 {
		t.Errorf("known %v, status %v", known, status)
	}
}

func TestUse(t *testing.T) {
	before := CPU()
	for CPU()-before < 10*time.Millisecond {
	}
	if Peak() < 1<<20 {
		t.Errorf("peak of %d bytes", Peak())
	}
}

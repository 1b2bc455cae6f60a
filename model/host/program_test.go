package host

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// again is the role of a child of TestSelf: for every line that it reads, it starts itself through Self and prints what that child prints,
// and the path or error of File.
func again() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		self, err := Self()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{"HOST_TEST_ROLE=greet"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		file, err := File()
		if err != nil {
			file = err.Error()
		}
		io.WriteString(os.Stdout, string(out)+"; "+file+"\n")
	}
	os.Exit(0)
}

// TestSelf: a process can start its own program after the file was replaced or removed. Other processes cannot, and File says so.
func TestSelf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux knows the program of a process")
	}
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(path)
	child.Env = []string{"HOST_TEST_ROLE=again"}
	in, inErr := child.StdinPipe()
	out, outErr := child.StdoutPipe()
	if inErr != nil || outErr != nil || child.Start() != nil {
		t.Fatal(inErr, outErr)
	}
	t.Cleanup(func() { in.Close(); _ = child.Wait() })
	answers := bufio.NewReader(out)
	for _, c := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"unchanged", func() error { return nil }, "the same program; " + path + "\n"},
		{"removed", func() error { return os.Remove(path) }, "the same program; the program file " + path + " was removed or replaced"},
		{"replaced", func() error { return os.WriteFile(path, []byte("#!/bin/sh\necho another\n"), 0o700) }, "the same program; the program file " + path + " was removed or replaced"},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, "go\n")
		if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, line, err, c.want)
		}
	}
}

//go:build linux

package e2e_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slotscope/model"
	"slotscope/model/folder"
)

// smallDisk mounts a disk of the given size, which requires root, at a new folder; the folder is usable even after an error.
func smallDisk(t *testing.T, size string) (dir string, err error) {
	dir = t.TempDir()
	if err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err == nil {
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	}
	return dir, err
}

// TestServerStartsOnAFullDisk checks that a server starts on a full disk, which has no room for its lock and the files of its index, so that
// a visitor can delete a run; the next start is normal.
func TestServerStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir, err := smallDisk(t, "8m")
	if err != nil {
		t.Skip("cannot mount a small disk: ", err)
	}
	root, err := folder.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"kept", "large"} {
		f, err := root.CreateAs(id, cfg, "", model.Status{State: model.Stopped})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := os.WriteFile(filepath.Join(root.RunDir("large"), "checkpoints", "ballast"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, dir).close() // leaves an empty lock and an index of one file
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}

	s := serve(t, dir)
	s.run("kept")
	s.want(http.StatusOK, "GET", "/", nil, nil)
	s.want(http.StatusOK, "GET", "/runs", nil, nil)
	s.want(http.StatusNoContent, "DELETE", "/api/runs/large", nil, nil)
	if _, err := os.Stat(root.RunDir("large")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deleted run: %v", err)
	}
	s.close()

	s = serve(t, dir)
	s.run("kept")
	s.want(http.StatusNotFound, "GET", "/api/runs/large", nil, nil)
	s.close()
}

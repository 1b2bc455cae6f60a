//go:build linux

package exchange

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slotscope/model"
	"slotscope/model/folder"
)

// small returns a data folder on a disk of 512 KB; fill leaves only the given number of bytes free, and room frees the space again.
func small(t *testing.T) (dir string, fill func(left int64), room func()) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	fill = func(left int64) {
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		info, err := os.Stat(ballast)
		if err == nil {
			err = os.Truncate(ballast, info.Size()-left)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	room = func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	return dir, fill, room
}

// A batch that does not fit on the disk is an error; when it is sent again with enough space, every step is stored once.
func TestLogOnFullDisk(t *testing.T) {
	dir, fill, room := small(t)
	run, err := Store{Data: dir}.Begin("mine", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := folder.Open(filepath.Join(dir, "runs", run.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	batch := make([]model.Point, 3000)
	for i := range batch {
		batch[i] = model.Point{Step: i + 1, Values: map[string]float64{"loss": 1 / float64(i+3), "accuracy": float64(i) / 7}}
	}
	if _, err := Log(f, slices.Clone(batch[:10])); err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 16 << 10, 32 << 10} { // of about 100 KB
		fill(left)
		if _, err := Log(f, slices.Clone(batch)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		room()
	}
	if out, err := Log(f, slices.Clone(batch)); err != nil || out.Last != len(batch) {
		t.Fatalf("with enough space: %+v, %v", out, err)
	}
	steps(t, dir, run.ID, len(batch))
}

// An import that does not fit on the disk is an error; the next import adds the missing points.
func TestImportOnFullDisk(t *testing.T) {
	dir, fill, room := small(t)
	logs := boardOf(t, 2000)
	for _, left := range []int64{0, 16 << 10} {
		fill(left)
		if _, err := Import(t.Context(), dir, "tensorboard", logs); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		room()
	}
	runs, err := Import(t.Context(), dir, "tensorboard", logs)
	if err != nil || len(runs) != 1 {
		t.Fatalf("with enough space: %+v, %v", runs, err)
	}
	steps(t, dir, runs[0].ID, 2000)
}

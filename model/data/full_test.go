//go:build linux

package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a disk of the given size, which requires root.
func smallDisk(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// greedy is a source whose Stream fills the disk, as another process might.
type greedy struct {
	plainSource
	fill string
}

func (g greedy) Stream(ctx context.Context, first int, yield func(int, []byte) error) error {
	n := 0
	return g.plainSource.Stream(ctx, first, func(i int, images []byte) error {
		if n++; n == 3 {
			os.WriteFile(g.fill, make([]byte, 128<<20), 0o644) // as much as fits
		}
		return yield(i, images)
	})
}

// TestFullDisk: adding fails before writing if the disk is too small, and with a clear error if the disk fills up while packing.
func TestFullDisk(t *testing.T) {
	withPlain(t, "", "")
	p := plainSet{N: 3000, Side: 32}
	path := writePlain(t, filepath.Join(t.TempDir(), "a.own"), p)

	c := Catalogue{Dir: filepath.Join(smallDisk(t, "8m"), "data")}
	_, err := c.Add(context.Background(), Request{From: path}, func(Work) {})
	if err == nil || !strings.Contains(err.Error(), "not enough disk space") {
		t.Errorf("too small a disk: %v", err)
	}

	disk := smallDisk(t, "80m")
	c = Catalogue{Dir: filepath.Join(disk, "data")}
	fill := filepath.Join(disk, "fill")
	formats[len(formats)-1].Open = func(_ context.Context, path string, _ Reading) (Source, error) {
		s, err := openPlain(path)
		return greedy{s.(plainSource), fill}, err
	}
	_, err = c.Add(context.Background(), Request{From: path}, func(Work) {})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk of the data folder is full") {
		t.Fatalf("filled meanwhile: %v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(c.Dir, setsDir, "a", packFile+"*")); len(names) != 0 {
		t.Errorf("%q are left", names)
	}
	os.Remove(fill)
	if e, err := c.Entry(context.Background(), "a"); err != nil || e.State == Ready {
		t.Errorf("its entry: %+v, %v", e, err)
	}
	formats[len(formats)-1].Open = func(_ context.Context, path string, _ Reading) (Source, error) { return openPlain(path) }
	same(t, add(t, c, Request{From: path}), p)
}

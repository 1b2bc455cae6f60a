package pack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func root(t testing.TB) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// sample returns random images and labels for a header.
func sample(h Header) (images []byte, labels []uint16) {
	rng := rand.New(rand.NewPCG(1, 2))
	images = make([]byte, h.Len*h.Each)
	for i := range images {
		images[i] = byte(rng.Uint32())
	}
	labels = make([]uint16, h.Len*h.Factors)
	for i := range labels {
		labels[i] = uint16(rng.IntN(4))
	}
	return images, labels
}

func write(t testing.TB, dir *os.Root, h Header, images []byte, labels []uint16) *File {
	t.Helper()
	w, err := NewWriter(dir, "a.pack", h, labels)
	if err != nil {
		t.Fatal(err)
	}
	if h.Each > 0 {
		if err := w.Write(images[w.Done()*h.Each:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(filepath.Join(dir.Name(), "a.pack"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func header(length, each, factors int) Header {
	return Header{Len: length, Each: each, Factors: factors, Info: json.RawMessage(`{"a":1}`), Origin: "there"}
}

// TestRoundTrip writes files of any shape in pieces of any size and reads everything back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := header(rapid.IntRange(1, 700).Draw(rt, "len"), rapid.IntRange(1, 30).Draw(rt, "each"), rapid.IntRange(0, 3).Draw(rt, "factors"))
		images, labels := sample(h)
		dir := root(t)
		w, err := NewWriter(dir, "a.pack", h, labels)
		if err != nil {
			rt.Fatal(err)
		}
		for w.Done() < h.Len {
			n := rapid.IntRange(1, h.Len-w.Done()).Draw(rt, "n")
			if err := w.Write(images[w.Done()*h.Each : (w.Done()+n)*h.Each]); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "interrupted") {
				if err := w.Close(); err != nil {
					rt.Fatal(err)
				}
				before := w.Done()
				if w, err = NewWriter(dir, "a.pack", h, labels); err != nil {
					rt.Fatal(err)
				}
				if lost := before - w.Done(); lost < 0 || lost >= block {
					rt.Fatalf("%d images were lost", lost)
				}
			}
		}
		if err := w.Finish(); err != nil {
			rt.Fatal(err)
		}
		f, err := Open(filepath.Join(dir.Name(), "a.pack"))
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		index := rapid.SliceOfN(rapid.IntRange(0, h.Len-1), 1, 50).Draw(rt, "index")
		got := make([]byte, len(index)*h.Each)
		if err := f.Images(got, index); err != nil {
			rt.Fatal(err)
		}
		classes := make([]int, len(index)*h.Factors)
		if err := f.Labels(classes, index); err != nil {
			rt.Fatal(err)
		}
		for b, i := range index {
			if !bytes.Equal(got[b*h.Each:(b+1)*h.Each], images[i*h.Each:(i+1)*h.Each]) {
				rt.Fatalf("image %d differs", i)
			}
			for k := range h.Factors {
				if classes[b*h.Factors+k] != int(labels[i*h.Factors+k]) {
					rt.Fatalf("labels of image %d are %v", i, classes)
				}
			}
		}
		if size, _ := h.Size(); size != stat(t, f).Size() {
			rt.Fatalf("Size returns %d, the file has %d", size, stat(t, f).Size())
		}
		if err := f.Check(context.Background(), func(int) {}); err != nil {
			rt.Fatal(err)
		}
	})
}

func stat(t testing.TB, f *File) os.FileInfo {
	s, err := f.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFind compares the search with a linear scan.
func TestFind(t *testing.T) {
	h := header(300, 0, 4)
	_, labels := sample(h)
	f := write(t, root(t), h, nil, labels)
	missing := 0
	for tuple := range 5 * 5 * 5 * 5 {
		want := []int{tuple / 125, tuple / 25 % 5, tuple / 5 % 5, tuple % 5}
		first := -1
		for i := h.Len - 1; i >= 0; i-- {
			l := labels[4*i:]
			if int(l[0]) == want[0] && int(l[1]) == want[1] && int(l[2]) == want[2] && int(l[3]) == want[3] {
				first = i
			}
		}
		got, found, err := f.Find(want, func(int) bool { return true })
		if err != nil || found != (first >= 0) || found && got != first {
			t.Fatalf("%v: %d %v %v, want %d", want, got, found, err, first)
		}
		if first < 0 {
			missing++
		} else if next, found, err := f.Find(want, func(i int) bool { return i != first }); err != nil || found && (next <= first || !sameLabels(labels, next, first)) {
			t.Fatalf("%v: after %d comes %d: %v", want, first, next, err)
		}
	}
	if missing == 0 {
		t.Error("every tuple occurs, so missing ones are not tested")
	}
}

// sameLabels compares the four labels of two images.
func sameLabels(labels []uint16, a, b int) bool {
	return slices.Equal(labels[4*a:4*a+4], labels[4*b:4*b+4])
}

// TestAnotherOrigin: writing starts over if the existing file has another origin.
func TestAnotherOrigin(t *testing.T) {
	dir, h := root(t), header(600, 8, 0)
	images, _ := sample(h)
	w, err := NewWriter(dir, "a.pack", h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(images[:512*8]), w.Close()); err != nil {
		t.Fatal(err)
	}
	if w, _ = NewWriter(dir, "a.pack", h, nil); w.Done() != 512 {
		t.Errorf("%d images are kept, want 512", w.Done())
	}
	w.Close()
	h.Origin = "elsewhere"
	if w, _ = NewWriter(dir, "a.pack", h, nil); w.Done() != 0 {
		t.Errorf("%d images of another origin are kept", w.Done())
	}
	w.Close()
}

// TestUnfinished: an incomplete file does not have its final name and cannot be opened.
func TestUnfinished(t *testing.T) {
	dir, h := root(t), header(600, 8, 0)
	images, _ := sample(h)
	w, _ := NewWriter(dir, "a.pack", h, nil)
	if err := errors.Join(w.Write(images[:300*8]), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir.Name(), "a.pack")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening: %v", err)
	}
	if _, err := Open(filepath.Join(dir.Name(), "a.pack"+Part)); err == nil || !strings.Contains(err.Error(), "300 of 600 images") {
		t.Errorf("opening the part: %v", err)
	}
	if err := errors.Join(Discard(dir, "a.pack"), Discard(dir, "a.pack")); err != nil {
		t.Error(err)
	}
	if _, err := dir.Stat("a.pack" + Part); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Discard: %v", err)
	}
}

// TestDamage detects a changed byte, a truncated file and other kinds of files.
func TestDamage(t *testing.T) {
	dir, h := root(t), header(600, 8, 1)
	images, labels := sample(h)
	f := write(t, dir, h, images, labels)
	path := filepath.Join(dir.Name(), "a.pack")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[f.at.images+8*300] ^= 1
	os.WriteFile(path, b, 0o644)
	if err := f.Check(context.Background(), func(int) {}); err == nil || !strings.Contains(err.Error(), "images 256 to 511") {
		t.Errorf("a changed byte: %v", err)
	}
	os.WriteFile(path, b[:len(b)-1], 0o644)
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "600 of 600 images and") {
		t.Errorf("a cut end: %v", err)
	}
	for _, other := range []string{"", "SLOT", "PK\x03\x04 and so on, for more than a few bytes"} {
		os.WriteFile(path, []byte(other), 0o644)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "not a packed dataset") {
			t.Errorf("%q: %v", other, err)
		}
	}
}

// TestBytes: arbitrary bytes after the magic give an error, never a panic.
func TestBytes(t *testing.T) {
	dir := root(t)
	f := write(t, dir, header(10, 4, 1), make([]byte, 40), make([]uint16, 10))
	path := filepath.Join(dir.Name(), "a.pack")
	whole, _ := os.ReadFile(path)
	f.Close()
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(whole)
		for range 3 {
			b[rapid.IntRange(8, 200).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		os.WriteFile(path, b, 0o644)
		if f, err := Open(path); err == nil {
			f.Find(make([]int, f.Header().Factors), func(int) bool { return true })
			f.Close()
		}
	})
}

// full is a file on a disk that fills up after some bytes.
type full struct {
	file
	left int
}

func (f *full) WriteAt(b []byte, at int64) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return f.file.WriteAt(b, at)
}

// TestFullDisk: a full disk keeps what was written, and writing resumes once there is space.
func TestFullDisk(t *testing.T) {
	dir, h := root(t), header(600, 8, 0)
	images, _ := sample(h)
	w, _ := NewWriter(dir, "a.pack", h, nil)
	w.file = &full{w.file, 3000}
	if err := w.Write(images); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("writing: %v", err)
	}
	w.Close()
	f := write(t, dir, h, images, nil)
	got := make([]byte, len(images))
	index := make([]int, h.Len)
	for i := range index {
		index[i] = i
	}
	if err := errors.Join(f.Images(got, index), f.Check(context.Background(), func(int) {})); err != nil || !bytes.Equal(got, images) {
		t.Errorf("after the disk had room again: %v", err)
	}
}

// held is a file whose Sync waits for its result.
type held struct {
	file
	end chan error
}

func (h held) Sync() error { return <-h.end }

// TestSyncMeanwhile: writing continues during a sync, only synced images are counted, and errors of a sync are reported.
func TestSyncMeanwhile(t *testing.T) {
	dir, h := root(t), header(1024, 8, 0)
	images, _ := sample(h)
	w, err := NewWriter(dir, "a.pack", h, nil)
	if err != nil {
		t.Fatal(err)
	}
	disk, end := w.file, make(chan error)
	w.file, w.last = held{disk, end}, time.Time{} // a sync is due
	counted := func() int {
		_, _, done, err := readPreamble(disk)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	for range 3 {
		if err := w.Write(images[w.Done()*8:][:256*8]); err != nil {
			t.Fatal(err)
		}
	}
	if w.Done() != 768 || counted() != 0 {
		t.Errorf("%d images are written and %d counted during a sync", w.Done(), counted())
	}
	end <- nil
	if err := w.endSync(); err != nil || counted() != 256 {
		t.Errorf("%d images are counted of the 256 written before the sync: %v", counted(), err)
	}
	w.last = time.Time{}
	if err := w.Write(images[768*8:]); err != nil {
		t.Fatal(err)
	}
	end <- syscall.EIO
	close(end) // later ones succeed
	if err := w.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed sync is reported as %v", err)
	}
}

// TestTogether reads from several goroutines, for the race detector.
func TestTogether(t *testing.T) {
	h := header(300, 16, 2)
	images, labels := sample(h)
	f := write(t, root(t), h, images, labels)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			got, classes := make([]byte, 16), make([]int, 2)
			for i := g; i < h.Len; i += 3 {
				if err := errors.Join(f.Images(got, []int{i}), f.Labels(classes, []int{i})); err != nil || !bytes.Equal(got, images[16*i:16*i+16]) {
					t.Errorf("image %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkRandom reads random images of the size of Shapes3D from a file in the page cache.
func BenchmarkRandom(b *testing.B) {
	h := header(20000, 64*64*3, 0)
	f := write(b, root(b), h, make([]byte, h.Len*h.Each), nil)
	rng := rand.New(rand.NewPCG(3, 4))
	index, dst := make([]int, 128), make([]byte, 128*h.Each)
	for b.Loop() {
		for i := range index {
			index[i] = rng.IntN(h.Len)
		}
		if err := f.Images(dst, index); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*128/b.Elapsed().Seconds(), "images/s")
}

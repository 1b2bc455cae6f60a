package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
)

// squares writes a folder of n grey images of 64 × 64 and damages some. Image i has brightness i, x = i/10 and y = i%10.
func squares(t *testing.T, n int, broken ...int) string {
	t.Helper()
	dir := t.TempDir()
	meta := bytes.NewBufferString("file_name,x,y\n")
	for i := range n {
		img := image.NewGray(image.Rect(0, 0, 64, 64))
		for p := range img.Pix {
			img.Pix[p] = byte(i)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		content, name := b.Bytes(), fmt.Sprintf("%03d.png", i)
		if slices.Contains(broken, i) {
			content = content[:len(content)/2]
		}
		fmt.Fprintf(meta, "%s,%d,%d\n", name, i/10, i%10)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "metadata.csv"), meta.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDamagedPicture: a damaged image is named and can be skipped, and the other images keep their factors.
func TestDamagedPicture(t *testing.T) {
	c, ctx := catalogue(t), t.Context()
	path := squares(t, 200, 0, 77, 199)
	_, err := c.Add(ctx, Request{From: path, Name: "a"}, func(Work) {})
	expect.Says(t, err, path, "000.png", "damaged")
	e, err := c.Entry(ctx, "a")
	if err != nil || e.State != Failed || e.Work.Damaged != "000.png" {
		t.Fatalf("its entry: %+v, %v", e, err)
	}
	set := add(t, c, Request{Name: "a", Skip: true}) // the earlier request, skipping damaged images
	info := set.Info()
	if info.Len != 197 || info.Complete || len(info.Factors) != 2 {
		t.Fatalf("%+v", info)
	}
	expect.Says(t, errors.New(info.Note), "skipped: 000.png, 077.png, 199.png.")
	pixels, classes := make([]byte, 4096), make([]int, 2)
	at := 0
	for i := range 200 {
		tuple := []int{i / 10, i % 10}
		index, err := set.Index(tuple)
		if i == 0 || i == 77 || i == 199 {
			if !errors.Is(err, model.ErrNotFound) {
				t.Errorf("skipped image %d has index %d: %v", i, index, err)
			}
			continue
		}
		if err := errors.Join(err, set.Images(pixels, []int{at}), set.Classes(classes, []int{at})); err != nil {
			t.Fatal(err)
		}
		if index != at || pixels[0] != byte(i) || pixels[4095] != byte(i) || !slices.Equal(classes, tuple) {
			t.Fatalf("image %d: index %d, want %d; brightness %d; classes %v", i, index, at, pixels[0], classes)
		}
		at++
	}
	if counts, err := Counts(ctx, set); err != nil || counts[0][7] != 9 || counts[0][8] != 10 {
		t.Errorf("%v: %v", counts, err)
	}
	if err := c.Check(ctx, "a", func(Work) {}); err != nil {
		t.Error(err)
	}
}

// TestDamagedPicturesResumed: images skipped before an interruption stay skipped after it.
func TestDamagedPicturesResumed(t *testing.T) {
	c := catalogue(t)
	path := squares(t, 250, 3, 240)
	c2 := must(c.plan(Request{From: path, Name: "a", Skip: true}))(t)
	a := &adding{plan: c2, reporter: reporter{dir: must(c.makeRoot("a"))(t), tell: func(Work) {}}}
	source := must(openOwn(t, path))(t)
	defer source.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.leaveOut(source.(forgiving))
	err := source.Stream(ctx, 0, func(first int, _ []byte) error {
		cancel() // after the first of two blocks
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !slices.Contains(a.left.Index, 3) {
		t.Fatalf("%+v: %v", a.left, err)
	}
	again := &adding{plan: c2, reporter: a.reporter}
	if err := again.recallLeftOut(128); err != nil || !slices.Equal(again.left.Index, []int{3}) || !slices.Equal(again.left.Pictures, []string{"003.png"}) {
		t.Errorf("%+v: %v", again.left, err)
	}
	if err := again.recallLeftOut(0); err != nil || len(again.left.Index) != 0 {
		t.Errorf("with no images packed, %+v is skipped: %v", again.left, err)
	}
}

// TestDamagedSet: adding fails if many images are damaged.
func TestDamagedSet(t *testing.T) {
	var broken []int
	for i := range 40 {
		broken = append(broken, 10+i)
	}
	c := catalogue(t)
	_, err := c.Add(t.Context(), Request{From: squares(t, 60, broken...), Name: "a", Skip: true}, func(Work) {})
	expect.Says(t, err, "more than 16 images are damaged")
	if e, err := c.Entry(t.Context(), "a"); err != nil || e.State != Failed || e.Work.Damaged != "" {
		t.Errorf("its entry: %+v, %v", e, err)
	}
}

// TestSkipped compares places with a count.
func TestSkipped(t *testing.T) {
	s := skipped{0, 3, 4, 9}
	index := 0
	for place := range 10 {
		got, kept := s.index(place)
		if kept == slices.Contains(s, place) {
			t.Errorf("place %d is kept: %v", place, kept)
		}
		if !kept {
			continue
		}
		if got != index || s.place(index) != place {
			t.Errorf("place %d has index %d, want %d; index %d has place %d", place, got, index, index, s.place(index))
		}
		index++
	}
}

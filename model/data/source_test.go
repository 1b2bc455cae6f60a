package data

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model/expect"
)

// beginning returns a description with only the first values of every factor.
func beginning(info Info, sizes ...int) Info {
	info = info.clone()
	for f, n := range sizes {
		info.Factors[f].Values = info.Factors[f].Values[:n]
	}
	info.Len = Grid(sizes).Len()
	return info
}

// stream reads all images of a source from index first on.
func stream(t testing.TB, s Source, first int) []byte {
	t.Helper()
	var all []byte
	next := first
	err := s.Stream(t.Context(), first, func(at int, images []byte) error {
		if at != next {
			t.Fatalf("images from %d on were yielded, but %d was next", at, next)
		}
		info := s.Info()
		next += len(images) / (info.H * info.W * info.C)
		all = append(all, images...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func opened(t testing.TB, s Source, err error) Source {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := checkSource(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// patterned checks images against the formula of the fixtures, (7n + 3y + 5x + 11c) & 255.
func patterned(t testing.TB, images []byte, first int) {
	t.Helper()
	for i, v := range images {
		n, y, x, c := i/12288+first, i/192%64, i/3%64, i%3
		if v != byte(7*n+3*y+5*x+11*c) {
			t.Fatalf("image %d, pixel (%d, %d), channel %d is %d", n, x, y, c, v)
		}
	}
}

func TestShapes3DFile(t *testing.T) {
	info := beginning(originalInfo, 1, 1, 1, 1, 4, 15)
	for _, name := range []string{"3dshapes_gzip_per_image.h5", "3dshapes_latest.h5"} {
		source, err := openShapes3DFile(info, "testdata/"+name)
		source = opened(t, source, err)
		if _, ok := source.(InPlace); ok {
			t.Error("deflated images claim to be in place")
		}
		patterned(t, stream(t, source, 0), 0)
		patterned(t, stream(t, source, 37), 37)
	}
	_, err := openShapes3DFile(originalInfo, "testdata/3dshapes_latest.h5")
	expect.Says(t, err, "Shapes3D", "3dshapes_latest.h5", "[60 64 64 3]", "[480000 64 64 3]")
	_, err = openShapes3DFile(info, "testdata/grouped.h5")
	expect.Says(t, err, `"images"`, "imgs", "check that this is the published file")
	other := info.clone()
	other.Factors[4], other.Factors[5] = other.Factors[5], other.Factors[4]
	_, err = openShapes3DFile(other, "testdata/3dshapes_latest.h5")
	expect.Says(t, err, "3dshapes_latest.h5", `"labels"`, "row 4", "orientation is 0", "another order")
}

// stored repacks the compressed archive of images without compression, as np.savez writes it.
func stored(t testing.TB) string {
	t.Helper()
	from, err := zip.OpenReader("testdata/mpi3d_compressed.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var b bytes.Buffer
	to := zip.NewWriter(&b)
	for _, member := range from.File {
		r := must(member.Open())(t)
		w := must(to.CreateHeader(&zip.FileHeader{Name: member.Name, Method: zip.Store}))(t)
		if _, err := io.Copy(w, r); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "real3d_complicated_shapes_ordered.npz")
	if err := errors.Join(to.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMPI3D(t *testing.T) {
	info := beginning(publishedMPI3DComplex.Info, 1, 1, 1, 1, 1, 2, 30)
	source, err := openMPI3D(info, stored(t))
	source = opened(t, source, err)
	patterned(t, stream(t, source, 0), 0)
	placed, ok := source.(InPlace)
	if !ok {
		t.Fatal("stored images are not in place")
	}
	dst := make([]byte, 2*12288)
	if err := placed.ReadImages(dst, []int{59, 3}); err != nil {
		t.Fatal(err)
	}
	patterned(t, dst[:12288], 59)
	patterned(t, dst[12288:], 3)
	invalid(t, placed.ReadImages(dst[:12288], []int{60}), "index", "60", "0 to 59")

	source, err = openMPI3D(info, "testdata/mpi3d_compressed.npz")
	source = opened(t, source, err)
	if _, ok := source.(InPlace); ok {
		t.Error("deflated images claim to be in place")
	}
	patterned(t, stream(t, source, 0), 0)
	patterned(t, stream(t, source, 59), 59)
	_, err = openMPI3D(publishedMPI3DToy.Info, "testdata/mpi3d_compressed.npz")
	expect.Says(t, err, "MPI3D, toy", "mpi3d_compressed.npz", "[60 64 64 3]", "[1036800 64 64 3]", "another dataset")
	_, err = openMPI3D(info, "testdata/dsprites_mini.npz")
	expect.Says(t, err, `"images"`, "imgs")
}

func TestDSprites(t *testing.T) {
	for path, sizes := range map[string][]int{
		"testdata/dsprites_mini.npz": {1, 1, 1, 1, 2, 32},
		"testdata/grouped.h5":        {1, 1, 1, 1, 4, 15},
	} {
		source, err := openDSprites(beginning(dspritesInfo, sizes...), path)
		source = opened(t, source, err)
		for i, v := range stream(t, source, 0) {
			n, y, x := i/4096, i/64%64, i%64
			want := byte(0)
			if byte(7*n+3*y+5*x) > 127 {
				want = 255
			}
			if v != want {
				t.Fatalf("%s: image %d, pixel (%d, %d) is %d", path, n, x, y, v)
			}
		}
	}
	_, err := openDSprites(beginning(dspritesInfo, 1, 1, 1, 1, 2, 30), "testdata/grouped.h5")
	expect.Says(t, err, "grouped.h5", `"latents/classes"`, "row 15", "posX is 1", "has 0")
}

// TestPublishedGrids: the factors of the published datasets have the published sizes and order.
func TestPublishedGrids(t *testing.T) {
	for name, sizes := range map[string][]int{
		"shapes3d":        {10, 10, 10, 8, 4, 15},
		"mpi3d-complex":   {4, 4, 2, 3, 3, 40, 40},
		"mpi3d-toy":       {6, 6, 2, 3, 3, 40, 40},
		"mpi3d-realistic": {6, 6, 2, 3, 3, 40, 40},
		"mpi3d-real":      {6, 6, 2, 3, 3, 40, 40},
		"dsprites":        {1, 3, 6, 40, 32, 32},
		"falcor3d":        {5, 6, 6, 6, 6, 6, 6},
		"isaac3d":         {3, 8, 5, 4, 4, 4, 6, 4, 4},
		"cars3d":          {4, 24, 183},
		"smallnorb":       {5, 10, 9, 18, 6},
	} {
		p := publishedByName(name)
		if p == nil {
			t.Errorf("%s is not published", name)
			continue
		}
		if !slices.Equal(p.Info.Sizes(), sizes) || p.Info.Len != Grid(sizes).Len() || !p.Info.Complete {
			t.Errorf("%s: %v, %d images", name, p.Info.Sizes(), p.Info.Len)
		}
	}
}

// TestStreamStops: Stream stops with the error of yield, and when the context ends.
func TestStreamStops(t *testing.T) {
	source, err := openMPI3D(beginning(publishedMPI3DComplex.Info, 1, 1, 1, 1, 1, 2, 30), stored(t))
	source = opened(t, source, err)
	full := errors.New("the disk is full")
	if err := source.Stream(t.Context(), 0, func(int, []byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("ended with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := source.Stream(ctx, 0, func(int, []byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// TestWorkLine checks the lines of progress of adding a dataset.
func TestWorkLine(t *testing.T) {
	for _, c := range []struct {
		work Work
		want string
	}{
		{Work{}, "starting"},
		{Work{Stage: "downloading", What: "a.npz", Done: 1_500_000, Unit: "bytes"}, "downloading a.npz, 1.5 MB"},
		{Work{Stage: "packing", Done: 74_752, Of: 737_280, Unit: "images", Rate: 170.4, Left: 3884}, "packing, 74,752 of 737,280 images (10 %), 170 images/s, 1 h 4 min left"},
		{Work{Stage: "packing", Done: 999, Of: 1_000, Unit: "images", Rate: 12_345, Left: 185}, "packing, 999 of 1,000 images (100 %), 12,345 images/s, 3 min 5 s left"},
		{Work{Stage: "checking", What: "a.h5", Done: 5e8, Of: 1e9, Unit: "bytes", Rate: 1e7, Left: 50}, "checking a.h5, 500.0 MB of 1.0 GB (50 %), 10.0 MB/s, 50 s left"},
	} {
		if got := c.work.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.work, got, c.want)
		}
	}
}

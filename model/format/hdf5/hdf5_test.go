package hdf5

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
	"slotscope/model/expect"
)

func dataset(t testing.TB, f *File, path string) *Dataset {
	t.Helper()
	d, err := f.Dataset(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func rows(t testing.TB, r *Reader, first, n int) []byte {
	t.Helper()
	b := slices.Repeat([]byte{0xee}, n*r.d.RowBytes())
	if err := r.Read(b, first); err != nil {
		t.Fatal(err)
	}
	return b
}

// checkImages holds rows of 16 × 16 × 3 bytes against the formula of testdata/make.py.
func checkImages(t *testing.T, pixels []byte, first int) {
	t.Helper()
	for i, v := range pixels {
		n, y, x, c := i/768+first, i/48%16, i/3%16, i%3
		if v != byte(7*n+3*y+5*x+11*c) {
			t.Fatalf("image %d, pixel (%d, %d), channel %d is %d", n, x, y, c, v)
		}
	}
}

// TestStorage reads the same array from every kind of storage: all at once, in order in pieces, and here and there.
func TestStorage(t *testing.T) {
	for _, name := range []string{"contiguous", "userblock", "official", "ragged", "each", "plain", "latest", "paged", "implicit"} {
		t.Run(name, func(t *testing.T) {
			f := expect.Open(t, Open, "testdata/"+name+".h5")
			d := dataset(t, f, "images")
			if !slices.Equal(d.Shape, []int{60, 16, 16, 3}) || d.Kind != 'u' || d.Size != 1 {
				t.Fatalf("%v of %c%d", d.Shape, d.Kind, d.Size)
			}
			checkImages(t, rows(t, d.Reader(), 0, 60), 0)
			inOrder := d.Reader()
			for first := 0; first < 60; first += 4 {
				checkImages(t, rows(t, inOrder, first, 4), first)
			}
			anywhere := d.Reader()
			for _, r := range [][2]int{{59, 1}, {0, 1}, {13, 20}, {7, 7}, {14, 1}, {14, 2}, {2, 1}, {55, 5}} {
				checkImages(t, rows(t, anywhere, r[0], r[1]), r[0])
			}
			l := dataset(t, f, "/labels")
			b := rows(t, l.Reader(), 0, 60)
			for n := range 60 {
				shape, angle := float(b[n*16:]), float(b[n*16+8:])
				if shape != float64(n/15) || math.Abs(angle-(-30+60*float64(n%15)/14)) > 1e-9 {
					t.Fatalf("label %d is %v, %v", n, shape, angle)
				}
			}
		})
	}
}

func float(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// TestTypes reads 0 … 23 (−12 … 11 where signed) in every type, chunked, shuffled, deflated, with checksums.
func TestTypes(t *testing.T) {
	f := expect.Open(t, Open, "testdata/types.h5")
	for _, c := range []struct {
		path string
		kind byte
		size int
		last uint64 // bits of the last element
	}{
		{"u1", 'u', 1, 23}, {"u2", 'u', 2, 23}, {"u4", 'u', 4, 23}, {"u8", 'u', 8, 23},
		{"i1", 'i', 1, 11}, {"i2", 'i', 2, 11}, {"i4", 'i', 4, 11}, {"i8", 'i', 8, 11},
		{"f2", 'f', 2, 0x4dc0}, {"f4", 'f', 4, uint64(math.Float32bits(23))}, {"f8", 'f', 8, math.Float64bits(23)},
		{"a/b/deep", 'i', 8, 23},
	} {
		d := dataset(t, f, c.path)
		if d.Kind != c.kind || d.Size != c.size || !slices.Equal(d.Shape, []int{4, 6}) {
			t.Errorf("%s: %c%d %v", c.path, d.Kind, d.Size, d.Shape)
		}
		b := rows(t, d.Reader(), 0, 4)
		last := (&cursor{rest: b[23*c.size:]}).uint(c.size)
		if last != c.last {
			t.Errorf("%s: the last element has bits %#x, not %#x", c.path, last, c.last)
		}
	}
	holes := rows(t, dataset(t, f, "holes").Reader(), 3, 4)
	for i := range 16 {
		want := int16(-7)
		if row := 3 + i/4; row == 4 || row == 5 {
			want = 1
		}
		if v := int16(binary.LittleEndian.Uint16(holes[2*i:])); v != want {
			t.Errorf("element %d of an array with holes is %d, not %d", i, v, want)
		}
	}
	if b := rows(t, dataset(t, f, "never").Reader(), 0, 10); slices.Max(b) != 0 {
		t.Error("what was never written is not zero")
	}
	if d := dataset(t, f, "empty"); d.Len() != 0 || d.RowBytes() != 3 {
		t.Errorf("an empty array is %v", d.Shape)
	}
	names, err := f.Names()
	want := []string{"a/b/deep", "empty", "f2", "f4", "f8", "flags", "holes", "i1", "i2", "i4", "i8", "never", "single", "text", "u1", "u2", "u4", "u8"}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		file, path string
		parts      []string
	}{
		{"lzf", "images", []string{"lzf.h5", `"images"`, "lzf (filter 32000)", "gzip"}},
		{"big", "labels", []string{"big.h5", `"labels"`, "big-endian"}},
		{"growing", "images", []string{"extensible array", "maxshape"}},
		{"virtual", "images", []string{"virtual"}},
		{"dense", "d1", []string{"dense.h5", "fractal heap"}},
		{"types", "text", []string{`"text"`, "datatype class"}},
		{"types", "flags", []string{"an enumeration"}},
		{"types", "single", []string{"single value"}},
		{"types", "soft", []string{`"soft"`, "soft or external link"}},
		{"types", "a", []string{"a group"}},
		{"types", "a/c", []string{`no dataset "a/c"`, "beside its place there is b"}},
		{"types", "u1/x", []string{`no dataset "u1/x"`}},
	} {
		_, err := expect.Open(t, Open, "testdata/"+c.file+".h5").Dataset(c.path)
		expect.Says(t, err, c.parts...)
	}
	_, err := expect.Open(t, Open, "testdata/types.h5").Dataset("images")
	if !errors.Is(err, model.ErrNotFound) {
		t.Errorf("%v is not model.ErrNotFound", err)
	}
	_, err = Open("testdata/make.py")
	expect.Says(t, err, "make.py", "no HDF5 file")
	_, err = Open("testdata")
	expect.Says(t, err, "no regular file")
	_, err = Open("testdata/none.h5")
	expect.Says(t, err, "none.h5", "no such file")
}

// TestDamage: what was cut off and what was changed is named.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile("testdata/ragged.h5")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.h5")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(whole[:len(whole)*2/3])
	_, err = Open(path)
	expect.Says(t, err, "x.h5", "incomplete", "of "+strconv.Itoa(len(whole))+" bytes")
	write(whole[:50])
	_, err = Open(path)
	expect.Says(t, err, "ends within its superblock")

	for _, name := range []string{"images", "labels"} { // deflate's and Fletcher's checksums
		d := dataset(t, expect.Open(t, Open, "testdata/ragged.h5"), name)
		c := d.layout.chunks[len(d.layout.chunks)/2]
		b := slices.Clone(whole)
		b[c.address+uint64(c.size)/2] ^= 0x10
		write(b)
		d = dataset(t, expect.Open(t, Open, path), name)
		err = d.Reader().Read(make([]byte, d.Len()*d.RowBytes()), 0)
		expect.Says(t, err, "x.h5", `dataset "`+name+`"`, "chunk "+strconv.Itoa(c.number)+" at byte "+strconv.FormatUint(c.address, 10))
	}
}

// FuzzRead: no file makes the reader panic, or allocate without measure.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"types", "latest", "implicit", "virtual", "dense"} {
		b, err := os.ReadFile("testdata/" + name + ".h5")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "fuzz.h5")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		names, _ := file.Names()
		for _, name := range append(names[:min(len(names), 20)], "images") {
			d, err := file.Dataset(name)
			if err != nil || d.RowBytes() == 0 || d.Len() == 0 {
				continue
			}
			if d.bytes() > len(content)*maxRatio {
				t.Fatalf("%d bytes hold an array of %d", len(content), d.bytes())
			}
			if n := min(d.Block(), 64); n*d.RowBytes() < 1<<22 {
				_ = d.Reader().Read(make([]byte, n*d.RowBytes()), d.Len()-n)
			}
		}
	})
}

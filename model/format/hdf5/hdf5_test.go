package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// checkImages compares rows of 16 × 16 × 3 bytes with the formula of testdata/make.py.
func checkImages(t *testing.T, pixels []byte, first int) {
	t.Helper()
	for i, v := range pixels {
		n, y, x, c := i/768+first, i/48%16, i/3%16, i%3
		if v != byte(7*n+3*y+5*x+11*c) {
			t.Fatalf("image %d, pixel (%d, %d), channel %d is %d", n, x, y, c, v)
		}
	}
}

// TestStorage reads the same array from every kind of storage: all at once, in order in pieces, and in any order.
func TestStorage(t *testing.T) {
	for _, name := range []string{"contiguous", "userblock", "official", "ragged", "each", "plain", "latest", "paged", "implicit", "lzf", "growing"} {
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

// TestTypes reads 0 … 23 (−12 … 11 if signed) in every type, chunked, shuffled, compressed, with checksums.
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
		t.Error("unwritten elements are not zero")
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

// TestGrown reads resizable datasets with every kind of index. Their elements are 0, 1, 2 ….
func TestGrown(t *testing.T) {
	f := expect.Open(t, Open, "testdata/grown.h5")
	for _, path := range []string{"across", "room", "both", "packed", "many", "shrunk", "links/399_" + strings.Repeat("x", 40)} {
		d := dataset(t, f, path)
		b := rows(t, d.Reader(), 0, d.Len())
		width := d.Shape[1]
		step := width // width of the array when it was written
		if path == "shrunk" {
			step = 10
		}
		for i := range len(b) / d.Size {
			want := i/width*step + i%width
			if got := (&cursor{rest: b[i*d.Size:]}).uint(d.Size); got != uint64(want)&(1<<(8*d.Size)-1) {
				t.Fatalf("%s: element %d is %d, not %d", path, i, got, want)
			}
		}
	}
	far := dataset(t, f, "far")
	b := rows(t, far.Reader(), 0, far.Len())
	written := []int{0, 3, 4, 20, 500, 9000, 70000, 140000, 140001, 149999}
	for i, v := range b {
		want := byte(7)
		if slices.Contains(written, i) {
			want = byte(i % 251)
		}
		if v != want {
			t.Fatalf("element %d is %d, not %d", i, v, want)
		}
	}
	names, err := f.Names()
	if err != nil || len(names) != 407 {
		t.Errorf("%d datasets are listed: %v", len(names), err)
	}
	dense := expect.Open(t, Open, "testdata/dense.h5")
	for i := range 12 {
		if b := rows(t, dataset(t, dense, "d"+strconv.Itoa(i)).Reader(), 0, 1); int(b[0]) != i {
			t.Errorf("d%d holds %d", i, b[0])
		}
	}
}

// TestKinds reads big-endian numbers, enumerations, bools, named types and text, and follows soft links.
func TestKinds(t *testing.T) {
	f, types := expect.Open(t, Open, "testdata/kinds.h5"), expect.Open(t, Open, "testdata/types.h5")
	big := dataset(t, f, "big")
	if b := rows(t, big.Reader(), 0, 6); !big.BigEndian || int16(binary.BigEndian.Uint16(b[4:])) != -1 {
		t.Errorf("%v", b)
	}
	bigf := dataset(t, f, "bigf")
	if b := rows(t, bigf.Reader(), 3, 1); math.Float32frombits(binary.BigEndian.Uint32(b)) != 0.75 {
		t.Errorf("%v", b)
	}
	if d := dataset(t, expect.Open(t, Open, "testdata/big.h5"), "labels"); !d.BigEndian || d.Kind != 'f' {
		t.Errorf("%+v", d)
	}
	if d := dataset(t, f, "colour"); d.Kind != 'i' || !slices.Equal(rows(t, d.Reader(), 0, 3), []byte{2, 0, 1}) {
		t.Errorf("%+v", d)
	}
	if d := dataset(t, types, "flags"); d.Kind != 'b' || !slices.Equal(rows(t, d.Reader(), 0, 2), []byte{1, 0}) {
		t.Errorf("%+v", d)
	}
	for _, path := range []string{"named", "way/v"} {
		if d := dataset(t, f, path); d.Kind != 'u' || d.Size != 2 || !slices.Equal(rows(t, d.Reader(), 0, 3), []byte{1, 0, 2, 0, 3, 0}) {
			t.Errorf("%s: %+v", path, d)
		}
	}
	if d := dataset(t, types, "soft"); !slices.Equal(d.Shape, []int{4, 6}) {
		t.Errorf("a soft link leads to %v", d.Shape)
	}
	for path, want := range map[string][]string{"names": {"größe", "shape", ""}, "fixed": {"a", "bcd"}} {
		if got, err := dataset(t, f, path).Strings(10); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	_, err := dataset(t, f, "names").Strings(2)
	expect.Says(t, err, "kinds.h5", `"names"`, "too many")
	_, err = dataset(t, f, "big").Strings(10)
	expect.Says(t, err, `"big"`, "numbers, not text")
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		file, path string
		parts      []string
	}{
		{"virtual", "images", []string{"virtual"}},
		{"types", "single", []string{"single value"}},
		{"kinds", "types/there", []string{`"there"`, "external link"}},
		{"kinds", "round", []string{`"round"`, "more than 16"}},
		{"types", "a", []string{"a group"}},
		{"types", "a/c", []string{`no dataset "a/c"`, "available: b"}},
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
	expect.Says(t, err, "make.py", "not an HDF5 file")
	_, err = Open("testdata")
	expect.Says(t, err, "not a regular file")
	_, err = Open("testdata/none.h5")
	expect.Says(t, err, "none.h5", "no such file")
}

// TestDamage: errors for truncated and changed files say where the damage is.
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

// TestChangedBytes: changed bytes in the indexes of chunks and links make the reader neither panic nor hang.
func TestChangedBytes(t *testing.T) {
	whole, err := os.ReadFile("testdata/grown.h5")
	if err != nil {
		t.Fatal(err)
	}
	var spots []int // every structure, from its signature on
	for _, signature := range []string{"EAHD", "EAIB", "EASB", "EADB", "BTHD", "BTIN", "BTLF", "FRHP", "FHIB", "FHDB", "FAHD", "FADB", "OHDR"} {
		for at := 0; ; at++ {
			next := bytes.Index(whole[at:], []byte(signature))
			if next < 0 {
				break
			}
			at += next
			spots = append(spots, at)
		}
	}
	path, rng := filepath.Join(t.TempDir(), "x.h5"), rand.New(rand.NewPCG(5, 6))
	for range 60 {
		b := slices.Clone(whole)
		for range 1 + rng.IntN(3) {
			b[min(len(b)-1, spots[rng.IntN(len(spots))]+4+rng.IntN(140))] = byte(rng.Uint32())
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			continue
		}
		_, _ = f.Names()
		for _, name := range []string{"across", "room", "both", "packed", "many", "shrunk", "far", "links/000_" + strings.Repeat("x", 40)} {
			if d, err := f.Dataset(name); err == nil && d.RowBytes() > 0 && d.Len() > 0 {
				_ = d.Reader().Read(make([]byte, min(d.Len(), 64)*d.RowBytes()), 0)
			}
		}
		f.Close()
	}
}

// FuzzRead: no file makes the reader panic or allocate too much.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"types", "latest", "implicit", "virtual", "dense", "kinds"} {
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
				_, _ = d.Strings(1 << 16)
			}
		}
	})
}

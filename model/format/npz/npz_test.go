package npz

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
	"slotscope/model/expect"
)

func array(t testing.TB, f *File, name string) *Array {
	t.Helper()
	a, err := f.Array(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestValues reads orders.npz, which has n = 0 … 23 in shape [2, 3, 4] in every order and type.
func TestValues(t *testing.T) {
	f := expect.Open(t, Open, "testdata/orders.npz")
	for _, c := range []struct {
		name  string
		dtype string
		shape []int
		value func(n int) float64
	}{
		{"c", "int64", []int{2, 3, 4}, func(n int) float64 { return float64(n) }},
		{"f", "int64", []int{2, 3, 4}, func(n int) float64 { return float64(n) }},
		{"big", "int16", []int{2, 3, 4}, func(n int) float64 { return float64(n) }},
		{"half", "float16", []int{2, 3, 4}, func(n int) float64 { return float64(n) / 8 }},
		{"single", "float32", []int{2, 3, 4}, func(n int) float64 { return float64(n) / 8 }},
		{"double", "float64", []int{2, 3, 4}, func(n int) float64 { return -float64(n) / 8 }},
		{"byte", "uint8", []int{2, 3, 4}, func(n int) float64 { return float64(n) }},
		{"signed", "int8", []int{2, 3, 4}, func(n int) float64 { return float64(n - 12) }},
		{"flag", "bool", []int{2, 3, 4}, func(n int) float64 { return float64(1 - n%2) }},
		{"scalar", "float64", []int{}, func(int) float64 { return 2.5 }},
		{"empty", "float64", []int{0, 3}, nil},
	} {
		a := array(t, f, c.name)
		if a.DType() != c.dtype || !slices.Equal(a.Shape, c.shape) {
			t.Errorf("%s is %s %v", c.name, a.DType(), a.Shape)
		}
		got, err := a.Float64s()
		if err != nil || len(got) != a.Len() {
			t.Fatalf("%s: %d values, %v", c.name, len(got), err)
		}
		for n, v := range got {
			if v != c.value(n) {
				t.Errorf("%s: element %d is %v", c.name, n, v)
			}
		}
	}
	ints, err := array(t, f, "signed").Ints()
	if err != nil || ints[0] != -12 || ints[23] != 11 {
		t.Errorf("signed: %v, %v", ints, err)
	}
	for name, want := range map[string][]string{"letters": {"hue", "größe"}, "bytes": {"a", "bcd"}} {
		got, err := array(t, f, name).Strings()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(name, diff, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := expect.Open(t, Open, "testdata/orders.npz")
	_, err := f.Array("complex")
	expect.Says(t, err, "orders.npz", `"complex"`, `"<c16"`)
	_, err = f.Array("records")
	expect.Says(t, err, `"records"`, "structured arrays")
	_, err = f.Array("images")
	expect.Says(t, err, `no array "images"`, "double")
	if !errors.Is(err, model.ErrNotFound) {
		t.Error("a missing array is not model.ErrNotFound")
	}
	_, err = array(t, f, "half").Ints()
	expect.Says(t, err, `"half"`, "element 1", "0.125")
	_, err = array(t, f, "letters").Ints()
	expect.Says(t, err, "text")
	_, err = array(t, f, "letters").Float64s()
	expect.Says(t, err, "text")
	_, err = array(t, f, "c").Strings()
	expect.Says(t, err, "int64")
	_, err = array(t, f, "huge").Ints()
	expect.Says(t, err, "18446744073709551615", "too large")
	_, err = expect.Open(t, Open, "testdata/dsprites_mini.npz").Array("metadata")
	expect.Says(t, err, "dsprites_mini.npz", `"metadata"`, "pickle")
	_, err = Open("testdata/make.py")
	expect.Says(t, err, "make.py", "not an .npz archive or .npy array")
	_, err = Open("testdata/none.npz")
	expect.Says(t, err, "none.npz", "no such file")
	_, err = Open("testdata")
	expect.Says(t, err, "not a regular file")
}

func TestHeaderVersions(t *testing.T) {
	for _, name := range []string{"v1", "v2", "v3", "python2"} {
		a := array(t, expect.Open(t, Open, "testdata/"+name+".npy"), "")
		got, err := a.Ints()
		if err != nil || len(got) != 24 || got[23] != 23 || a.DType() != "uint8" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"{'descr': '|u1', 'fortran_order': False, 'shape': (2,)":                                "missing",
		"{'descr': '|u1', 'fortran_order': False}":                                              "missing",
		"{'descr': '|u1', 'fortran_order': 1, 'shape': ()}":                                     "True or False",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}":                              "shape",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}":            "shape",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296,4294967296)}":            "larger than any file",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}":                "twice",
		"{'descr': '|u3', 'fortran_order': False, 'shape': (1,)}":                               "|u3",
		"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}":                           "unknown",
		"{'descr': '', 'fortran_order': False, 'shape': (1,)}":                                  "unknown",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 65) + ")}": "shape",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 'x'}":                  "more",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}":                              "missing",
		"{'descr': '|u1, 'fortran_order': False, 'shape': (1,)}":                                "unknown",
	} {
		_, err := parseHeader(text)
		expect.Says(t, err, want)
	}
	_, _, err := ReadHeader(strings.NewReader("\x93NUMPY\x04\x00\x00\x00"))
	expect.Says(t, err, "version 4")
	_, _, err = ReadHeader(strings.NewReader("\x93NUMPY\x02\x00\xff\xff\xff\xff"))
	expect.Says(t, err, "4294967295")
	_, _, err = ReadHeader(strings.NewReader("\x93NUMPY\x01\x00\x10\x00{'descr'"))
	expect.Says(t, err, "ends within")
}

// pattern returns the value of a pixel of the image fixtures.
func pattern(i int) byte {
	n, y, x, c := i/12288, i/192%64, i/3%64, i%3
	return byte(7*n + 3*y + 5*x + 11*c)
}

// TestStoredAndDeflated streams compressed images and reads uncompressed ones in any order.
func TestStoredAndDeflated(t *testing.T) {
	deflated := array(t, expect.Open(t, Open, "testdata/mpi3d_compressed.npz"), "images")
	if deflated.InPlace() != nil || !slices.Equal(deflated.Shape, []int{60, 64, 64, 3}) {
		t.Fatalf("deflated: %v", deflated.Shape)
	}
	r, err := deflated.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pixels, err := io.ReadAll(r)
	if err != nil || len(pixels) != 60*64*64*3 {
		t.Fatal(len(pixels), err)
	}
	for i, v := range pixels {
		if v != pattern(i) {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
	path := filepath.Join(t.TempDir(), "stored.npz")
	pack(t, path, zip.Store, map[string][]byte{"images.npy": npy("|u1", "(60, 64, 64, 3)", pixels)})
	stored := array(t, expect.Open(t, Open, path), "images")
	one := make([]byte, 12288)
	if _, err := stored.InPlace().ReadAt(one, 37*12288); err != nil || !bytes.Equal(one, pixels[37*12288:38*12288]) {
		t.Error("image 37 differs", err)
	}
}

// TestDamage: false sizes, truncated files and changed bytes are errors.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	pack(t, path, zip.Deflate, map[string][]byte{"images.npy": npy("|u1", "(60, 64, 64, 3)", make([]byte, 1000))})
	_, err := expect.Open(t, Open, path).Array("images")
	expect.Says(t, err, "737280 bytes", "it has 1000")

	whole, err := os.ReadFile("testdata/mpi3d_compressed.npz")
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "short.npz")
	if err := os.WriteFile(short, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(short)
	expect.Says(t, err, "short.npz", "incomplete")

	changed := slices.Clone(whole)
	changed[len(changed)/2] ^= 0x55
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := array(t, expect.Open(t, Open, path), "images").Stream()
	if err == nil {
		_, err = io.ReadAll(r)
	}
	expect.Says(t, err, `"images"`)
}

// TestChecksum: reading a whole array of an archive verifies its checksum.
func TestChecksum(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := filepath.Join(t.TempDir(), "x.npz")
		pack(t, path, method, map[string][]byte{"codes.npy": npy("|u1", "(2, 3)", []byte{1, 2, 3, 4, 5, 6})})
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		directory := bytes.Index(whole, []byte("PK\x01\x02"))
		whole[directory+16] ^= 1 // a byte of the checksum
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		a := array(t, expect.Open(t, Open, path), "codes")
		_, floats := a.Float64s()
		_, elements := a.Elements()
		for _, err := range []error{floats, elements, a.Verify(t.Context(), func(int64, int64) {})} {
			expect.Says(t, err, "x.npz", `"codes"`, "checksum")
		}
	}
	whole := array(t, expect.Open(t, Open, "testdata/mpi3d_compressed.npz"), "images")
	var told int64
	if err := whole.Verify(t.Context(), func(done, of int64) { told = of - done }); err != nil || told != 0 {
		t.Errorf("an intact file: %v, %d bytes left", err, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := whole.Verify(ctx, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestBomb: an array that claims more than deflate can compress is rejected before decompressing.
func TestBomb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.npz")
	pack(t, path, zip.Deflate, map[string][]byte{"images.npy": npy("|u1", "(10,)", make([]byte, 10))})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	central := bytes.Index(whole, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(whole[central+24:], 4_000_000_000)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = expect.Open(t, Open, path).Array("images")
	expect.Says(t, err, "4000000000", "cannot decompress")
}

// npy returns a version 1 array.
func npy(descr, shape string, elements []byte) []byte {
	text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(append(b, text...), elements...)
}

// pack writes a zip archive.
func pack(t testing.TB, path string, method uint16, members map[string][]byte) {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, content := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// FuzzOpen: no file makes the reader panic or accept impossible sizes.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"orders.npz", "v2.npy", "python2.npy"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "fuzz.npz")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		for _, a := range file.Arrays() {
			if a.Bytes() > int64(len(content)+1)*maxRatio {
				t.Fatalf("%d bytes hold an array of %d", len(content), a.Bytes())
			}
			if v, err := a.Float64s(); err == nil && len(v) != a.Len() {
				t.Fatalf("%d values of %d", len(v), a.Len())
			}
			_, _ = a.Ints()
			_, _ = a.Strings()
		}
	})
}

func BenchmarkInPlace(b *testing.B) {
	path := filepath.Join(b.TempDir(), "stored.npz")
	pack(b, path, zip.Store, map[string][]byte{"images.npy": npy("|u1", "(2000, 64, 64, 3)", make([]byte, 2000*12288))})
	at, one, n := array(b, expect.Open(b, Open, path), "images").InPlace(), make([]byte, 12288), 0
	for b.Loop() {
		n = (n*1103515245 + 12345) & 0x7fffffff
		if _, err := at.ReadAt(one, int64(n%2000)*12288); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}

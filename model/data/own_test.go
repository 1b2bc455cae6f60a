package data

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slotscope/model/expect"
)

// openOwn opens a path in its recognised format.
func openOwn(t testing.TB, path string) (Source, error) {
	t.Helper()
	stat := must(os.Stat(path))(t)
	format, err := recognise(path, stat.IsDir())
	if err != nil {
		return nil, err
	}
	return format.Open(t.Context(), path, Reading{})
}

// npyFile returns a .npy file.
func npyFile(descr, shape string, elements []byte) []byte {
	text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(append(b, text...), elements...)
}

// zipped writes an archive of files, by path, in order of path.
func zipped(t testing.TB, name string, files map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, file := range sortedKeys(files) {
		w := must(z.Create(file))(t)
		if _, err := w.Write(files[file]); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func floats(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func TestOwnArrays(t *testing.T) {
	grey := bytes.Repeat([]byte{7, 8, 9, 10}, 64*64) // 4 images of 64 × 64, whose bytes repeat
	planar := slices.Concat(bytes.Repeat([]byte{1}, 100), bytes.Repeat([]byte{2}, 100), bytes.Repeat([]byte{255}, 100))
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		factors []Factor
		labels  []uint16
		info    Info // size and completeness
		first   []byte
		note    string
	}{
		{
			"grid", map[string][]byte{
				"imgs.npy":         npyFile("|u1", "(4, 64, 64)", grey),
				"labels.npy":       npyFile("<f8", "(4, 2)", floats(0.5, 10, 0.5, 9, 2, 10, 2, 9)),
				"factor_names.npy": npyFile("|S3", "(2,)", []byte("huex\x00\x00")),
				"metadata.npy":     npyFile("|O", "()", []byte("pickle")),
			},
			[]Factor{{"hue", []string{"0.5", "2"}}, {"x", []string{"9", "10"}}}, []uint16{0, 1, 0, 0, 1, 1, 1, 0},
			Info{H: 64, W: 64, C: 1, Len: 4}, []byte{7, 8, 9}, "",
		},
		{
			"complete, one column", map[string][]byte{
				"anything.npy": npyFile("|u1", "(4, 64, 64)", grey), "y.npy": npyFile("<f8", "(4,)", floats(-1, 0, 3, 20)),
			},
			[]Factor{{"factor_0", []string{"-1", "0", "3", "20"}}}, nil, Info{H: 64, W: 64, C: 1, Len: 4, Complete: true}, []byte{7, 8, 9}, "",
		},
		{
			"channels first, scaled", map[string][]byte{"images.npy": npyFile("|u1", "(1, 3, 5, 20)", planar)},
			nil, []uint16{}, Info{H: 64, W: 64, C: 3, Len: 1}, []byte{1, 2, 255, 1, 2, 255}, "from 20 × 5 to 64 × 64, which changes",
		},
		{
			"floats", map[string][]byte{"images.npy": npyFile("<f8", "(1, 2, 2)", floats(0.2, 0.2, 0.2, 0.2))},
			nil, []uint16{}, Info{H: 64, W: 64, C: 1, Len: 1}, []byte{51, 51}, "0 to 255. Images are scaled from 2 × 2",
		},
		{
			"bits", map[string][]byte{"images.npy": npyFile("|b1", "(1, 64, 64)", bytes.Repeat([]byte{1, 0}, 2048))},
			nil, []uint16{}, Info{H: 64, W: 64, C: 1, Len: 1}, []byte{255, 0, 255}, "0 to 255",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, err := openOwn(t, zipped(t, "own.npz", c.files))
			source = opened(t, source, err)
			info := source.Info()
			if diff := cmp.Diff(c.factors, info.Factors); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(source.Labels(), c.labels) {
				t.Errorf("labels %v", source.Labels())
			}
			if info.H != c.info.H || info.W != c.info.W || info.C != c.info.C || info.Len != c.info.Len || info.Complete != c.info.Complete {
				t.Errorf("%+v", info)
			}
			if images := stream(t, source, 0); !bytes.HasPrefix(images, c.first) {
				t.Errorf("images begin %v", images[:8])
			}
			if !strings.Contains(info.Note, c.note) {
				t.Errorf("the note is %q", info.Note)
			}
		})
	}
	source, err := openOwn(t, "testdata/3dshapes_latest.h5")
	source = opened(t, source, err)
	patterned(t, stream(t, source, 5), 5)
	if info := source.Info(); !info.Complete || len(info.Factors) != 6 || len(info.Factors[4].Values) != 4 || info.Factors[5].Values[0] != "-30" {
		t.Errorf("%+v", info.Factors)
	}
	turned := must(os.ReadFile("testdata/fortran.npy"))(t) // images as testdata/make.py made them, first axis fastest
	path := filepath.Join(t.TempDir(), "turned.npy")
	if err := os.WriteFile(path, turned, 0o600); err != nil {
		t.Fatal(err)
	}
	source, err = openOwn(t, path)
	source = opened(t, source, err)
	patterned(t, stream(t, source, 0), 0)
}

func TestOwnArraysRefused(t *testing.T) {
	for _, c := range []struct {
		files map[string][]byte
		parts []string
	}{
		{map[string][]byte{"a.npy": npyFile("|u1", "(1,2,2)", make([]byte, 4)), "b.npy": npyFile("|u1", "(1,2,2)", make([]byte, 4))},
			[]string{"own.npz", "images: 2 arrays of ", "a, 1 × 2 × 2 of uint8; b, ", "name one"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(1,2,2,2)", make([]byte, 8))}, []string{`"images"`, "[1 2 2 2]"}},
		{map[string][]byte{"images.npy": npyFile("<f8", "(1,1,2)", floats(0, 7))}, []string{"scale: ", "0 to 7"}},
		{map[string][]byte{"images.npy": npyFile("<i2", "(1,1,2)", []byte{1, 2, 3, 4})}, []string{"scale: ", "513 to 1027"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(0,1,2)", nil)}, []string{"[0 1 2]", "at least one image"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(2,1,2)", make([]byte, 4)), "labels.npy": npyFile("|u1", "(3,1)", make([]byte, 3))},
			[]string{`"labels"`, "[3 1]", "2 images"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(2,1,1)", []byte{5, 6}), "labels.npy": npyFile("<f8", "(2,2)", floats(1, 2, 3, math.NaN()))},
			[]string{`"labels"`, "row 1, column 1 is NaN"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(2,1,1)", []byte{5, 6}), "labels.npy": npyFile("<f8", "(2,1)", floats(math.Inf(-1), 0))},
			[]string{`"labels"`, "row 0, column 0 is -Inf"}},
		{map[string][]byte{"images.npy": npyFile("|u1", "(2,1,1)", []byte{5, 6}), "labels.npy": npyFile("<i8", "(2,1)", append(make([]byte, 14), 32, 0))},
			[]string{`"labels"`, "row 1, column 0", "9007199254740992", "lose precision"}},
	} {
		_, err := openOwn(t, zipped(t, "own.npz", c.files))
		expect.Says(t, err, c.parts...)
	}
}

// TestArraysBesideEachOther: labels are found in the usual places, unused arrays are named, and a user's choice wins.
func TestArraysBesideEachOther(t *testing.T) {
	images, other := npyFile("|u1", "(4,64,64)", bytes.Repeat([]byte{7, 8, 9, 10}, 64*64)), npyFile("|u1", "(4,64,64)", bytes.Repeat([]byte{90}, 4*64*64))
	labels, three := npyFile("<f8", "(4,)", floats(3, 3, 5, 6)), npyFile("<f8", "(3,)", floats(1, 2, 3))
	text := npyFile("<U3", "(4,)", []byte("r\x00\x00\x00e\x00\x00\x00d\x00\x00\x00b\x00\x00\x00l\x00\x00\x00u\x00\x00\x00r\x00\x00\x00e\x00\x00\x00d\x00\x00\x00b\x00\x00\x00l\x00\x00\x00u\x00\x00\x00"))
	numbers := []Factor{{"factor_0", []string{"3", "5", "6"}}}
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		reading Reading
		factors []Factor
		first   byte
		note    string
	}{
		{"savez(f, X, y)", map[string][]byte{"arr_0.npy": images, "arr_1.npy": labels}, Reading{}, numbers, 7, ""},
		{"X and y", map[string][]byte{"X.npy": images, "Y.npy": labels, "t.npy": three}, Reading{}, numbers, 7, "Arrays not used: t, 3 of float64."},
		{"in a folder", map[string][]byte{"train/images.npy": images, "train/labels.npy": labels, "labels.npy": three}, Reading{}, numbers, 7, "Arrays not used: labels, 3 of float64."},
		{"text", map[string][]byte{"images.npy": images, "labels.npy": text}, Reading{}, []Factor{{"factor_0", []string{"blu", "red"}}}, 7, ""},
		{"names in objects", map[string][]byte{"images.npy": images, "y.npy": labels, "factor_names.npy": npyFile("|O", "(1,)", []byte("pickle"))}, Reading{}, numbers, 7,
			"Factors are numbered because their names cannot be read"},
		{"several may be", map[string][]byte{"images.npy": images, "hue.npy": labels, "shape.npy": text}, Reading{}, nil, 7,
			"Arrays not used: hue, 4 of float64; shape, 4 of text."},
		{"chosen", map[string][]byte{"images.npy": images, "b.npy": other, "hue.npy": labels, "shape.npy": text}, Reading{Images: "b", Labels: "hue, shape"},
			[]Factor{{"hue", []string{"3", "5", "6"}}, {"shape", []string{"blu", "red"}}}, 90, "Arrays not used: images, 4 × 64 × 64 of uint8."},
		{"none", map[string][]byte{"images.npy": images, "y.npy": labels}, Reading{Labels: "none"}, nil, 7, "Arrays not used: y, 4 of float64."},
		{"scaled", map[string][]byte{"images.npy": images}, Reading{Scale: "7..10"}, nil, 0, "Numbers from 7 to 10 are mapped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat, path := catalogue(t), zipped(t, "own.npz", c.files)
			p, err := cat.Preview(t.Context(), Request{From: path, Reading: c.reading})
			if err != nil {
				t.Fatal(err)
			}
			set := add(t, cat, Request{From: path, Reading: c.reading})
			if diff := cmp.Diff(p.Info, set.Info(), cmpopts.EquateEmpty()); diff != "" {
				t.Error("the preview differs from the dataset:", diff)
			}
			got := make([]byte, len(p.Images))
			if err := set.Images(got, []int{0, 1, 2, 3}); err != nil || !bytes.Equal(got, p.Images) || got[0] != c.first {
				t.Errorf("images begin %v, previewed %v: %v", got[:4], p.Images[:4], err)
			}
			if diff := cmp.Diff(c.factors, p.Info.Factors); diff != "" || !strings.Contains(p.Info.Note, c.note) {
				t.Error(diff, p.Info.Note)
			}
		})
	}
	path := zipped(t, "own.npz", map[string][]byte{"images.npy": images, "y.npy": labels})
	for want, r := range map[string]Reading{
		`no array "z"`: {Images: "z"}, "labels: ": {Labels: "z"}, "shape [4]": {Images: "y"}, "not a range": {Scale: "1..0"}, "outside the range 0 to 9": {Scale: "0..9"},
	} {
		_, err := catalogue(t).Preview(t.Context(), Request{From: path, Reading: r})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	_, err := catalogue(t).Preview(t.Context(), Request{From: unpacked(t, map[string][]byte{"a.png": flat(t, 4, 4, color.Gray{9})}), Reading: Reading{Scale: "0..9"}})
	expect.Says(t, err, "only to NumPy, HDF5 and MATLAB files")
}

// TestHDF5BesideEachOther reads what h5py writes: groups for train and test, names of factors as text, bools, big-endian numbers.
func TestHDF5BesideEachOther(t *testing.T) {
	p, err := catalogue(t).Preview(t.Context(), Request{From: must(filepath.Abs("testdata/groups.h5"))(t), Reading: Reading{Images: "train/images"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Factor{{"größe", []string{"0", "1"}}, {"hue", []string{"0", "0.1", "0.2"}}}
	if diff := cmp.Diff(want, p.Info.Factors); diff != "" || !p.Info.Complete || p.Info.Len != 6 {
		t.Error(diff, p.Info)
	}
	if want := []string{"test/images, 3 × 64 × 64 of uint8", "test/labels, 3 × 2 of float32"}; !slices.Equal(p.Unused, want) || len(p.Used) != 3 {
		t.Errorf("used %q, unused %q", p.Used, p.Unused)
	}
	for i := range 6 {
		if p.Images[i*64*64+5] != byte(51*i) {
			t.Errorf("image %d has brightness %d", i, p.Images[i*64*64+5])
		}
	}
	_, err = catalogue(t).Preview(t.Context(), Request{From: must(filepath.Abs("testdata/groups.h5"))(t)})
	expect.Says(t, err, "images: 2 arrays of ", "train/images, 6 × 64 × 64 of float32", "name one")
}

// TestDarkBeginning: the range of brightness does not depend on the first rows alone. A late byte above 1 means 0 to 255, and a late number
// out of range is an error.
func TestDarkBeginning(t *testing.T) {
	const rows = 700
	dark := make([]byte, rows*64*64)
	dark[len(dark)-1] = 200
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := packedAs(t, method, "images.npy", npyFile("|u1", fmt.Sprintf("(%d, 64, 64)", rows), dark))
		source, err := openOwn(t, path)
		source = opened(t, source, err)
		if info := source.Info(); info.Note != "" || stream(t, source, 0)[len(dark)-1] != 200 {
			t.Errorf("method %d: a late byte was changed; the note is %q", method, info.Note)
		}
		if _, inPlace := source.(InPlace); inPlace != (method == zip.Store) {
			t.Errorf("method %d: in place is %v", method, inPlace)
		}
	}
	for _, late := range []float64{1.5, -0.1, math.NaN()} {
		values := make([]float64, rows*4)
		values[len(values)-4] = late
		_, err := openOwn(t, packedAs(t, zip.Store, "images.npy", npyFile("<f8", fmt.Sprintf("(%d, 2, 2)", rows), floats(values...))))
		expect.Says(t, err, "own.npz", `"images"`, fmt.Sprint(late))
	}
	// Floats are packed even without scaling, so that all of them are checked.
	source, err := openOwn(t, packedAs(t, zip.Store, "images.npy", npyFile("<f8", "(1, 64, 64)", floats(make([]float64, 64*64)...))))
	if _, inPlace := opened(t, source, err).(InPlace); inPlace {
		t.Error("floats are read in place, unchecked")
	}
}

// TestStoredArrayDamaged: a dataset that is read in place is compared with the checksum in its file when it is added, and by Check.
func TestStoredArrayDamaged(t *testing.T) {
	c := catalogue(t)
	images := bytes.Repeat([]byte{7, 8, 9, 10}, 64*64)
	path := packedAs(t, zip.Store, "images.npy", npyFile("|u1", "(4, 64, 64)", images))
	var stages []string
	if _, err := c.Add(t.Context(), Request{From: path}, func(w Work) { stages = append(stages, w.Stage) }); err != nil || !slices.Contains(stages, "checking") {
		t.Fatal(err, stages)
	}
	if err := c.Check(t.Context(), "own", func(Work) {}); err != nil {
		t.Error(err)
	}
	whole, before := must(os.ReadFile(path))(t), must(os.Stat(path))(t)
	whole[bytes.Index(whole, images)+5000] ^= 1
	if err := errors.Join(os.WriteFile(path, whole, 0o600), os.Chtimes(path, before.ModTime(), before.ModTime())); err != nil {
		t.Fatal(err)
	}
	expect.Says(t, c.Check(t.Context(), "own", func(Work) {}), path, `"images"`, "checksum")
	_, err := c.Add(t.Context(), Request{From: path, Name: "again"}, func(Work) {})
	expect.Says(t, err, path, `"images"`, "checksum", "damaged")
	if _, err := c.Open(t.Context(), "again"); err == nil {
		t.Error("a damaged set was registered")
	}
}

// packedAs writes own.npz with one file and a method of compression.
func packedAs(t testing.TB, method uint16, name string, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w := must(z.CreateHeader(&zip.FileHeader{Name: name, Method: method}))(t)
	path := filepath.Join(t.TempDir(), "own.npz")
	if _, err := w.Write(content); errors.Join(err, z.Close(), os.WriteFile(path, b.Bytes(), 0o600)) != nil {
		t.Fatal(err)
	}
	return path
}

// TestPicturesOfManySizes: the note says that proportions were changed.
func TestPicturesOfManySizes(t *testing.T) {
	c, grey := catalogue(t), color.Gray{9}
	dir := unpacked(t, map[string][]byte{"0.png": flat(t, 64, 64, grey), "1.png": flat(t, 64, 64, grey), "2.png": flat(t, 30, 100, grey), "3.png": flat(t, 64, 20, grey)})
	const want = "Images differ in size: image 2 is 30 × 100 and was also scaled to 64 × 64, which changes its proportions."
	if got := add(t, c, Request{From: dir, Name: "sizes"}).Info().Note; got != want {
		t.Errorf("the note is %q", got)
	}
	one := unpacked(t, map[string][]byte{"0.png": flat(t, 64, 64, grey), "1.png": flat(t, 64, 64, grey)})
	if got := add(t, c, Request{From: one, Name: "one"}).Info().Note; got != "" {
		t.Errorf("the note on images of one size is %q", got)
	}
}

// TestFactorsOfOneName: two factors cannot share a name, since selections are by name.
func TestFactorsOfOneName(t *testing.T) {
	c := catalogue(t)
	dir := unpacked(t, map[string][]byte{"a.png": flat(t, 4, 4, color.Gray{9}), "metadata.csv": []byte("file_name,x,x\na.png,1,2\n")})
	_, err := c.Add(t.Context(), Request{From: dir, Name: "twice"}, func(Work) {})
	expect.Says(t, err, dir, `two factors are named "x"`)
}

// flat returns a PNG of one colour.
func flat(t testing.TB, w, h int, c color.Color) []byte {
	t.Helper()
	var b bytes.Buffer
	var img interface {
		image.Image
		Set(x, y int, c color.Color)
	} = image.NewNRGBA(image.Rect(0, 0, w, h))
	if _, ok := c.(color.Gray); ok {
		img = image.NewGray(image.Rect(0, 0, w, h))
	}
	for i := range w * h {
		img.Set(i%w, i/w, c)
	}
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked writes files, by path, into a folder.
func unpacked(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOwnPictures(t *testing.T) {
	red, blue, white := flat(t, 80, 80, color.NRGBA{250, 0, 0, 255}), flat(t, 64, 64, color.NRGBA{0, 0, 250, 255}), flat(t, 64, 64, color.Gray{255})
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		factors []Factor
		labels  []uint16
		pixels  []byte // the first of each image
	}{
		{"csv", map[string][]byte{
			"train/b.png": blue, "train/a.png": red,
			"metadata.csv": []byte("\ufefffile_name,size,colour\ntrain/b.png,10,blue\ntrain/a.png,9,\"red, deep\"\n"),
		}, []Factor{{"size", []string{"9", "10"}}, {"colour", []string{"blue", "red, deep"}}}, []uint16{1, 0, 0, 1}, []byte{0, 0, 250, 250, 0, 0}},
		{"jsonl", map[string][]byte{
			"a.png": red, "b.png": blue,
			"metadata.jsonl": []byte("{\"file_name\": \"a.png\", \"n\": 1, \"flag\": true}\n\n{\"file_name\": \"./b.png\", \"n\": 2, \"flag\": true}\n"),
		}, []Factor{{"n", []string{"1", "2"}}, {"flag", []string{"true"}}}, nil, []byte{250, 0, 0, 0, 0, 250}},
		{"jsonl with a mark of its encoding", map[string][]byte{"a.png": red, "metadata.jsonl": []byte("\ufeff{\"file_name\": \"a.png\"}\n")},
			nil, []uint16{}, []byte{250, 0, 0}},
		{"classes", map[string][]byte{"dogs/1.png": red, "cats/2.PNG": blue, "cats/.1.png": {}, "readme.txt": {1}},
			[]Factor{{"class", []string{"cats", "dogs"}}}, nil, []byte{0, 0, 250, 250, 0, 0}},
		{"images only", map[string][]byte{"2.png": red, "1.png": blue}, nil, []uint16{}, []byte{0, 0, 250, 250, 0, 0}},
		{"grey", map[string][]byte{"1.png": white}, nil, []uint16{}, []byte{255}},
	} {
		inside := map[string][]byte{}
		for name, b := range c.files {
			inside["top/"+name] = b
		}
		for _, path := range []string{unpacked(t, c.files), zipped(t, "own.zip", c.files), zipped(t, "own.zip", inside)} {
			source, err := openOwn(t, path)
			source = opened(t, source, err)
			info := source.Info()
			if diff := cmp.Diff(c.factors, info.Factors); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			if !slices.Equal(source.Labels(), c.labels) || info.Complete != (c.labels == nil) {
				t.Errorf("%s: labels %v, complete %v", c.name, source.Labels(), info.Complete)
			}
			images, each := stream(t, source, 0), 64*64*info.C
			for i, v := range c.pixels {
				if images[i/info.C*each+i%info.C] != v {
					t.Errorf("%s: image %d, channel %d is %d, not %d", c.name, i/info.C, i%info.C, images[i/info.C*each+i%info.C], v)
				}
			}
		}
	}
}

func TestOwnPicturesRefused(t *testing.T) {
	red := flat(t, 64, 64, color.NRGBA{250, 0, 0, 255})
	for _, c := range []struct {
		metadata string
		parts    []string
	}{
		{"file_name,x\n../a.png,1\n", []string{"line 2", "../a.png", "leads out"}},
		{"file_name,x\n/etc/a.png,1\n", []string{"line 2", "leads out"}},
		{"name,x\na.png,1\n", []string{"line 1", "no column file_name", `["name" "x"]`}},
		{"file_name|x\na.png|1\n", []string{"line 1", "no column file_name", `["file_name|x"]`}},
		{"", []string{"metadata.csv: the file is empty"}},
		{"file_name,x\na.png,\xe9\n", []string{"metadata.csv", "UTF-8"}},
		{"file_name,x\na.png,1\na.png,2\n", []string{"line 3", "a.png is listed twice"}},
		{"file_name,x\na.png,\n", []string{"line 2", "x is empty"}},
		{"file_name,x\na.png\n", []string{"line 2"}},
		{"file_name,x\n", []string{"no images are listed"}},
		{"file_name,x\nb.png,1\n", []string{"b.png", "no such file"}},
	} {
		dir := unpacked(t, map[string][]byte{"a.png": red, "metadata.csv": []byte(c.metadata)})
		_, err := openOwn(t, dir)
		expect.Says(t, err, append(c.parts, dir)...)
	}
	for metadata, part := range map[string]string{
		`{"file_name":"a.png","x":[1]}`: "x is a list", `{"file_name":"a.png"`: "truncated", `{"file_name":"a.png","x":`: "truncated",
		`{"file_name":"a.png"} {}`: "more than one JSON object", `{"file_name":nan}`: "not JSON", `["a.png"]`: "not a JSON object", `{"x":1}`: "no file_name",
	} {
		_, err := openOwn(t, unpacked(t, map[string][]byte{"a.png": red, "metadata.jsonl": []byte(metadata + "\n")}))
		expect.Says(t, err, "metadata.jsonl: line 1: ", part)
	}
	_, err := openOwn(t, unpacked(t, map[string][]byte{"a.png": red, "b/1.png": red, "c/1.png": red}))
	expect.Says(t, err, "a.png is next to folders with images, such as b/1.png")
	_, err = openOwn(t, unpacked(t, map[string][]byte{"a.txt": {1}}))
	expect.Says(t, err, "neither a published dataset")
	_, err = openOwn(t, zipped(t, "own.zip", map[string][]byte{"a.txt": {1}}))
	expect.Says(t, err, "own.zip has no image files", "PNG, JPEG, WebP")
	dir := unpacked(t, map[string][]byte{"a.png": red})
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "b.png")); err != nil {
		t.Fatal(err)
	}
	_, err = openOwn(t, dir)
	expect.Says(t, err, dir, "b.png is a link")
	for name, part := range map[string]string{"../../a.png": "leads out", "/a.png": "leads out", "..": "leads out", "caf\x82.png": "UTF-8"} {
		_, err = openOwn(t, zipped(t, "own.zip", map[string][]byte{"a.png": red, name: red}))
		expect.Says(t, err, "own.zip", strconv.Quote(name), part)
	}
	source, err := openOwn(t, zipped(t, "own.zip", map[string][]byte{"./a.png": red, "b/../b.png": red}))
	if source = opened(t, source, err); source.Info().Len != 2 {
		t.Errorf("%d images with unclean names are found", source.Info().Len)
	}
	source, err = openOwn(t, unpacked(t, map[string][]byte{"images/a.png": red, "images/b.png": red}))
	if source = opened(t, source, err); len(source.Info().Factors) != 0 {
		t.Errorf("the only folder is a factor: %+v", source.Info().Factors)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte("file_name,x\na.png,1\nb.png,2\n"))
	f.Add([]byte("{\"file_name\": \"a.png\", \"n\": 1}\n{\"file_name\": \"b.png\", \"n\": 2}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) ([]string, []column, error){parseCSV, parseJSONL} {
			names, columns, err := parse(b)
			if err != nil {
				continue
			}
			for _, c := range columns {
				if len(c.values) != len(names) {
					t.Fatalf("%d values for %d images", len(c.values), len(names))
				}
			}
			for _, name := range names {
				if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
					t.Fatalf("%q leads out of the folder", name)
				}
			}
		}
	})
}

package data

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"slotscope/model/expect"
)

// encoded returns an encoded image.
func encoded(t testing.TB, img image.Image, encode func(io.Writer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// halves returns an image that is red on the left and blue on the right.
func halves(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, color.NRGBA{250, 10, 20, 255})
		if i%w >= w/2 {
			img.Set(i%w, i/w, color.NRGBA{30, 40, 240, 255})
		}
	}
	return img
}

// blueWebP is a lossless blue image of 64 × 64, (0, 0, 255).
const blueWebP = "UklGRiIAAABXRUJQVlA4TBUAAAAvP8APAAcQ0f/+B4CE8P+9FtH/1A8A"

// TestFormatsOfPictures reads one image in every file format.
func TestFormatsOfPictures(t *testing.T) {
	img := halves(64, 64)
	turned := encoded(t, img, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	exif := []byte("Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	turned = slices.Concat(turned[:2], []byte{0xff, 0xe1, 0, byte(len(exif) + 2)}, exif, turned[2:])
	for name, c := range map[string]struct {
		file       []byte
		left, last [3]byte // the first pixel and the last one of its row
	}{
		"a.bmp":  {encoded(t, img, bmp.Encode), [3]byte{250, 10, 20}, [3]byte{30, 40, 240}},
		"a.tiff": {encoded(t, img, func(w io.Writer, m image.Image) error { return tiff.Encode(w, m, nil) }), [3]byte{250, 10, 20}, [3]byte{30, 40, 240}},
		"a.gif": {encoded(t, img, func(w io.Writer, m image.Image) error {
			p := image.NewPaletted(m.Bounds(), color.Palette{color.RGBA{250, 10, 20, 255}, color.RGBA{30, 40, 240, 255}})
			for i := range 64 * 64 {
				p.Set(i%64, i/64, m.At(i%64, i/64))
			}
			return gif.Encode(w, p, nil)
		}), [3]byte{250, 10, 20}, [3]byte{30, 40, 240}},
		"turned.jpg": {turned, [3]byte{250, 10, 20}, [3]byte{250, 10, 20}}, // taken sideways: red above, blue below
	} {
		source, err := openOwn(t, unpacked(t, map[string][]byte{name: c.file}))
		images := stream(t, opened(t, source, err), 0)
		for k := range 3 {
			if apart(images[k], c.left[k]) > 6 || apart(images[63*3+k], c.last[k]) > 6 {
				t.Errorf("%s: the row begins %v and ends %v", name, images[:3], images[63*3:64*3])
			}
		}
		if name == "turned.jpg" && apart(images[63*64*3+2], 240) > 6 {
			t.Errorf("the last row begins %v", images[63*64*3:][:3])
		}
	}
	webp, err := base64.StdEncoding.DecodeString(blueWebP)
	if err != nil {
		t.Fatal(err)
	}
	source, err := openOwn(t, unpacked(t, map[string][]byte{"a.webp": webp}))
	if images := stream(t, opened(t, source, err), 0); !slices.Equal(images[:3], []byte{0, 0, 255}) {
		t.Errorf("WebP begins %v", images[:3])
	}
}

func apart(a, b byte) int { return max(int(a), int(b)) - min(int(a), int(b)) }

// TestTransparentColours: opacity is dropped and colours stay as stored, in every kind of PNG.
func TestTransparentColours(t *testing.T) {
	want := []byte{200, 100, 50}
	clear8, clear16 := color.NRGBA{200, 100, 50, 0}, color.NRGBA64{200 << 8, 100 << 8, 50 << 8, 0}
	palette := image.NewPaletted(image.Rect(0, 0, 64, 64), color.Palette{clear8, color.NRGBA{1, 2, 3, 128}})
	palette.SetColorIndex(1, 0, 1)
	straight, wide := image.NewNRGBA(palette.Rect), image.NewNRGBA64(palette.Rect)
	for i := range 64 * 64 {
		straight.Set(i%64, i/64, clear8)
		wide.Set(i%64, i/64, clear16)
	}
	for name, img := range map[string]image.Image{"palette": palette, "straight": straight, "wide": wide} {
		source, err := openOwn(t, unpacked(t, map[string][]byte{"a.png": encoded(t, img, png.Encode)}))
		images := stream(t, opened(t, source, err), 0)
		if !slices.Equal(images[:3], want) {
			t.Errorf("%s: a transparent pixel is %v", name, images[:3])
		}
		if name == "palette" && !slices.Equal(images[3:6], []byte{1, 2, 3}) {
			t.Errorf("a translucent pixel is %v", images[3:6])
		}
	}
}

// tarred writes an archive.
func tarred(t testing.TB, name string, files map[string][]byte) string {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, file := range sortedKeys(files) {
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o600, Size: int64(len(files[file]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[file]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := plain.Bytes()
	if isTarGz(name) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(b); errors.Join(err, z.Close()) != nil {
			t.Fatal(err)
		}
		b = packed.Bytes()
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFoldersInArchives: classes and metadata are found in archives as in folders, at any depth.
func TestFoldersInArchives(t *testing.T) {
	red, blue := flat(t, 64, 64, color.NRGBA{250, 0, 0, 255}), flat(t, 64, 64, color.NRGBA{0, 0, 250, 255})
	classes := []Factor{{"class", []string{"cat", "dog"}}}
	csv := []byte("file_name,size\nx.png,9\ny.png,10\n")
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		factors []Factor
		note    string
	}{
		{"classes", map[string][]byte{"cat/x.png": blue, "dog/y.png": red}, classes, ""},
		{"classes below one folder", map[string][]byte{"set/train/cat/x.png": blue, "set/train/dog/y.png": red}, classes, ""},
		{"split", map[string][]byte{"train/x.png": blue, "test/y.png": red}, []Factor{{"split", []string{"test", "train"}}},
			"The folders test, train look like a split, not like classes; to use only one of them, add that folder."},
		{"split and classes", map[string][]byte{"test/cat/x.png": blue, "train/dog/y.png": red},
			[]Factor{{"split", []string{"test", "train"}}, {"class", []string{"cat", "dog"}}}, "The folders test, train are the values of the factor split; to use only one of them, add that folder."},
		{"metadata below", map[string][]byte{"a/set/metadata.csv": csv, "a/set/x.png": blue, "a/set/y.png": red, "a/readme.txt": {1}},
			[]Factor{{"size", []string{"9", "10"}}}, ""},
		{"pandas", map[string][]byte{"metadata.csv": []byte(",file_name,size\n0,x.png,9\n1,y.png,10\n"), "x.png": blue, "y.png": red},
			[]Factor{{"size", []string{"9", "10"}}}, `Column "" only numbers the rows and is ignored.`},
	} {
		for _, path := range []string{unpacked(t, c.files), zipped(t, "own.zip", c.files), tarred(t, "own.tar", c.files), tarred(t, "own.tar.gz", c.files)} {
			source, err := openOwn(t, path)
			source = opened(t, source, err)
			if diff := cmp.Diff(c.factors, source.Info().Factors); diff != "" || source.Info().Note != c.note {
				t.Errorf("%s, %s: %s %q", c.name, filepath.Base(path), diff, source.Info().Note)
			}
			if images := stream(t, source, 0); len(images) != 2*64*64*3 {
				t.Errorf("%s: %d bytes", path, len(images))
			}
		}
	}
	_, err := openOwn(t, zipped(t, "own.zip", map[string][]byte{"a/metadata.csv": csv, "b/metadata.csv": csv, "a/x.png": red}))
	expect.Says(t, err, "2 metadata files (a/metadata.csv; b/metadata.csv)", "one at a time")
	whole := must(os.ReadFile(tarred(t, "own.tar.gz", map[string][]byte{"a.png": red})))(t)
	path := filepath.Join(t.TempDir(), "cut.tar.gz")
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = openOwn(t, path)
	expect.Says(t, err, "cut.tar.gz", "unpacking to a temporary file")
	_, err = openOwn(t, tarred(t, "own.tar", map[string][]byte{"../a.png": red}))
	expect.Says(t, err, "own.tar", "leads out")
}

// TestNothingIsLeftOutSilently: the note and the preview name images without a row, and tables that are not used.
func TestNothingIsLeftOutSilently(t *testing.T) {
	red, csv := flat(t, 64, 64, color.NRGBA{250, 0, 0, 255}), []byte("file_name,size\nx.png,9\ny.png,10\n")
	const only = " Factors come from one metadata.csv or metadata.jsonl with a column file_name."
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		len    int
		note   string
		unused []string
	}{
		{"rows", map[string][]byte{"metadata.csv": csv, "x.png": red, "y.png": red, "z/w.png": red, ".hidden.png": red, "readme.txt": nil, "LICENSE.txt": nil}, 2,
			"1 of 3 images has no row in metadata.csv and is left out: z/w.png.", []string{"1 image without a row in metadata.csv"}},
		{"a table in a folder", map[string][]byte{"a/metadata.csv": csv, "a/x.png": red, "a/y.png": red, "b/x.png": red, "b/y.png": red}, 2,
			"2 of 4 images have no row in a/metadata.csv and are left out: b/x.png; b/y.png.", []string{"2 images without a row in a/metadata.csv"}},
		{"other tables", map[string][]byte{"metadata.csv": csv, "metadata.jsonl": nil, "a/metadata.csv": csv, "x.png": red, "y.png": red}, 2,
			"Tables not used: a/metadata.csv; metadata.jsonl." + only, []string{"a/metadata.csv", "metadata.jsonl"}},
		{"another name", map[string][]byte{"labels.csv": []byte("filename,size\nx.png,9\n"), "x.png": red}, 1, "Tables not used: labels.csv." + only, []string{"labels.csv"}},
		{"classes and tables", map[string][]byte{"c/x.png": red, "d/y.png": red, "d/y.json": nil, "labels.npy": nil}, 2,
			"Tables not used: d/y.json; labels.npy." + only, []string{"d/y.json", "labels.npy"}},
	} {
		for _, path := range []string{unpacked(t, c.files), zipped(t, "own.zip", c.files), tarred(t, "own.tar", c.files)} {
			p, err := catalogue(t).Preview(t.Context(), Request{From: path})
			if err != nil || p.Info.Len != c.len || p.Info.Note != c.note || !slices.Equal(p.Unused, c.unused) {
				t.Errorf("%s, %s: %d images, note %q, unused %q, %v", c.name, filepath.Base(path), p.Info.Len, p.Info.Note, p.Unused, err)
			}
		}
	}
	dir := unpacked(t, map[string][]byte{"metadata.csv": csv, "x.png": red, "y.png": red})
	if err := os.Symlink("x.png", filepath.Join(dir, "z.png")); err != nil {
		t.Fatal(err)
	}
	source, err := openOwn(t, dir)
	expect.Says(t, errors.New(opened(t, source, err).Info().Note), "Other images in the folder were not looked for", "z.png is a link")
}

// TestGreyFirst: one image in colour makes the dataset one of colour, wherever it is.
func TestGreyFirst(t *testing.T) {
	grey, red := flat(t, 64, 64, color.Gray{90}), flat(t, 64, 64, color.NRGBA{250, 0, 0, 255})
	for _, path := range []string{unpacked(t, map[string][]byte{"a.png": grey, "b.png": grey, "c.png": red}), zipped(t, "own.zip", map[string][]byte{"a.png": grey, "b.png": grey, "c.png": red})} {
		source, err := openOwn(t, path)
		source = opened(t, source, err)
		images := stream(t, source, 0)
		if source.Info().C != 3 || !slices.Equal(images[:3], []byte{90, 90, 90}) || !slices.Equal(images[2*64*64*3:][:3], []byte{250, 0, 0}) {
			t.Errorf("%d channels, the images begin %v and %v", source.Info().C, images[:3], images[len(images)-3:])
		}
	}
	many := map[string][]byte{}
	for i := range 2*headersRead + 1 {
		many[fmt.Sprintf("%05d.png", i)] = grey
	}
	many["00001.png"] = red // between those whose headers are read
	source, err := openOwn(t, unpacked(t, many))
	source = opened(t, source, err)
	err = source.Stream(t.Context(), 0, func(int, []byte) error { return nil })
	if source.Info().C != 1 {
		t.Errorf("%d channels", source.Info().C)
	}
	expect.Says(t, err, "00001.png has colour", "make all images colour or all grey")
}

// TestSeparators reads metadata.csv with cells separated by semicolons, as spreadsheets of many countries write it, or by tabs.
func TestSeparators(t *testing.T) {
	for _, sep := range []string{",", ";", "\t"} {
		csv := strings.ReplaceAll("file_name|size|name\nx.png|9|\"a, b; c\"\n", "|", sep)
		source, err := openOwn(t, unpacked(t, map[string][]byte{"x.png": flat(t, 64, 64, color.Gray{9}), "metadata.csv": []byte(csv)}))
		want := []Factor{{"size", []string{"9"}}, {"name", []string{"a, b; c"}}}
		if diff := cmp.Diff(want, opened(t, source, err).Info().Factors); diff != "" {
			t.Errorf("separated by %q: %s", sep, diff)
		}
	}
}

// TestArchivesThatAreNotRead: intact images in an unsupported archive are not called damaged and are not skipped.
func TestArchivesThatAreNotRead(t *testing.T) {
	red := flat(t, 64, 64, color.NRGBA{250, 0, 0, 255})
	whole := must(os.ReadFile(zipped(t, "own.zip", map[string][]byte{"a.png": red})))(t)
	for says, change := range map[string]func(entry []byte){
		"it is encrypted": func(entry []byte) { entry[8] |= 1 }, "compressed with bzip2": func(entry []byte) { entry[10] = 12 },
	} {
		b := slices.Clone(whole)
		change(b[bytes.Index(b, []byte("PK\x01\x02")):])
		path := filepath.Join(t.TempDir(), "own.zip")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openOwn(t, path)
		expect.Says(t, err, "own.zip", "a.png", says, "add the folder")
		if d := (damaged{}); errors.As(err, &d) {
			t.Errorf("%v is called damaged", err)
		}
	}
}

// TestForget: a dataset whose adding failed is no longer listed, unless another attempt could resume it.
func TestForget(t *testing.T) {
	c := catalogue(t)
	path := zipped(t, "own.npz", map[string][]byte{"images.npy": npyFile("|u1", "(1,2,2,2)", make([]byte, 8))})
	if _, err := c.Add(t.Context(), Request{From: path}, nil); err == nil {
		t.Fatal("was added")
	}
	if e, err := c.Entry(t.Context(), "own"); err != nil || e.State != Failed {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := c.Forget("own"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Entry(t.Context(), "own"); err == nil {
		t.Error("still listed")
	}
	if err := c.Forget("own"); err != nil {
		t.Error(err)
	}
	add(t, c, Request{From: zipped(t, "own.npz", map[string][]byte{"images.npy": npyFile("|u1", "(1,2,2)", []byte{9, 9, 9, 9})})})
	if err := c.Forget("own"); err != nil {
		t.Error(err)
	}
	if _, err := c.Entry(t.Context(), "own"); err != nil {
		t.Error("a ready dataset was forgotten")
	}
}

package data

import (
	"archive/zip"
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"slotscope/model/expect"
)

// unzipped unpacks a fixture archive.
func unzipped(t testing.TB, path string) string {
	t.Helper()
	z := must(zip.OpenReader(path))(t)
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gradient compares images with the fixtures of 128 × 128, red x + 3n, green y + 5n, blue 7n (all & 255), scaled down by two. Away from
// the edges and from wrap-around, a scaled ramp is the mean of its pixels.
func gradient(t testing.TB, images []byte, first int) {
	t.Helper()
	for n := range len(images) / 12288 {
		i := n + first
		for y := 4; y < 60; y++ {
			for x := 4; x < 60; x++ {
				p := images[n*12288+(y*64+x)*3:]
				for c, want := range []float64{float64(2*x+3*i) + 0.5, float64(2*y+5*i) + 0.5, float64(7 * i & 255)} {
					wrapped := math.Mod(want, 256)
					if wrapped < 12 && c < 2 || wrapped > 243 && c < 2 {
						continue
					}
					if math.Abs(float64(p[c])-wrapped) > 1 {
						t.Fatalf("image %d, pixel (%d, %d), channel %d is %d, want about %.1f", i, x, y, c, p[c], wrapped)
					}
				}
			}
		}
	}
}

func TestNVIDIA(t *testing.T) {
	for _, c := range []struct {
		folder, labels string
		full           Info
		sizes          []int
	}{
		{"Falcor3D_down128", "train-rec.labels", falcor3dInfo, []int{1, 1, 1, 1, 1, 6, 6}},
		{"Isaac3D_down128", "labels.npy", isaac3dInfo, []int{1, 1, 1, 1, 1, 1, 2, 4, 4}},
	} {
		archive := "testdata/" + c.folder + ".zip"
		folder := filepath.Join(unzipped(t, archive), c.folder)
		info, value := beginning(c.full, c.sizes...), fraction(c.full.Sizes())
		inZip := func() tree { return must(openZip(archive, numberedName(0)))(t) }
		inFolder := func() tree { return must(openFolder(folder))(t) }
		for _, open := range []func() tree{inZip, inFolder} {
			source, err := openNumbered(info, open(), c.labels, value)
			source = opened(t, source, err)
			gradient(t, stream(t, source, 0), 0) // image 1 has an alpha channel
			gradient(t, stream(t, source, 30), 30)

			_, err = openNumbered(c.full, open(), c.labels, value)
			expect.Says(t, err, c.folder, "images/")
			fewer := info.clone()
			fewer.Factors[6].Values = fewer.Factors[6].Values[:1]
			fewer.Len = Grid(fewer.Sizes()).Len()
			_, err = openNumbered(fewer, open(), c.labels, value)
			expect.Says(t, err, c.folder, "another dataset")
			_, err = openNumbered(info, open(), c.labels, func(_, class int) float64 { return 1 - float64(class) })
			expect.Says(t, err, c.labels, "row 0", "another order")
		}
		// A folder with a damaged image and a link.
		if err := os.WriteFile(filepath.Join(folder, "images/000007.png"), []byte("\x89PNG\r\n\x1a\nno"), 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := openNumbered(info, inFolder(), c.labels, value)
		source = opened(t, source, err)
		err = source.Stream(t.Context(), 0, func(int, []byte) error { return nil })
		expect.Says(t, err, folder, "images/000007.png", "damaged")
		link := filepath.Join(folder, "images/000000.png")
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", link); err != nil {
			t.Fatal(err)
		}
		_, err = openNumbered(info, inFolder(), c.labels, value)
		expect.Says(t, err, "images/000000.png", "link")
	}
}

// TestScaling: scaling keeps the mean brightness, images of the right size are unchanged, opacity is dropped, and grey stays grey.
func TestScaling(t *testing.T) {
	var c canvas
	clear := image.NewNRGBA(image.Rect(0, 0, 128, 96))
	for i := range clear.Pix {
		clear.Pix[i] = []byte{200, 100, 50, 0}[i%4]
	}
	dst := make([]byte, 12288)
	c.picture(dst, clear, 3)
	for i, v := range dst {
		if v != []byte{200, 100, 50}[i%3] {
			t.Fatalf("byte %d of a transparent image is %d", i, v)
		}
	}
	grey := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range grey.Pix {
		grey.Pix[i] = byte(i)
	}
	c.picture(dst[:4096], grey, 1)
	if !bytes.Equal(dst[:4096], grey.Pix) {
		t.Error("a grey image of the right size changed")
	}
	paletted := image.NewPaletted(image.Rect(3, 5, 67, 69), color.Palette{color.Black, color.NRGBA{10, 20, 30, 255}})
	paletted.SetColorIndex(66, 68, 1)
	c.picture(dst, paletted, 3)
	if [3]byte(dst[12285:]) != [3]byte{10, 20, 30} || dst[0] != 0 {
		t.Errorf("the last pixel of an image with a palette is %v", dst[12285:])
	}
}

// TestDecodeRefuses: damaged files, and sizes that are too large for the bytes of a file, are rejected.
func TestDecodeRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	huge := bytes.Clone(b.Bytes())
	copy(huge[16:], []byte{0, 0, 0x20, 0, 0, 0, 0x20, 0}) // 8192 × 8192 by the header, whose checksum is wrong then
	_, err := decodeBytes(huge)
	expect.Says(t, err, "damaged")
	_, err = decodeBytes(b.Bytes()[:40])
	expect.Says(t, err, "incomplete")
	_, err = decodeBytes([]byte("GIF89a"))
	expect.Says(t, err, "not a PNG, JPEG")
}

func FuzzDecode(f *testing.F) {
	for _, m := range []image.Image{image.NewGray(image.Rect(0, 0, 4, 4)), image.NewNRGBA(image.Rect(0, 0, 3, 2)), image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Black, color.White})} {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		img, err := decodeBytes(content)
		if err != nil || img.Bounds().Dx() > 1024 || img.Bounds().Dy() > 1024 {
			return
		}
		var c canvas
		c.picture(make([]byte, 12288), img, 3)
	})
}

// BenchmarkPicture decodes and scales a grainy image of 128 × 128, about 20 kB like those of Falcor3D and Isaac3D.
func BenchmarkPicture(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	img := image.NewNRGBA(image.Rect(0, 0, 128, 128))
	for i := range img.Pix {
		x, y := i/4%128, i/512
		img.Pix[i] = []byte{byte(x + y), byte(2 * y), byte(255 - x), 255}[i%4]
		if i%4 < 3 {
			img.Pix[i] += byte(rng.IntN(5))
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := decodeBytes(file.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(file.Len()), "bytes/file")
	})
	b.Run("scale", func(b *testing.B) {
		var c canvas
		picture, dst := must(decodeBytes(file.Bytes()))(b), make([]byte, 12288)
		for b.Loop() {
			c.picture(dst, picture, 3)
		}
	})
}

package play_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/play"
)

func encodePNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	raw, err := play.PNG(img)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func plain(w, h int, c color.Color) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, c)
		}
	}
	return img
}

func TestPictureKeepsEveryByte(t *testing.T) {
	pixels := make([]byte, 64*64*3)
	for i := range pixels {
		pixels[i] = byte(i * 31)
	}
	back, said, err := play.Read(encodePNG(t, play.Picture(pixels, rgb, 1)), rgb)
	if err != nil || said != "" || !bytes.Equal(back, pixels) {
		t.Errorf("bytes changed in a PNG round trip: %v %q", err, said)
	}
	big := play.Picture(pixels, rgb, 4)
	if big.Rect.Dx() != 256 || big.RGBAAt(7, 9) != (color.RGBA{pixels[(2*64+1)*3], pixels[(2*64+1)*3+1], pixels[(2*64+1)*3+2], 255}) {
		t.Error("a pixel is not enlarged to 2 × 2")
	}
}

func TestReadTakesTheMiddleSquare(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 300, 100))
	for y := range 100 {
		for x := range 300 {
			c := color.RGBA{255, 0, 0, 255}
			if x >= 100 && x < 200 {
				c = color.RGBA{0, 0, 255, 255}
			}
			img.Set(x, y, c)
		}
	}
	pixels, said, err := play.Read(encodePNG(t, img), rgb)
	if err != nil || said != "Cropped 300 × 100 to the centre square and resized to 64 × 64." {
		t.Fatalf("%q, %v", said, err)
	}
	for _, at := range []int{2*64 + 2, 32*64 + 32, 60*64 + 61} {
		if p := pixels[at*3 : at*3+3]; p[0] > 2 || p[2] < 253 {
			t.Errorf("pixel %d is %v, not from the centre", at, p)
		}
	}
}

func TestReadTakesJPEGAndGIFAndTransparency(t *testing.T) {
	var jpg, anim bytes.Buffer
	grey := plain(128, 128, color.RGBA{100, 100, 100, 255})
	if err := jpeg.Encode(&jpg, grey, nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&anim, grey, nil); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"jpeg": jpg.Bytes(), "gif": anim.Bytes()} {
		pixels, said, err := play.Read(raw, rgb)
		if err != nil || said != "Resized 128 × 128 to 64 × 64." {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		if d := int(pixels[5000]) - 100; d < -4 || d > 4 {
			t.Errorf("%s: grey 100 became %d", name, pixels[5000])
		}
	}
	clear, _, err := play.Read(encodePNG(t, plain(64, 64, color.RGBA{})), rgb)
	if err != nil || clear[0] != 255 {
		t.Errorf("transparent pixels are %v, want white; %v", clear[:3], err)
	}
}

// left is a 64 × 64 WebP image, red on the left and blue on the right.
const left = "UklGRiYAAABXRUJQVlA4TBoAAAAvP8APAA8Q87//8x8OxILJ/KVj6Ivof1TBdg=="

func TestReadTakesWebP(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(left)
	if err != nil {
		t.Fatal(err)
	}
	pixels, said, err := play.Read(raw, rgb)
	if err != nil || said != "" || !bytes.Equal(pixels[:3], []byte{255, 0, 0}) || !bytes.Equal(pixels[len(pixels)-3:], []byte{0, 0, 255}) {
		t.Errorf("%v … %v, %q, %v", pixels[:3], pixels[len(pixels)-3:], said, err)
	}
}

func TestReadTakesOnePixel(t *testing.T) {
	pixels, said, err := play.Read(encodePNG(t, plain(1, 1, color.RGBA{200, 0, 0, 255})), rgb)
	if err != nil || said != "Resized 1 × 1 to 64 × 64." || pixels[0] != 200 || pixels[len(pixels)-3] != 200 {
		t.Errorf("%q, %v", said, err)
	}
}

func TestReadRefusesWithASentence(t *testing.T) {
	whole := encodePNG(t, plain(64, 64, color.White))
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":     {nil, "the file is empty"},
		"text":      {[]byte("hello, this is no image at all"), "unsupported format; use JPEG, PNG, GIF or WebP"},
		"wide":      {pngHeader(10_000, 64), "10000 × 64 pixels; choose one of at most 8192"},
		"wider":     {pngHeader(12_000, 12_000), "12000 × 12000 pixels; choose one of at most 8192"},
		"huge area": {pngHeader(8_000, 8_000), "8000 × 8000 pixels"},
		"cut short": {whole[:len(whole)-30], "damaged"},
		"no header": {whole[:20], "header is damaged: unexpected end of file"},
	} {
		_, _, err := play.Read(c.raw, rgb)
		var invalid model.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(invalid["image"], c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// pngHeader returns the start of a PNG of the given size, without pixels.
func pngHeader(w, h uint32) []byte {
	chunk := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)...)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

func TestSheetAndFilm(t *testing.T) {
	red, blue := make([]byte, 64*64*3), make([]byte, 64*64*3)
	for i := 0; i < len(red); i += 3 {
		red[i], blue[i+2] = 200, 200
		red[i+1] = byte(i / 300)
	}
	sheet := play.Sheet([][]play.Cell{{{Caption: "A", Pixels: red}, {Caption: "B", Pixels: blue}}, {{Caption: "C"}}}, rgb)
	if c := sheet.RGBAAt(20, 20); c.R != 200 {
		t.Errorf("the first image starts with %v", c)
	}
	raw, err := play.Film([][]byte{red, blue, red}, rgb, 50)
	if err != nil {
		t.Fatal(err)
	}
	film, err := gif.DecodeAll(bytes.NewReader(raw))
	if err != nil || len(film.Image) != 3 || film.Delay[0] != 100 || film.Delay[1] != 50 {
		t.Fatalf("%v", err)
	}
	if r, _, b, _ := film.Image[1].At(100, 100).RGBA(); r>>8 != 0 || b>>8 != 200 {
		t.Errorf("the second frame is %d, %d", r>>8, b>>8)
	}
	if _, err := png.Decode(bytes.NewReader(encodePNG(t, sheet))); err != nil {
		t.Error(err)
	}
}

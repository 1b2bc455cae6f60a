package play_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"testing"

	"slotscope/model/paper/ae"
	"slotscope/model/play"
)

// threeColours returns a movie of a red, a green and a blue image.
func threeColours() play.Movie {
	m := play.Movie{Shape: ae.Image{H: 16, W: 16, C: 3}, Hundredths: 30, Stops: []int{0, 2}}
	for i, caption := range []string{"A", "A + B's slot 0 floor hue", "B"} {
		pixels := make([]byte, 16*16*3)
		for p := range 16 * 16 {
			pixels[3*p+i] = 255
		}
		m.Frames = append(m.Frames, play.Frame{Pixels: pixels, Caption: caption})
	}
	return m
}

// checkFrame verifies that a frame has its colour, with dark text below.
func checkFrame(t *testing.T, img image.Image, at int) {
	t.Helper()
	r, g, b, _ := img.At(5, 5).RGBA()
	if got := [3]bool{r > 0x8000, g > 0x8000, b > 0x8000}; got != [3]bool{at == 0, at == 1, at == 2} {
		t.Errorf("frame %d has the colour %v", at, img.At(5, 5))
	}
	dark := 0
	for y := 64; y < img.Bounds().Dy(); y++ {
		for x := range 64 {
			if color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y < 100 {
				dark++
			}
		}
	}
	if size := img.Bounds().Size(); size != (image.Point{64, 82}) || dark < 5 {
		t.Errorf("frame %d is %v with %d dark pixels of text", at, size, dark)
	}
}

func TestMovieAsGIF(t *testing.T) {
	raw, err := threeColours().GIF()
	if err != nil {
		t.Fatal(err)
	}
	film, err := gif.DecodeAll(bytes.NewReader(raw))
	if err != nil || len(film.Image) != 3 || film.Delay[0] != 60 || film.Delay[1] != 30 || film.Delay[2] != 60 {
		t.Fatalf("%d frames, delays %v, %v", len(film.Image), film.Delay, err)
	}
	for at, img := range film.Image {
		checkFrame(t, img, at)
	}
}

// The chunks of an animated PNG are numbered without gaps, and each frame's data after the header is a valid PNG.
func TestMovieAsAPNG(t *testing.T) {
	raw, err := threeColours().APNG()
	if err != nil {
		t.Fatal(err)
	}
	first, err := png.Decode(bytes.NewReader(raw)) // also verifies checksums
	if err != nil {
		t.Fatal(err)
	}
	checkFrame(t, first, 0)
	var header []byte
	sequence, frames, delays := uint32(0), 0, []uint16{}
	for at := 8; at < len(raw); {
		n := int(binary.BigEndian.Uint32(raw[at:]))
		kind, body, whole := string(raw[at+4:at+8]), raw[at+8:at+8+n], raw[at:at+12+n]
		at += 12 + n
		switch kind {
		case "IHDR":
			header = whole
		case "acTL":
			if got := binary.BigEndian.Uint32(body); got != 3 {
				t.Errorf("acTL has %d frames", got)
			}
		case "fcTL", "fdAT":
			if got := binary.BigEndian.Uint32(body); got != sequence {
				t.Errorf("%s has number %d, want %d", kind, got, sequence)
			}
			sequence++
		}
		if kind == "fcTL" {
			delays = append(delays, binary.BigEndian.Uint16(body[20:]))
		}
		if kind == "fdAT" {
			frames++
			checkFrame(t, alone(t, header, body[4:]), frames)
		}
	}
	if frames != 2 || sequence != 5 || len(delays) != 3 || delays[0] != 60 || delays[1] != 30 {
		t.Errorf("%d later frames, %d numbers, delays %v", frames, sequence, delays)
	}
}

// alone returns one frame's data as a PNG.
func alone(t *testing.T, header, data []byte) image.Image {
	t.Helper()
	out := append([]byte("\x89PNG\r\n\x1a\n"), header...)
	for kind, body := range map[string][]byte{"IDAT": data} {
		out = append(out, play.Chunk(kind, body)...)
	}
	img, err := png.Decode(bytes.NewReader(append(out, play.Chunk("IEND", nil)...)))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

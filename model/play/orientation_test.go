package play

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"slotscope/model/paper/ae"
)

// turned inserts an EXIF orientation into a JPEG file, after its first marker.
func turned(file []byte, order binary.AppendByteOrder, mark string, orientation uint16) []byte {
	tiff := append([]byte(mark), order.AppendUint16(nil, 42)...)
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(tiff, 0x0112)
	tiff = order.AppendUint16(tiff, 3)
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint16(tiff, orientation)
	body := append([]byte("Exif\x00\x00"), append(tiff, 0, 0, 0, 0, 0, 0)...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2))
	return append(append(append([]byte{}, file[:2]...), append(segment, body...)...), file[2:]...)
}

// An image with a white top left quarter and a red top right quarter is rotated by each orientation.
func TestReadTurnsPicturesUpright(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			c := color.RGBA{A: 255}
			if y < 32 {
				c = color.RGBA{255, 0, 0, 255}
				if x < 32 {
					c = color.RGBA{255, 255, 255, 255}
				}
			}
			img.Set(x, y, c)
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	at := func(pixels []byte, x, y int) string {
		p := pixels[(y*64+x)*3:]
		switch {
		case p[0] > 200 && p[1] > 200:
			return "white"
		case p[0] > 200:
			return "red"
		}
		return "black"
	}
	// expected colours of the corners: top left, top right, bottom left, bottom right
	for orientation, want := range map[uint16][4]string{
		1: {"white", "red", "black", "black"}, 2: {"red", "white", "black", "black"}, 3: {"black", "black", "red", "white"}, 4: {"black", "black", "white", "red"},
		5: {"white", "black", "red", "black"}, 6: {"black", "white", "black", "red"}, 7: {"black", "red", "black", "white"}, 8: {"red", "black", "white", "black"},
		9: {"white", "red", "black", "black"}, // invalid
	} {
		for mark, order := range map[string]binary.AppendByteOrder{"II": binary.LittleEndian, "MM": binary.BigEndian} {
			pixels, _, err := Read(turned(file.Bytes(), order, mark, orientation), ae.Image{H: 64, W: 64, C: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := [4]string{at(pixels, 8, 8), at(pixels, 56, 8), at(pixels, 8, 56), at(pixels, 56, 56)}; got != want {
				t.Errorf("orientation %d, %s: %v, want %v", orientation, mark, got, want)
			}
		}
	}
}

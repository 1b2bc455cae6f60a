package exif

import (
	"image"
	"image/color"
	"image/draw"
	"slices"
	"testing"
)

// TestOrientations applies each EXIF orientation and checks where a corner ends up.
func TestOrientations(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	img.SetGray(0, 0, color.Gray{9})
	coloured := image.NewRGBA(img.Rect)
	draw.Draw(coloured, img.Rect, img, image.Point{}, draw.Src)
	for o, want := range map[byte]image.Point{1: {0, 0}, 2: {2, 0}, 3: {2, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 2}, 8: {0, 2}} {
		for _, img := range []image.Image{img, coloured} {
			file := slices.Concat([]byte{0xff, 0xd8, 0xff, 0xe1, 0, 34}, []byte("Exif\x00\x00II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"), []byte{o, 0, 0, 0, 0, 0, 0, 0})
			got := Upright(img, file)
			if _, grey := img.(*image.Gray); grey {
				if _, stays := got.(*image.Gray); !stays {
					t.Errorf("orientation %d: a grey image becomes %T", o, got)
				}
			}
			if r, _, _, _ := got.At(want.X, want.Y).RGBA(); byte(r) != 9 || (o > 4) != (got.Bounds().Dy() == 3) {
				t.Errorf("orientation %d: %v, bright %d at %v", o, got.Bounds(), byte(r), want)
			}
		}
	}
}

// FuzzOrientation: the orientation of any bytes is valid.
func FuzzOrientation(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x08Exif\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if o := orientation(file); o < 0 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}

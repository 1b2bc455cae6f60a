package data

import (
	"image"
	"image/color"
	"testing"
)

func TestPicture(t *testing.T) {
	info := Info{H: 1, W: 2, C: 3}
	pixels := []byte{1, 2, 3, 4, 5, 6 /**/, 7, 8, 9, 10, 11, 12 /**/, 13, 14, 15, 16, 17, 18}
	img := info.Picture(pixels, 2, 3)
	if img.Rect != image.Rect(0, 0, 12, 6) {
		t.Fatalf("three images in two columns at 3× take %v", img.Rect)
	}
	for _, c := range []struct {
		x, y int
		want color.NRGBA
	}{
		{0, 0, color.NRGBA{1, 2, 3, 255}}, {2, 2, color.NRGBA{1, 2, 3, 255}}, {3, 0, color.NRGBA{4, 5, 6, 255}},
		{6, 2, color.NRGBA{7, 8, 9, 255}}, {11, 0, color.NRGBA{10, 11, 12, 255}},
		{0, 3, color.NRGBA{13, 14, 15, 255}}, {5, 5, color.NRGBA{16, 17, 18, 255}}, {6, 3, color.NRGBA{}},
	} {
		if got := img.NRGBAAt(c.x, c.y); got != c.want {
			t.Errorf("pixel (%d, %d) is %v, want %v", c.x, c.y, got, c.want)
		}
	}
	grey := Info{H: 1, W: 1, C: 1}.Picture([]byte{9}, 1, 1)
	if got := grey.NRGBAAt(0, 0); got != (color.NRGBA{9, 9, 9, 255}) {
		t.Errorf("grey 9 is %v", got)
	}
}

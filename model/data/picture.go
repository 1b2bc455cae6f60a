package data

import (
	"image"
	"image/color"
)

// Picture arranges images in a grid, columns to a row, and magnifies each pixel to scale × scale. pixels is [n, H, W, C]; one channel is
// grey, three are red, green and blue. Cells after the last image stay transparent.
func (i Info) Picture(pixels []byte, columns, scale int) *image.NRGBA {
	each := i.H * i.W * i.C
	rows := (len(pixels)/each + columns - 1) / columns
	img := image.NewNRGBA(image.Rect(0, 0, columns*i.W*scale, rows*i.H*scale))
	for n := range len(pixels) / each {
		at := image.Rect(0, 0, i.W*scale, i.H*scale).Add(image.Pt(n%columns*i.W*scale, n/columns*i.H*scale))
		i.paint(img.SubImage(at).(*image.NRGBA), pixels[n*each:(n+1)*each], scale)
	}
	return img
}

// paint draws one image into img.
func (i Info) paint(img *image.NRGBA, pixels []byte, scale int) {
	corner := img.Rect.Min
	for y := range i.H * scale {
		for x := range i.W * scale {
			img.SetNRGBA(corner.X+x, corner.Y+y, i.colour(pixels[(y/scale*i.W+x/scale)*i.C:]))
		}
	}
}

func (i Info) colour(p []byte) color.NRGBA {
	if i.C < 3 {
		return color.NRGBA{p[0], p[0], p[0], 255}
	}
	return color.NRGBA{p[0], p[1], p[2], 255}
}

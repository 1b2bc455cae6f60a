// Package dsprites draws a substitute for the dSprites images: one white sprite on black, a square, an ellipse or a heart, at one of
// 6 scales, 40 orientations and 32 × 32 positions.
//
// A pixel is white where its centre lies inside the outline, as in the published images: there is no antialiasing. Everything after
// the outlines is integer arithmetic, so that every machine draws the same bytes.
package dsprites

import "math"

const (
	Side  = 64          // pixels along each edge of an image
	Bytes = Side * Side // of one image, row by row, 0 or 255

	Shapes       = 3
	Scales       = 6
	Orientations = 40
	Positions    = 32 // along each axis
)

// Shapes by class.
const (
	Square = iota
	Ellipse
	Heart
)

// Scale returns the size of a scale class, 0.5 to 1.
func Scale(class int) float64 { return 0.5 + 0.5*float64(class)/(Scales-1) }

// Orientation returns the clockwise rotation of an orientation class in degrees, 0 to 351.
func Orientation(class int) float64 { return 360 * float64(class) / Orientations }

// Position returns the position of a position class, 0 to 1 from left to right and from top to bottom.
func Position(class int) float64 { return float64(class) / (Positions - 1) }

// Image is one image of the set, by class.
type Image struct{ Shape, Scale, Orientation, X, Y int }

// Distances are integers: halves of 1/31 of a pixel on the image, where pixel centres and sprite centres are whole numbers, and
// 1/turn of that once a rotation has multiplied them.
//
//	sprite centre = 16 + 32·position pixels       position = class / 31
const (
	unit = 2 * (Positions - 1) // to the pixel
	turn = 1 << 20             // sines and cosines are multiples of 1/turn
)

// Draw writes one image to dst, of at least Bytes bytes. The classes of im must be in range.
func Draw(dst []byte, im Image) {
	dst = dst[:Bytes]
	clear(dst)
	o, t := &outlines[im.Shape], turns[im.Orientation]
	size := Scales - 1 + im.Scale // the scale in tenths: 5 to 10
	cx, cy := centre(im.X), centre(im.Y)
	reach := o.reach * size / 10
	left, right := pixels(cx, reach)
	top, bottom := pixels(cy, reach)
	for y := top; y < bottom; y++ {
		dy := y*unit + unit/2 - cy
		dx := left*unit + unit/2 - cx
		u := (t.cos*dx + t.sin*dy) * 10 / size // the point rotated back and scaled to the outline at scale 1
		v := (t.cos*dy - t.sin*dx) * 10 / size
		du, dv := t.cos*unit*10/size, -t.sin*unit*10/size
		row := dst[y*Side : (y+1)*Side]
		for x := left; x < right; x++ {
			if o.holds(u, v) {
				row[x] = 255
			}
			u, v = u+du, v+dv
		}
	}
}

// centre returns the centre of a sprite along one axis, in units.
func centre(class int) int { return 16*unit + 32*unit*class/(Positions-1) }

// pixels returns the range [first, end) of pixels whose centres are within reach of c, in units.
func pixels(c, reach int) (first, end int) {
	return max(0, (c-reach)/unit), min(Side, (c+reach)/unit+1)
}

// turns are the rotations by class.
var turns = func() (t [Orientations]struct{ cos, sin int }) {
	for class := range t {
		sin, cos := math.Sincos(Orientation(class) * math.Pi / 180)
		t[class].cos, t[class].sin = int(math.Round(turn*cos)), int(math.Round(turn*sin))
	}
	return t
}()

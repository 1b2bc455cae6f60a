package dsprites

import "math"

// Sizes at scale 1, in pixels. They were fitted to frames published by the authors of dSprites: 62 of 64 squares and 41 of 64 ellipses
// match theirs pixel by pixel. The curve of their heart is not published; the one here has the same width of 20, an area of 221 (theirs
// is 222) and, tip upwards, the same place, 2 above the centre of rotation.
const (
	halfSquare = 9.6
	halfLong   = 12.76 // of the ellipse
	halfShort  = 7.22
	halfHeart  = 10.0
)

// outline is a shape at scale 1 and orientation 0, symmetric in u. It holds the range of v inside the shape for each |u|. u points right
// and v down, both in units of 1/turn.
type outline struct {
	reach int // maximum distance of a point of the shape from the centre, in units
	wide  int // largest |u| inside
	span  [spans]struct{ top, bottom int }
}

// spans divide |u| up to 16 pixels; spanBits is how many bits of u lie within one.
const (
	spans    = 2048
	spanBits = 19 // 2^19 of 62·2^20 to the pixel: 1/124 of a pixel
)

// holds reports whether a point is inside.
func (o *outline) holds(u, v int) bool {
	if u < 0 {
		u = -u
	}
	if u > o.wide {
		return false
	}
	s := &o.span[u>>spanBits]
	return v >= s.top && v <= s.bottom
}

var outlines = [Shapes]outline{
	Square:  newOutline(halfSquare, func(float64) (top, bottom float64) { return -halfSquare, halfSquare }),
	Ellipse: newOutline(halfLong, ellipse),
	Heart:   newOutline(halfHeart, heart),
}

// newOutline tabulates a shape. edge returns the range of v inside the shape for |u| up to wide, all in pixels.
func newOutline(wide float64, edge func(u float64) (top, bottom float64)) (o outline) {
	fixed := func(pixels float64) int { return int(math.Round(pixels * unit * turn)) }
	o.wide = fixed(wide)
	far := 0.0
	for i := 0; i<<spanBits <= o.wide; i++ {
		u := min(wide, (float64(i)+0.5)*(1<<spanBits)/(unit*turn))
		top, bottom := edge(u)
		o.span[i].top, o.span[i].bottom = fixed(top), fixed(bottom)
		far = max(far, math.Hypot(u, top), math.Hypot(u, bottom))
	}
	o.reach = int(math.Ceil((far + 0.1) * unit))
	return o
}

func ellipse(u float64) (top, bottom float64) {
	v := halfShort * math.Sqrt(max(0, 1-(u/halfLong)*(u/halfLong)))
	return -v, v
}

// heart is the curve u = 16 sin³t, v = 13 cos t − 5 cos 2t − 2 cos 3t − cos 4t, scaled to its width. Its tip is up, since v points down.
func heart(u float64) (top, bottom float64) {
	t := math.Asin(math.Cbrt(u / halfHeart))
	v := func(t float64) float64 {
		return halfHeart / 16 * (13*math.Cos(t) - 5*math.Cos(2*t) - 2*math.Cos(3*t) - math.Cos(4*t))
	}
	return v(math.Pi - t), v(t)
}

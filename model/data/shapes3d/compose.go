package shapes3d

import "math"

// Three channels share one word, in lanes of 21 bits each, so that one multiplication weights all three.
const (
	lane  = 21
	grey  = 1 | 1<<lane | 1<<(2*lane) // 1 in every lane
	full  = 256 * one                 // a lane at or above this is brighter than 255; pack ensures less than 2·full
	bleed = full * grey
)

// colour holds red, green and blue, 0 to 255, in the three lanes from the lowest.
type colour uint64

func rgb(r, g, b float64) colour {
	return colour(r+0.5) | colour(g+0.5)<<lane | colour(b+0.5)<<(2*lane)
}

var skyColour = rgb(153, 226, 249)

// hues are the ten albedos: HSV(i/10, 1, 1).
var hues = func() (c [10]colour) {
	for i := range c {
		c[i] = hue(float64(i) / 10)
	}
	return c
}()

// hue returns HSV(h, 1, 1) for 0 ≤ h < 1.
func hue(h float64) colour {
	channel := func(centre float64) float64 {
		d := math.Abs(6*h - centre)
		return 255 * min(1, max(0, 2-min(d, 6-d)))
	}
	return rgb(channel(0), channel(2), channel(4))
}

// skyRow is an image of only sky, to copy from.
var skyRow = func() (b [Bytes]byte) {
	for p := 0; p < len(b); p += 3 {
		putPixel(b[p:], uint64(skyColour)*one)
	}
	return b
}()

// compose writes the image of a layer with three albedos to dst, Side × Side × 3 bytes.
//
//	pixel = Σ_material weight · albedo + white, rounded, at most 255
func (l *layer) compose(dst []byte, floor, wall, object colour) {
	dst = dst[:Bytes]
	copy(dst[:3*l.skyline], skyRow[:])
	for p := l.skyline; p < Side*Side; p++ {
		w := l.weights[p]
		sum := one/2*grey +
			w&skyMask*uint64(skyColour) +
			w>>floorAt&gainMask*uint64(floor) +
			w>>wallAt&gainMask*uint64(wall) +
			w>>objectAt&gainMask*uint64(object) +
			w>>whiteAt*grey
		over := sum & bleed
		putPixel(dst[3*p:3*p+3], sum|(over-over>>8)) // sets the eight bits below the overflow bit
	}
}

// putPixel writes the integer parts of three lanes.
func putPixel(dst []byte, sum uint64) {
	_ = dst[2]
	dst[0], dst[1], dst[2] = byte(sum/one), byte(sum/one>>lane), byte(sum/one>>(2*lane))
}

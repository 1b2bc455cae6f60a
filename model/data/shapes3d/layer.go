package shapes3d

import "fmt"

// rays is the number of rays per pixel along each axis.
const rays = 4

// Weights are whole multiples of 1/one. A pixel's five share one word, from the lowest bit:
//
//	sky 11 bits, floor 12, wall 12, object 12, white 17
const (
	one = 1 << 10

	floorAt  = 11
	wallAt   = 23
	objectAt = 35
	whiteAt  = 47
	skyMask  = 1<<11 - 1
	gainMask = 1<<12 - 1
)

// layer is one traced geometry: for every pixel, the weight of each albedo and the white added. An image is linear in its albedos
// (except for clamping), so its layer and three hues determine it.
type layer struct {
	skyline int // pixels before this one show only sky
	weights [Side * Side]uint64
}

// bake traces the pixels of one geometry that differ from its room, with rays × rays rays per pixel.
func bake(g Geometry, r *room) *layer {
	s, l := newScene(g), &layer{weights: r.weights}
	for p, same := range r.same {
		if !same {
			l.weights[p] = pack(s.average(p%Side, p/Side))
		}
	}
	for l.skyline < len(l.weights) && l.weights[l.skyline] == one {
		l.skyline++
	}
	return l
}

// average traces the rays of one pixel and returns the mean shade by material and the mean white.
func (s *scene) average(x, y int) (shade [materials]float64, white float64) {
	for i := range rays * rays {
		at := s.trace(s.view(float64(x)+subpixel(i%rays), float64(y)+subpixel(i/rays)))
		shade[at.material] += at.shade
		white += at.white
	}
	for m := range shade {
		shade[m] /= rays * rays
	}
	return shade, white / (rays * rays)
}

func subpixel(i int) float64 { return (float64(i) + 0.5) / rays }

// pack rounds the weights of a pixel into one word. It panics if they do not fit, which would be a bug in the fixed scene.
func pack(shade [materials]float64, white float64) uint64 {
	s, f, w, o := fixed(shade[sky]), fixed(shade[floor]), fixed(shade[wall]), fixed(shade[object])
	a := fixed(255 * white)
	if s > one || max(f, w, o) > gainMask || 255*(s+f+w+o)+a+one/2 > 2*full-1 {
		panic(fmt.Sprintf("shapes3d: weights %v and white %g are too bright for a layer", shade, white))
	}
	return s | f<<floorAt | w<<wallAt | o<<objectAt | a<<whiteAt
}

func fixed(v float64) uint64 { return uint64(v*one + 0.5) }

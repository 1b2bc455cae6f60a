package shapes3d

// room holds the pixels that the images of one shape and orientation share at every scale: those that the largest object neither covers
// nor shades. They are traced once instead of Scales times.
type room struct {
	same    [Side * Side]bool
	weights [Side * Side]uint64 // of the pixels that are the same
}

func newRoom(shape, orientation int) *room {
	s, r := newScene(Geometry{Shape: shape, Scale: Scales - 1, Orientation: orientation}), new(room)
	// The balls around the largest object contain those around the smaller ones; the margin covers rounding.
	s.bound.radius *= 1.0001
	s.shadow.radius *= 1.0001
	for p := range r.same {
		if r.same[p] = s.bare(p%Side, p/Side); r.same[p] {
			r.weights[p] = pack(s.average(p%Side, p/Side))
		}
	}
	return r
}

// bare reports whether every ray of a pixel misses the object and ends at a point from which the whole lamp is visible.
func (s *scene) bare(x, y int) bool {
	for i := range rays * rays {
		r := s.view(float64(x)+subpixel(i%rays), float64(y)+subpixel(i/rays))
		if !s.bound.misses(r) {
			return false
		}
		if t, _ := s.leave(r); r.from.y+t*r.dir.y <= 0 && !s.shadow.misses(s.toLamp(ground(r))) {
			return false
		}
	}
	return true
}

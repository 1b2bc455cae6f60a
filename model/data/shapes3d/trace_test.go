package shapes3d

import (
	"math"
	"testing"
)

// TestHitKnown compares hits of rays on simple solids with results worked out by hand.
func TestHitKnown(t *testing.T) {
	cube := box{half: 1, height: 2}
	drum := cylinder{tube{1, 0, 2}}
	globe := ball{vec{y: 1}, 1}
	pill := capsule{tube{1, 1, 3}, ball{vec{y: 1}, 1}, ball{vec{y: 3}, 1}}
	down, ahead := vec{y: -1}, vec{z: 1}
	slope := 1 / math.Sqrt2
	for _, c := range []struct {
		name   string
		solid  solid
		from   vec
		dir    vec
		t      float64
		normal vec
		hit    bool
	}{
		{"cube from above", cube, vec{0.3, 5, 0.2}, down, 3, vec{y: 1}, true},
		{"cube from the front", cube, vec{0.5, 1, -5}, ahead, 4, vec{z: -1}, true},
		{"cube from below", cube, vec{0.1, -2, 0.1}, vec{y: 1}, 2, vec{y: -1}, true},
		{"cube passed by", cube, vec{1.5, 1, -5}, ahead, 0, vec{}, false},
		{"cube behind", cube, vec{0, 1, 5}, ahead, 0, vec{}, false},
		{"cube aslant onto its right side", cube, vec{3, 1, -2}, vec{-slope, 0, slope}, 2 * math.Sqrt2, vec{x: 1}, true},
		{"cylinder from above", drum, vec{0.5, 5, 0.5}, down, 3, vec{y: 1}, true},
		{"cylinder's lid passed by", drum, vec{0.9, 5, 0.9}, down, 0, vec{}, false},
		{"cylinder from the front", drum, vec{0, 1, -5}, ahead, 4, vec{z: -1}, true},
		{"cylinder passed above", drum, vec{0, 2.5, -5}, ahead, 0, vec{}, false},
		{"cylinder from below", drum, vec{0.1, -1, 0}, vec{y: 1}, 1, vec{y: -1}, true},
		{"sphere from the front", globe, vec{0, 1, -5}, ahead, 4, vec{z: -1}, true},
		{"sphere from above", globe, vec{0, 5, 0}, down, 3, vec{y: 1}, true},
		{"sphere passed by", globe, vec{0, 2.1, -5}, ahead, 0, vec{}, false},
		{"sphere behind", globe, vec{0, 1, 5}, ahead, 0, vec{}, false},
		{"capsule's side", pill, vec{0, 2, -5}, ahead, 4, vec{z: -1}, true},
		{"capsule's top", pill, vec{0, 7, 0}, down, 3, vec{y: 1}, true},
		{"capsule's upper half ball", pill, vec{0, 3 + slope, -5}, ahead, 5 - slope, vec{0, slope, -slope}, true},
		{"capsule passed above", pill, vec{0, 4.01, -5}, ahead, 0, vec{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dist, normal, ok := c.solid.hit(ray{c.from, c.dir})
			if ok != c.hit {
				t.Fatalf("hit is %v", ok)
			}
			if !ok {
				return
			}
			if math.Abs(dist-c.t) > 1e-12 || normal.sub(c.normal).dot(normal.sub(c.normal)) > 1e-24 {
				t.Errorf("at %g facing %v, want %g facing %v", dist, normal, c.t, c.normal)
			}
		})
	}
}

// TestBoundHoldsTheObject: camera rays that hit an object also hit its bound.
func TestBoundHoldsTheObject(t *testing.T) {
	for shape := range Shapes {
		for _, scale := range []int{0, Scales - 1} {
			s, hits := newScene(Geometry{scale, shape, 3}), 0
			for p := range Side * Side {
				r := s.view(float64(p%Side)+0.5, float64(p/Side)+0.5)
				_, normal, ok := s.object.hit(r)
				if !ok {
					continue
				}
				hits++
				if s.bound.misses(r) {
					t.Fatalf("shape %d scale %d: the bound misses pixel %d", shape, scale, p)
				}
				if n := normal.dot(normal); math.Abs(n-1) > 1e-9 || normal.dot(r.dir) > 1e-9 {
					t.Fatalf("shape %d scale %d pixel %d: normal %v of norm² %g", shape, scale, p, normal, n)
				}
			}
			if hits < 100 {
				t.Errorf("shape %d scale %d shows on %d pixels", shape, scale, hits)
			}
		}
	}
}

// TestShadow compares the shadow with one traced without bounds.
func TestShadow(t *testing.T) {
	for shape := range Shapes {
		s, dark, half := newScene(Geometry{5, shape, 7}), 0, 0
		for i := range 120 * 120 {
			p := vec{x: float64(i%120)/12 - 5, z: float64(i/120)/12 - 5}
			seen := 0
			for _, q := range s.lampDisc {
				from := vec{p.x, 1e-4, p.z}
				if _, _, hidden := s.object.hit(ray{from, q.sub(from).unit()}); !hidden {
					seen++
				}
			}
			want := float64(seen) / lampPoints
			if got := s.lampSeen(p); got != want {
				t.Fatalf("shape %d at %v: %g of the lamp is visible, want %g", shape, p, got, want)
			}
			if seen == 0 {
				dark++
			} else if seen < lampPoints {
				half++
			}
		}
		if dark == 0 || half == 0 {
			t.Errorf("shape %d: %d points in full shadow, %d in half", shape, dark, half)
		}
	}
}

// TestCamera: the unrotated camera is in front of the object, and the rotated cameras look at it symmetrically from both sides.
func TestCamera(t *testing.T) {
	middle := newScene(Geometry{0, Cube, 7})
	if want := (vec{0, fitted.Camera.Height, -distance}); middle.eye != want {
		t.Errorf("the unrotated camera is at %v, want %v", middle.eye, want)
	}
	first, last := newScene(Geometry{0, Cube, 0}), newScene(Geometry{0, Cube, Orientations - 1})
	if first.eye.x != -last.eye.x || first.eye.z != last.eye.z || math.Abs(math.Abs(first.eye.x)-distance/2) > 1e-12 {
		t.Errorf("the outermost cameras are at %v and %v", first.eye, last.eye)
	}
	for _, s := range []*scene{first, middle, last} {
		r := s.view(Side/2, Side/2)
		if d := s.eye.add(r.dir.mul(distance)); math.Abs(d.x)+math.Abs(d.z) > 1e-9 {
			t.Errorf("the middle of the image looks at %v", d)
		}
	}
}

// TestRoomChangesNothing compares layers that use the pixels of their room with fully traced ones.
func TestRoomChangesNothing(t *testing.T) {
	var none room
	r := new(Renderer)
	for shape := range Shapes {
		for i, scale := range []int{0, Scales / 2, Scales - 1} {
			g := Geometry{Scale: scale, Shape: shape, Orientation: (5*shape + 7*i) % Orientations}
			if *bake(g, r.room(g.Shape, g.Orientation)) != *bake(g, &none) {
				t.Errorf("%+v: the room has pixels that the object changes", g)
			}
		}
		same := 0
		for _, is := range r.room(shape, Orientations/2).same {
			if is {
				same++
			}
		}
		if same < Side*Side/3 {
			t.Errorf("shape %d: the room has only %d of %d pixels", shape, same, Side*Side)
		}
	}
}

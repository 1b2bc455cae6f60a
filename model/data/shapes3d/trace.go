package shapes3d

import "math"

// material is the material that a ray hits; each has one albedo in an image.
type material int

const (
	sky material = iota
	floor
	wall
	object
	materials // their number
)

// sample is the result of one ray: the pixel is shade · albedo[material] + white, with white from 0 to 1.
type sample struct {
	material     material
	shade, white float64
}

// trace follows one ray of the camera.
func (s *scene) trace(r ray) sample {
	if !s.bound.misses(r) {
		if t, normal, ok := s.object.hit(r); ok {
			return s.shadeObject(r, r.at(t), normal)
		}
	}
	t, normal := s.leave(r)
	switch y := r.from.y + t*r.dir.y; {
	case y > s.Room.WallHeight:
		return sample{material: sky, shade: 1}
	case y > 0:
		return s.shadeWall(r, r.at(t), normal)
	}
	return s.shadeFloor(r, ground(r))
}

// ground returns the point where a ray hits the floor.
func ground(r ray) vec {
	p := r.at(-r.from.y / r.dir.y)
	p.y = 0
	return p
}

// leave returns the distance at which a ray from inside the square room hits one of its four walls, and that wall's inward normal.
func (s *scene) leave(r ray) (float64, vec) {
	tx := (math.Copysign(s.Room.HalfWidth, r.dir.x) - r.from.x) / r.dir.x
	tz := (math.Copysign(s.Room.HalfWidth, r.dir.z) - r.from.z) / r.dir.z
	if tz < tx {
		return tz, vec{z: -math.Copysign(1, r.dir.z)}
	}
	return tx, vec{x: -math.Copysign(1, r.dir.x)}
}

func (s *scene) shadeObject(r ray, p, normal vec) sample {
	out := sample{object, s.Object.Ambient + s.Object.Head*max(0, -normal.dot(r.dir)), 0}
	if lit := normal.dot(s.lamp.sub(p).unit()); lit > 0 {
		out.shade += s.Object.Key * lit
		out.white = s.Gloss
	}
	return out
}

func (s *scene) shadeWall(r ray, p, normal vec) sample {
	lit := normal.dot(s.lamp.sub(p).unit())
	return sample{wall, s.Wall.Ambient + s.Wall.Head*max(0, -normal.dot(r.dir)) + s.Wall.Key*max(0, lit), 0}
}

// shadeFloor lights the floor as a spot: less with the squared distance from the spot's centre, less in the object's shadow.
func (s *scene) shadeFloor(r ray, p vec) sample {
	dx, dz := p.x-s.Spot.X, p.z-s.Spot.Z
	key := s.lamp.sub(p).unit().y / (1 + s.Spot.Falloff*(dx*dx+dz*dz))
	return sample{floor, s.Floor.Ambient + s.Floor.Head*max(0, -r.dir.y) + s.Floor.Key*key*s.lampSeen(p), 0}
}

// lampSeen returns the share of the lamp's disc that is visible from a point of the floor.
func (s *scene) lampSeen(p vec) float64 {
	middle := s.toLamp(p)
	if s.shadow.misses(middle) {
		return 1
	}
	seen := 0
	for _, q := range s.lampDisc {
		r := ray{middle.from, q.sub(middle.from).unit()}
		if s.bound.misses(r) {
			seen++
		} else if _, _, hidden := s.object.hit(r); !hidden {
			seen++
		}
	}
	return float64(seen) / lampPoints
}

// toLamp returns the ray from a point of the floor to the lamp's middle.
func (s *scene) toLamp(p vec) ray {
	p.y = 1e-4 // off the floor, on which the object stands
	return ray{p, s.lamp.sub(p).unit()}
}

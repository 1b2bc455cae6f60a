package shapes3d

import "math"

// tooNear is the smallest distance of a hit; anything nearer is the surface that the ray starts from.
const tooNear = 1e-6

// solid is the object in the room. hit returns the distance along the ray to its surface and the outward unit normal there.
type solid interface {
	hit(r ray) (t float64, normal vec, ok bool)
}

// newSolid returns the object of one shape and scale class on the floor at the origin, and a ball that encloses it.
func newSolid(n *numbers, shape, scale int) (solid, ball) {
	s := Scale(scale)
	switch shape {
	case Cube:
		a := n.Cube.HalfEdge * s
		return box{half: a, height: 2 * a}, ball{vec{y: a}, a * math.Sqrt(3)}
	case Cylinder:
		r, h := n.Cylinder.Radius*s, n.Cylinder.Height*s
		return cylinder{tube{r, 0, h}}, ball{vec{y: h / 2}, math.Hypot(r, h/2)}
	case Sphere:
		b := ball{vec{y: n.Sphere.Radius*s + n.Sphere.Lift}, n.Sphere.Radius * s}
		return b, b
	case Capsule:
		r, h := n.Capsule.Radius*s, n.Capsule.Height*s
		low, high := ball{vec{y: r}, r}, ball{vec{y: h - r}, r}
		return capsule{tube{r, r, h - r}, low, high}, ball{vec{y: h / 2}, h / 2}
	}
	panic("shapes3d: no such shape")
}

// box stands on the floor: |x|, |z| ≤ half, 0 ≤ y ≤ height.
type box struct{ half, height float64 }

func (b box) hit(r ray) (float64, vec, bool) {
	nearX, farX := slab(r.from.x, r.dir.x, -b.half, b.half)
	nearY, farY := slab(r.from.y, r.dir.y, 0, b.height)
	nearZ, farZ := slab(r.from.z, r.dir.z, -b.half, b.half)
	near, far := max(nearX, nearY, nearZ), min(farX, farY, farZ)
	var normal vec
	switch near {
	case nearX:
		normal.x = -math.Copysign(1, r.dir.x)
	case nearY:
		normal.y = -math.Copysign(1, r.dir.y)
	default:
		normal.z = -math.Copysign(1, r.dir.z)
	}
	return near, normal, near <= far && near > tooNear
}

// slab returns where the ray from + t·dir enters and leaves lo ≤ coordinate ≤ hi.
func slab(from, dir, lo, hi float64) (enter, leave float64) {
	a, b := (lo-from)/dir, (hi-from)/dir
	if a > b {
		return b, a
	}
	return a, b
}

// ball is a sphere, also used as the bound of the other solids.
type ball struct {
	centre vec
	radius float64
}

func (b ball) hit(r ray) (float64, vec, bool) {
	o := r.from.sub(b.centre)
	half := o.dot(r.dir)
	disc := half*half - (o.dot(o) - b.radius*b.radius)
	if disc < 0 {
		return 0, vec{}, false
	}
	t := -half - math.Sqrt(disc)
	return t, o.add(r.dir.mul(t)).mul(1 / b.radius), t > tooNear
}

// misses reports whether a ray that starts outside b cannot hit anything inside it.
func (b ball) misses(r ray) bool {
	o := r.from.sub(b.centre)
	half, outside := o.dot(r.dir), o.dot(o)-b.radius*b.radius
	return half*half < outside || (outside > 0 && half > 0)
}

// tube is the side of an upright cylinder around the y axis, without its ends: x² + z² = radius², low ≤ y ≤ high.
type tube struct{ radius, low, high float64 }

func (c tube) hit(r ray) (float64, vec, bool) {
	a := r.dir.x*r.dir.x + r.dir.z*r.dir.z
	half := r.from.x*r.dir.x + r.from.z*r.dir.z
	disc := half*half - a*(r.from.x*r.from.x+r.from.z*r.from.z-c.radius*c.radius)
	if a == 0 || disc < 0 {
		return 0, vec{}, false
	}
	t := (-half - math.Sqrt(disc)) / a
	p := r.at(t)
	return t, vec{p.x / c.radius, 0, p.z / c.radius}, t > tooNear && p.y >= c.low && p.y <= c.high
}

// cylinder is a tube closed by two discs.
type cylinder struct{ side tube }

func (c cylinder) hit(r ray) (float64, vec, bool) {
	if t, n, ok := c.side.hit(r); ok {
		return t, n, true
	}
	y, normal := c.side.high, vec{y: 1}
	if r.dir.y > 0 {
		y, normal = c.side.low, vec{y: -1}
	}
	t := (y - r.from.y) / r.dir.y
	p := r.at(t)
	return t, normal, t > tooNear && p.x*p.x+p.z*p.z <= c.side.radius*c.side.radius
}

// capsule is a tube closed by two half balls.
type capsule struct {
	side      tube
	low, high ball
}

func (c capsule) hit(r ray) (float64, vec, bool) {
	best, normal, found := c.side.hit(r)
	for _, end := range [...]ball{c.low, c.high} {
		if t, n, ok := end.hit(r); ok && (!found || t < best) {
			best, normal, found = t, n, true
		}
	}
	return best, normal, found
}

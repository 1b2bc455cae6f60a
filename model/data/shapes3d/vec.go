package shapes3d

import "math"

// vec is a point or a direction: x to the right of the unrotated camera, y up, z away from it.
type vec struct{ x, y, z float64 }

func (a vec) dot(b vec) float64 { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec) add(b vec) vec     { return vec{a.x + b.x, a.y + b.y, a.z + b.z} }
func (a vec) sub(b vec) vec     { return vec{a.x - b.x, a.y - b.y, a.z - b.z} }
func (a vec) mul(s float64) vec { return vec{a.x * s, a.y * s, a.z * s} }
func (a vec) unit() vec         { return a.mul(1 / math.Sqrt(a.dot(a))) }

// ray starts at a point and runs along a direction of unit length.
type ray struct{ from, dir vec }

func (r ray) at(t float64) vec { return r.from.add(r.dir.mul(t)) }

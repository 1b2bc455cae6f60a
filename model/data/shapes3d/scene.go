package shapes3d

import (
	_ "embed"
	"encoding/json"
	"math"
)

// numbers holds the 27 parameters of the scene, fitted to published images of Shapes3D. The unit of length is a tenth of the camera's
// distance from the object; gains multiply an albedo of 0 to 255.
type numbers struct {
	Camera struct {
		Focal  float64 // in pixels of an image 64 wide
		Height float64
	}
	Room struct {
		HalfWidth  float64 `json:"half_width"`
		WallHeight float64 `json:"wall_height"`
	}
	Cube struct { // at scale 1, like the other solids
		HalfEdge float64 `json:"half_edge"`
	}
	Cylinder, Capsule struct{ Radius, Height float64 }
	Sphere            struct{ Radius, Lift float64 }
	Lamp              struct{ X, Y, Z float64 }
	Floor             surface
	Wall              surface
	Object            surface
	Gloss             float64 // white added where the lamp lights the object
	Spot              struct{ X, Z, Falloff float64 }
}

// surface holds a material's gains for ambient light, the camera's headlight, and the lamp.
type surface struct{ Ambient, Head, Key float64 }

//go:embed scene.json
var sceneJSON []byte

var fitted = func() (n numbers) {
	if err := json.Unmarshal(sceneJSON, &n); err != nil {
		panic("shapes3d: scene.json: " + err.Error())
	}
	return n
}()

const (
	distance   = 10  // of the camera from the object
	lampRadius = 0.6 // of the lamp's disc, which softens the shadow
	lampPoints = 8   // shadow rays per point of the floor
)

// scene is one geometry: the room, one object, and a camera rotated around it. It has no colours.
type scene struct {
	*numbers
	object         solid
	bound          ball // around the object
	shadow         ball // bound, widened by the spread below its top of rays to the lamp's disc; rays to the lamp's middle that miss it see the whole lamp
	eye            vec
	right, forward vec // unit vectors of the level camera
	lamp           vec
	lampDisc       [lampPoints]vec
}

func newScene(g Geometry) *scene {
	sin, cos := math.Sincos(-Orientation(g.Orientation) * math.Pi / 180)
	s := &scene{
		numbers: &fitted,
		eye:     vec{-distance * sin, fitted.Camera.Height, -distance * cos},
		right:   vec{cos, 0, -sin},
		forward: vec{sin, 0, cos},
		lamp:    vec{fitted.Lamp.X, fitted.Lamp.Y, fitted.Lamp.Z},
	}
	s.object, s.bound = newSolid(s.numbers, g.Shape, g.Scale)
	s.bound.radius *= 1.0001
	top := s.bound.centre.y + s.bound.radius
	s.shadow = ball{s.bound.centre, s.bound.radius + lampRadius*top/s.lamp.y}
	for i := range s.lampDisc {
		s.lampDisc[i] = s.lamp.add(sunflower(i, lampPoints, lampRadius))
	}
	return s
}

// sunflower returns point i of n spread evenly over a horizontal disc around the origin.
func sunflower(i, n int, radius float64) vec {
	const goldenAngle = 2.399963229728653
	r := radius * math.Sqrt((float64(i)+0.5)/float64(n))
	sin, cos := math.Sincos(float64(i) * goldenAngle)
	return vec{r * cos, 0, r * sin}
}

// view returns the ray through the point (x, y) of the image, in pixels from its upper left corner.
func (s *scene) view(x, y float64) ray {
	dir := s.forward.add(s.right.mul((x - Side/2) / s.Camera.Focal))
	dir.y += (Side/2 - y) / s.Camera.Focal
	return ray{s.eye, dir.unit()}
}

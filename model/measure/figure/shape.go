package figure

import (
	"image"
	"image/draw"
	"math"

	"golang.org/x/image/vector"
)

// shape collects the outlines of one fill until their bounding box is known. A figure has thousands of small marks, and filling each over the
// whole image would take seconds.
type shape struct {
	ops       []op
	low, high [2]float32 // corners of the bounding box; meaningless without ops
	vector    vector.Rasterizer
}

// op is a step of an outline: n points, 0 to close it; with one point, moves distinguishes a move from a line.
type op struct {
	n     int
	moves bool
	at    [3][2]float32
}

func (s *shape) add(o op) {
	for _, p := range o.at[:o.n] {
		for k, v := range p {
			if len(s.ops) == 0 {
				s.low[k], s.high[k] = v, v
			}
			s.low[k], s.high[k] = min(s.low[k], v), max(s.high[k], v)
		}
	}
	s.ops = append(s.ops, o)
}

func (s *shape) MoveTo(x, y float32) { s.add(op{n: 1, moves: true, at: [3][2]float32{{x, y}}}) }
func (s *shape) LineTo(x, y float32) { s.add(op{n: 1, at: [3][2]float32{{x, y}}}) }
func (s *shape) QuadTo(ax, ay, bx, by float32) {
	s.add(op{n: 2, at: [3][2]float32{{ax, ay}, {bx, by}}})
}
func (s *shape) CubeTo(ax, ay, bx, by, cx, cy float32) {
	s.add(op{n: 3, at: [3][2]float32{{ax, ay}, {bx, by}, {cx, cy}}})
}
func (s *shape) ClosePath() { s.add(op{}) }

// fill paints the shape onto an image and resets it.
func (s *shape) fill(img *image.RGBA, paint image.Image) {
	defer func() { s.ops = s.ops[:0] }()
	if len(s.ops) == 0 {
		return
	}
	whole := func(v float32) int { return int(math.Floor(float64(min(max(v, -1e6), 1e6)))) }
	box := image.Rect(whole(s.low[0]), whole(s.low[1]), whole(s.high[0])+1, whole(s.high[1])+1).Intersect(img.Bounds())
	if box.Empty() {
		return
	}
	s.vector.Reset(box.Dx(), box.Dy())
	x, y := float32(box.Min.X), float32(box.Min.Y)
	for _, o := range s.ops {
		at := o.at
		switch {
		case o.n == 0:
			s.vector.ClosePath()
		case o.n == 1 && o.moves:
			s.vector.MoveTo(at[0][0]-x, at[0][1]-y)
		case o.n == 1:
			s.vector.LineTo(at[0][0]-x, at[0][1]-y)
		case o.n == 2:
			s.vector.QuadTo(at[0][0]-x, at[0][1]-y, at[1][0]-x, at[1][1]-y)
		default:
			s.vector.CubeTo(at[0][0]-x, at[0][1]-y, at[1][0]-x, at[1][1]-y, at[2][0]-x, at[2][1]-y)
		}
	}
	s.vector.DrawOp = draw.Over
	s.vector.Draw(img, box, paint, image.Point{})
}

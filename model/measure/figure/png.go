package figure

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// PNG is the drawing in the light scheme with scale pixels per CSS pixel, 0.5 to 8; 2 is suitable for documents. Integer scales keep small
// images sharp.
func (f Figure) PNG(scale float64) ([]byte, error) {
	if !(scale >= 0.5 && scale <= 8) {
		return nil, fmt.Errorf("figure %s: scale %v is out of range; use 0.5 to 8", f.Name, scale)
	}
	w, h := int(math.Ceil((f.Width+2*margin)*scale)), int(math.Ceil((f.Height+2*margin)*scale))
	r := raster{scale: scale, img: image.NewRGBA(image.Rect(0, 0, w, h))}
	draw.Draw(r.img, r.img.Bounds(), image.NewUniform(rgba(shades["paper"].light)), image.Point{}, draw.Src)
	for _, m := range f.marks {
		r.mark(m)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, r.img); err != nil {
		return nil, fmt.Errorf("figure %s: writing PNG: %w", f.Name, err)
	}
	return file.Bytes(), nil
}

// raster draws marks as pixels.
type raster struct {
	scale float64
	img   *image.RGBA
	shape shape
}

func (r *raster) mark(m mark) {
	switch m.kind {
	case linesMark:
		r.stroke(m.points, m)
	case areaMark:
		if m.fill != "" {
			r.polygon(m.points)
			r.fill(m.fill, m.opacity)
		}
		if m.stroke != "" {
			r.stroke(append(m.points[:len(m.points):len(m.points)], m.points[0]), m)
		}
	case circleMark:
		ring := circle(m.points[0], m.radius)
		if m.fill != "" {
			r.polygon(ring)
			r.fill(m.fill, m.opacity)
		}
		if m.stroke != "" {
			r.stroke(append(ring, ring[0]), m)
		}
	case textMark:
		r.text(m)
	case imageMark:
		a, b := m.points[0], m.points[1]
		to := image.Rect(r.px(a.x), r.px(a.y), r.px(b.x), r.px(b.y))
		xdraw.NearestNeighbor.Scale(r.img, to, m.picture, m.picture.Bounds(), draw.Over, nil)
	}
}

func (r *raster) px(v float64) int { return int(math.Round((v + margin) * r.scale)) }

// polygon adds a closed path, counter-clockwise on the screen, so that overlapping pieces of one stroke are filled once.
func (r *raster) polygon(points []point) {
	if area(points) < 0 {
		points = reversed(points)
	}
	for i, p := range points {
		x, y := float32((p.x+margin)*r.scale), float32((p.y+margin)*r.scale)
		if i == 0 {
			r.shape.MoveTo(x, y)
		} else {
			r.shape.LineTo(x, y)
		}
	}
	r.shape.ClosePath()
}

// fill paints what was added since the last fill.
func (r *raster) fill(p paint, opacity float64) {
	c := rgba(shades[p].light)
	if opacity != 0 && opacity != 1 {
		c = color.RGBAModel.Convert(color.NRGBA{c.R, c.G, c.B, uint8(math.Round(255 * opacity))}).(color.RGBA)
	}
	r.shape.fill(r.img, image.NewUniform(c))
}

// stroke draws lines of a given width with round joints.
func (r *raster) stroke(points []point, m mark) {
	half := m.width / 2
	for _, piece := range dashed(points, m.dash) {
		for i, p := range piece {
			if i > 0 {
				r.segment(piece[i-1], p, half)
			}
			if i > 0 && i < len(piece)-1 && m.width > 1 {
				r.polygon(circle(p, half))
			}
		}
	}
	r.fill(m.stroke, 1)
}

func (r *raster) segment(a, b point, half float64) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	nx, ny := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
	r.polygon([]point{{a.x + nx, a.y + ny}, {b.x + nx, b.y + ny}, {b.x - nx, b.y - ny}, {a.x - nx, a.y - ny}})
}

// dashed cuts a line into the dashes of a pattern of on and off lengths.
func dashed(points []point, pattern []float64) [][]point {
	if len(pattern) == 0 || len(points) < 2 {
		return [][]point{points}
	}
	var pieces [][]point
	piece, k, left := []point{points[0]}, 0, pattern[0]
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for {
			length := math.Hypot(b.x-a.x, b.y-a.y)
			if length <= left {
				left -= length
				break
			}
			t := left / length
			a = point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)}
			if k%2 == 0 {
				pieces = append(pieces, append(piece, a))
			}
			k++
			piece, left = []point{a}, pattern[k%len(pattern)]
		}
		piece = append(piece, b)
	}
	if k%2 == 0 {
		pieces = append(pieces, piece)
	}
	return pieces
}

// text fills the outlines of the Go font.
func (r *raster) text(m mark) {
	face, size := m.font.face(), m.font.size
	ppem := fixed.Int26_6(size * 64)
	x := 0.0
	switch m.anchor {
	case middle:
		x = -advance(m.text, m.font) / 2
	case end:
		x = -advance(m.text, m.font)
	}
	sin, cos := math.Sincos(m.angle * math.Pi / 180)
	at := m.points[0]
	place := func(p fixed.Point26_6, x float64) (float32, float32) {
		px, py := x+float64(p.X)/64, float64(p.Y)/64
		return float32((at.x + margin + px*cos - py*sin) * r.scale), float32((at.y + margin + px*sin + py*cos) * r.scale)
	}
	var buf sfnt.Buffer
	for _, c := range m.text {
		g := glyph(face, &buf, c)
		outline, err := face.LoadGlyph(&buf, g, ppem, nil)
		if err != nil {
			panic(fmt.Sprintf("figure: drawing %q: %v", m.text, err))
		}
		r.outline(outline, func(p fixed.Point26_6) (float32, float32) { return place(p, x) })
		x += advance(string(c), m.font)
	}
	r.fill(m.font.paint, 1)
}

func (r *raster) outline(segments sfnt.Segments, place func(fixed.Point26_6) (float32, float32)) {
	for _, s := range segments {
		ax, ay := place(s.Args[0])
		bx, by := place(s.Args[1])
		cx, cy := place(s.Args[2])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			r.shape.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			r.shape.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			r.shape.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			r.shape.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	r.shape.ClosePath()
}

func circle(c point, radius float64) []point {
	const corners = 32
	ring := make([]point, corners)
	for i := range ring {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		ring[i] = point{c.x + radius*cos, c.y + radius*sin}
	}
	return ring
}

// area is the signed area: positive for one orientation and negative for the other.
func area(points []point) float64 {
	sum := 0.0
	for i, p := range points {
		q := points[(i+1)%len(points)]
		sum += p.x*q.y - q.x*p.y
	}
	return sum
}

func reversed(points []point) []point {
	back := make([]point, len(points))
	for i, p := range points {
		back[len(points)-1-i] = p
	}
	return back
}

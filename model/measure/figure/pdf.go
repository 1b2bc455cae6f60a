package figure

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
	"time"

	"github.com/go-pdf/fpdf"
	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
)

const (
	pointsPerPixel = 0.75 // 72 to 96 to the inch
	pdfScale       = 4    // enlargement of small images, because PDF readers smooth them
)

// PDF is the drawing in the light scheme, as vector graphics and text on one page of its size.
func (f Figure) PDF() ([]byte, error) {
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: (f.Width + 2*margin) * pointsPerPixel, Ht: (f.Height + 2*margin) * pointsPerPixel}})
	doc.SetCreationDate(time.Unix(0, 0).UTC()) // the same drawing must produce the same bytes
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetCatalogSort(true)
	doc.SetTitle(f.Title, true)
	doc.SetSubject(f.Desc, true)
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	doc.AddUTF8FontFromBytes("go", "", goregular.TTF)
	doc.AddUTF8FontFromBytes("go", "B", gobold.TTF)
	doc.AddPage()
	p := page{doc}
	p.pictures(f)
	for _, m := range f.marks {
		p.mark(m)
	}
	var file bytes.Buffer
	if err := doc.Output(&file); err != nil {
		return nil, fmt.Errorf("figure %s: writing PDF: %w", f.Name, err)
	}
	return file.Bytes(), nil
}

// page draws marks with PDF operators.
type page struct{ *fpdf.Fpdf }

func (p page) at(v float64) float64 { return (v + margin) * pointsPerPixel }

func (p page) mark(m mark) {
	p.paints(m)
	switch m.kind {
	case linesMark:
		p.path(m.points)
		p.DrawPath("D")
	case areaMark:
		p.path(m.points)
		p.ClosePath()
		p.DrawPath(style(m))
	case circleMark:
		p.Circle(p.at(m.points[0].x), p.at(m.points[0].y), m.radius*pointsPerPixel, style(m))
	case textMark:
		p.text(m)
	}
	p.SetAlpha(1, "Normal")
}

// style is the drawing mode of a shape: filled, outlined, or both.
func style(m mark) string {
	switch {
	case m.fill != "" && m.stroke != "":
		return "FD"
	case m.fill != "":
		return "F"
	}
	return "D"
}

func (p page) paints(m mark) {
	if m.fill != "" {
		c := rgba(shades[m.fill].light)
		p.SetFillColor(int(c.R), int(c.G), int(c.B))
		if m.opacity != 0 {
			p.SetAlpha(m.opacity, "Normal")
		}
	}
	if m.stroke != "" {
		c := rgba(shades[m.stroke].light)
		p.SetDrawColor(int(c.R), int(c.G), int(c.B))
		p.SetLineWidth(m.width * pointsPerPixel)
		dash := make([]float64, len(m.dash))
		for i, d := range m.dash {
			dash[i] = d * pointsPerPixel
		}
		p.SetDashPattern(dash, 0)
	}
}

func (p page) path(points []point) {
	for i, at := range points {
		if i == 0 {
			p.MoveTo(p.at(at.x), p.at(at.y))
		} else {
			p.LineTo(p.at(at.x), p.at(at.y))
		}
	}
}

func (p page) text(m mark) {
	weight := ""
	if m.font.strong {
		weight = "B"
	}
	c := rgba(shades[m.font.paint].light)
	p.SetTextColor(int(c.R), int(c.G), int(c.B))
	p.SetFont("go", weight, m.font.size*pointsPerPixel)
	x, y := p.at(m.points[0].x), p.at(m.points[0].y)
	p.TransformBegin()
	p.TransformRotate(-m.angle, x, y)
	switch m.anchor {
	case middle:
		x -= p.GetStringWidth(m.text) / 2
	case end:
		x -= p.GetStringWidth(m.text)
	}
	p.Text(x, y, m.text)
	p.TransformEnd()
}

// pictures draws all images of a figure below its other marks, merged into one image because fpdf writes several in arbitrary order.
func (p page) pictures(f Figure) {
	var box image.Rectangle
	place := func(m mark) image.Rectangle {
		px := func(v float64) int { return int(math.Round((v + margin) * pdfScale)) }
		return image.Rect(px(m.points[0].x), px(m.points[0].y), px(m.points[1].x), px(m.points[1].y))
	}
	for _, m := range f.marks {
		if m.kind == imageMark {
			box = box.Union(place(m))
		}
	}
	if box.Empty() {
		return
	}
	all := image.NewRGBA(box)
	draw.Draw(all, box, image.White, image.Point{}, draw.Src)
	for _, m := range f.marks {
		if m.kind == imageMark {
			xdraw.NearestNeighbor.Scale(all, place(m), m.picture, m.picture.Bounds(), xdraw.Over, nil)
		}
	}
	var raw bytes.Buffer
	if err := png.Encode(&raw, all); err != nil {
		p.SetError(err)
		return
	}
	options := fpdf.ImageOptions{ImageType: "PNG"}
	p.RegisterImageOptionsReader("pictures", options, &raw)
	at := func(v int) float64 { return float64(v) / pdfScale * pointsPerPixel }
	p.ImageOptions("pictures", at(box.Min.X), at(box.Min.Y), at(box.Dx()), at(box.Dy()), false, options, 0, "")
}

// Package figure draws charts, heat maps and image sheets on the server: one drawing, written as inline SVG for pages, as standalone SVG,
// and as PNG. The same input produces the same bytes.
//
//	LineChart   lines with bands and markers, linear or logarithmic axes, reference lines, labelled dots
//	BarChart    grouped bars with error bars
//	HeatMap     a matrix with its values written into the cells
//	ImageGrid   small images at whole multiples, with labels
//
// Each has a Draw method that returns a Figure. Values that are not finite are omitted and counted in the note; if nothing remains, the
// figure shows a sentence and keeps its size.
//
// A figure inside a page is styled by static/shared/figure.css, which this package's test generates from the palette; a standalone figure
// contains its style and follows the reader's light or dark scheme. Both print in the light scheme.
package figure

import (
	"image"
	"math"
)

// Figure is a finished drawing.
type Figure struct {
	Name          string  // of a-z, 0-9 and '-': base of file names and of ids in a page, where it must be unique
	Title         string  // drawn at the top unless empty
	Desc          string  // text alternative
	Width, Height float64 // CSS pixels
	marks         []mark
}

type point struct{ x, y float64 }

type markKind int

const (
	linesMark markKind = iota // open lines through points
	areaMark                  // closed and filled
	circleMark
	textMark
	imageMark
)

// mark is one drawn element; kind determines which fields apply.
type mark struct {
	kind    markKind
	points  []point
	radius  float64
	fill    paint
	stroke  paint
	width   float64   // of the stroke
	dash    []float64 // empty for a solid line
	opacity float64   // of the fill; 0 means 1
	text    string
	font    font
	anchor  anchor
	angle   float64 // of text, degrees, clockwise
	picture image.Image
	tip     string // tooltip
}

type anchor int

const (
	start anchor = iota
	middle
	end
)

// font is a size in pixels with one of two weights.
type font struct {
	size   float64
	strong bool
	paint  paint
}

var (
	titleFont = font{13.5, true, "ink"}
	labelFont = font{12, false, "ink"}
	quietFont = font{12, false, "quiet"}
	cellFont  = font{11, false, "ink"}
)

// lineHeight is the distance between base lines.
func (f font) lineHeight() float64 { return math.Round(f.size * 1.35) }

// drop is the offset of the base line below the centre of text.
func (f font) drop() float64 { return f.size * 0.35 }

func (f *Figure) lines(points []point, stroke paint, width float64, dash []float64) {
	f.marks = append(f.marks, mark{kind: linesMark, points: points, stroke: stroke, width: width, dash: dash})
}

func (f *Figure) area(points []point, fill paint, opacity float64, tip string) {
	f.marks = append(f.marks, mark{kind: areaMark, points: points, fill: fill, opacity: opacity, tip: tip})
}

func (f *Figure) rect(x, y, w, h float64, fill paint, tip string) {
	f.area([]point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, fill, 1, tip)
}

func (f *Figure) label(x, y float64, text string, font font, a anchor) {
	f.marks = append(f.marks, mark{kind: textMark, points: []point{{x, y}}, text: text, font: font, anchor: a})
}

// paragraph writes text in lines no wider than width, the first with base line y, and returns the base line after the last.
func (f *Figure) paragraph(x, y, width float64, text string, font font) float64 {
	for _, line := range wrap(text, font, width) {
		f.label(x, y, line, font, start)
		y += font.lineHeight()
	}
	return y
}

// heading draws the title and returns the y below it.
func (f *Figure) heading() float64 {
	if f.Title == "" {
		return 4
	}
	return f.paragraph(0, titleFont.size, f.Width, f.Title, titleFont) - titleFont.size + 6
}

// footing draws the note from y and sets the figure's height.
func (f *Figure) footing(y float64, note string) {
	if note != "" {
		y = f.paragraph(0, y+quietFont.size+2, f.Width, note, quietFont) - quietFont.size
	}
	f.Height = math.Ceil(y + 4)
}

// nothing draws an empty figure: the title, a frame of the usual height and a sentence in it.
func (f *Figure) nothing(sentence string, height float64) Figure {
	top := f.heading()
	bottom := max(height, top+3*quietFont.lineHeight())
	f.lines([]point{{0, bottom - 0.5}, {f.Width, bottom - 0.5}}, "rule", 1, nil)
	lines := wrap(sentence, quietFont, f.Width-16)
	y := (top+bottom)/2 - float64(len(lines)-1)*quietFont.lineHeight()/2
	for _, line := range lines {
		f.label(f.Width/2, y, line, quietFont, middle)
		y += quietFont.lineHeight()
	}
	if f.Desc == "" {
		f.Desc = sentence
	}
	f.Height = bottom
	return *f
}

var nan = math.NaN()

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

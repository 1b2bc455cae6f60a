package figure

import (
	"fmt"
	"image"
	"math"
)

// ImageGrid draws small images in rows and columns, scaled by a whole factor.
type ImageGrid struct {
	Name, Title string
	Desc        string
	Note        string
	Rows        []string // names left of the images; empty if none
	Columns     []string // names above the images; empty if none
	Images      [][]image.Image
	Captions    [][]string // below individual images; nil if none
	Scale       int        // output pixels per image pixel; 0 for 1
	Colors      []int      // of marks below the column names, for instance those of slots; empty if none
	Empty       string     // sentence shown if there is nothing to draw
}

const gridGap = 4.0

// Draw draws the grid. Missing images leave empty cells.
func (g ImageGrid) Draw() Figure {
	f := Figure{Name: g.Name, Title: g.Title, Desc: g.Desc, Width: 360}
	w, h, columns := g.sizes()
	if columns == 0 {
		return f.nothing(orSentence(g.Empty), 120)
	}
	if f.Desc == "" {
		f.Desc = fmt.Sprintf("%d rows of %d images.", len(g.Images), columns)
	}
	left := 0.0
	for _, name := range g.Rows {
		left = max(left, textWidth(name, labelFont))
	}
	if left > 0 {
		left = math.Ceil(min(left, 140)) + 8
	}
	f.Width = max(left+float64(columns)*(w+gridGap)-gridGap, 160)
	y := g.columnNames(&f, math.Ceil(f.heading()), left, w)
	for i, row := range g.Images {
		if i < len(g.Rows) {
			f.label(left-8, y+h/2+labelFont.drop(), shorten(g.Rows[i], labelFont, left-8), labelFont, end)
		}
		for j, img := range row {
			g.image(&f, left+float64(j)*(w+gridGap), y, img, i, j)
		}
		y += h + gridGap
		if g.Captions != nil {
			y += cellFont.lineHeight()
		}
	}
	f.footing(y, g.Note)
	return f
}

// sizes are the maximum width and height of the images, and the number of columns of the longest row.
func (g ImageGrid) sizes() (w, h float64, columns int) {
	scale := float64(max(g.Scale, 1))
	for _, row := range g.Images {
		for j, img := range row {
			if img == nil || img.Bounds().Empty() {
				continue
			}
			columns = max(columns, j+1)
			w, h = max(w, scale*float64(img.Bounds().Dx())), max(h, scale*float64(img.Bounds().Dy()))
		}
	}
	return w, h, columns
}

func (g ImageGrid) columnNames(f *Figure, y, left, w float64) float64 {
	if len(g.Columns) == 0 {
		return y
	}
	lines := 1
	for _, name := range g.Columns {
		lines = max(lines, len(wrap(name, labelFont, w)))
	}
	bottom := y + float64(lines)*labelFont.lineHeight()
	for j, name := range g.Columns {
		wrapped := wrap(name, labelFont, w)
		for i, line := range wrapped {
			f.label(left+float64(j)*(w+gridGap)+w/2, bottom-float64(len(wrapped)-1-i)*labelFont.lineHeight()-4, shorten(line, labelFont, w), labelFont, middle)
		}
		if j < len(g.Colors) {
			f.rect(left+float64(j)*(w+gridGap), bottom, w, 3, slotPaint(g.Colors[j]), "")
		}
	}
	return bottom + 6
}

func (g ImageGrid) image(f *Figure, x, y float64, img image.Image, i, j int) {
	if img == nil || img.Bounds().Empty() {
		return
	}
	scale := float64(max(g.Scale, 1))
	b := point{x + scale*float64(img.Bounds().Dx()), y + scale*float64(img.Bounds().Dy())}
	f.marks = append(f.marks, mark{kind: imageMark, points: []point{{x, y}, b}, picture: img, tip: g.tip(i, j)})
	if i < len(g.Captions) && j < len(g.Captions[i]) {
		f.label((x+b.x)/2, b.y+cellFont.size, shorten(g.Captions[i][j], cellFont, b.x-x), font{cellFont.size, false, "quiet"}, middle)
	}
}

func (g ImageGrid) tip(i, j int) string {
	var row, column, caption string
	if i < len(g.Rows) {
		row = g.Rows[i]
	}
	if j < len(g.Columns) {
		column = g.Columns[j]
	}
	if i < len(g.Captions) && j < len(g.Captions[i]) {
		caption = g.Captions[i][j]
	}
	return join(row, column, caption)
}

// Cut divides a sheet into equal cells, rows by columns; nil if it is not divisible.
func Cut(sheet image.Image, rows, columns int) [][]image.Image {
	cutter, ok := sheet.(interface {
		SubImage(image.Rectangle) image.Image
	})
	if !ok || rows < 1 || columns < 1 {
		return nil
	}
	size := sheet.Bounds()
	w, h := size.Dx()/columns, size.Dy()/rows
	if w == 0 || h == 0 || size.Dx()%columns != 0 || size.Dy()%rows != 0 {
		return nil
	}
	cells := make([][]image.Image, rows)
	for r := range cells {
		for c := range columns {
			cells[r] = append(cells[r], cutter.SubImage(image.Rect(0, 0, w, h).Add(size.Min).Add(image.Pt(c*w, r*h))))
		}
	}
	return cells
}

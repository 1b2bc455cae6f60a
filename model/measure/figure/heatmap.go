package figure

import (
	"fmt"
	"strings"
)

// HeatMap draws a matrix: each cell has a colour and a number.
type HeatMap struct {
	Name, Title string
	Desc        string // empty to generate it from the largest value of each row
	Note        string
	Rows        []string
	Columns     []string
	Value       [][]float64                // by row and column; non-finite values are drawn as –
	Range       [2]float64                 // of the colours; equal to use the smallest and largest value
	Signed      bool                       // diverging colours around the middle of Range, which is 0
	Format      func(float64) string       // of a cell's number; nil for two decimals
	Marked      func(row, column int) bool // cells with an outline, for instance the largest of a row; nil if none
	Muted       func(row, column int) bool // irrelevant cells, drawn without colour; nil if none
	Corner      string                     // names of the two dimensions: "factor / slot"
	Width       float64                    // 0 to fit the cells
	Empty       string                     // sentence shown if there is nothing to draw
	Colors      []int                      // of marks at the column names, for instance those of slots; empty if none
}

const cellHeight = 24.0

// Draw draws the map.
func (h HeatMap) Draw() Figure {
	left, column, slanted := h.layout()
	f := Figure{Name: h.Name, Title: h.Title, Desc: h.Desc, Width: left + column*float64(len(h.Columns)) + 1}
	low, high, seen := h.span()
	if !seen || len(h.Rows) == 0 || len(h.Columns) == 0 {
		f.Width = orElse(h.Width, 360)
		return f.nothing(orSentence(h.Empty), 120)
	}
	if f.Desc == "" {
		f.Desc = h.describe()
	}
	f.Width = max(f.Width, 240)
	top := h.columnNames(&f, f.heading(), left, column, slanted)
	for i, name := range h.Rows {
		y := top + float64(i)*cellHeight
		f.label(left-8, y+cellHeight/2+labelFont.drop(), shorten(name, labelFont, left-8), labelFont, end)
		for j := range h.Columns {
			h.cell(&f, left+float64(j)*column, y, column, i, j, low, high)
		}
	}
	y := top + float64(len(h.Rows))*cellHeight + 10
	f.footing(h.scaleBar(&f, left, y, low, high), h.Note)
	return f
}

func (h HeatMap) at(i, j int) float64 {
	if i < len(h.Value) && j < len(h.Value[i]) {
		return h.Value[i][j]
	}
	return nan
}

// span is the range of the colours; seen reports whether any value is finite.
func (h HeatMap) span() (low, high float64, seen bool) {
	for i := range h.Rows {
		for j := range h.Columns {
			v := h.at(i, j)
			if !finite(v) {
				continue
			}
			if !seen {
				low, high, seen = v, v, true
			}
			low, high = min(low, v), max(high, v)
		}
	}
	if h.Range[0] < h.Range[1] {
		low, high = h.Range[0], h.Range[1]
	}
	return low, high, seen
}

// layout returns the width of the row names and of a column, and whether the column names are slanted.
func (h HeatMap) layout() (left, column float64, slanted bool) {
	for _, name := range append([]string{h.Corner}, h.Rows...) {
		left = max(left, textWidth(name, labelFont))
	}
	left = min(left, 160) + 8
	cell, name := 0.0, 0.0
	for i := range h.Rows {
		for j := range h.Columns {
			cell = max(cell, textWidth(h.text(i, j), cellFont)+10)
		}
	}
	for _, n := range h.Columns {
		for _, line := range wrap(n, labelFont, 64) {
			name = max(name, textWidth(line, labelFont)+8)
		}
	}
	column = max(cell, name, 30)
	if h.Width > 0 {
		column = max(cell, (h.Width-left-1)/float64(max(len(h.Columns), 1)))
	} else if column > 72 {
		column = max(cell, 30)
	}
	return left, column, name > column+0.5
}

func (h HeatMap) text(i, j int) string {
	v := h.at(i, j)
	switch {
	case !finite(v):
		return "–"
	case h.Format != nil:
		return h.Format(v)
	}
	return strings.Replace(fmt.Sprintf("%.2f", v), "-", "−", 1)
}

// columnNames writes the column names from y and returns the y of the first cells.
func (h HeatMap) columnNames(f *Figure, y, left, column float64, slanted bool) float64 {
	lines, longest := 1, 0.0
	for _, name := range h.Columns {
		lines = max(lines, len(wrap(name, labelFont, column-4)))
		longest = max(longest, textWidth(name, labelFont))
	}
	bottom := y + float64(lines)*labelFont.lineHeight()
	if slanted {
		bottom = y + longest*0.65 + 14
		f.Width = max(f.Width, left+column*(float64(len(h.Columns))-0.5)+longest*0.77+4)
	}
	if len(h.Colors) > 0 {
		bottom += 6
	}
	for j, name := range h.Columns {
		x := left + (float64(j)+0.5)*column
		h.columnName(f, name, x, bottom, column, slanted)
		if j < len(h.Colors) {
			f.rect(left+float64(j)*column+1, bottom-1, column-2, 3, slotPaint(h.Colors[j]), "")
		}
	}
	f.label(left-8, bottom-4, h.Corner, quietFont, end)
	return bottom + 6
}

func (h HeatMap) columnName(f *Figure, name string, x, bottom, column float64, slanted bool) {
	if len(h.Colors) > 0 {
		bottom -= 5
	}
	if slanted {
		f.marks = append(f.marks, mark{kind: textMark, points: []point{{x, bottom - 2}}, text: name, font: labelFont, angle: -40})
		return
	}
	lines := wrap(name, labelFont, column-4)
	for i, line := range lines {
		f.label(x, bottom-float64(len(lines)-1-i)*labelFont.lineHeight()-2, line, labelFont, middle)
	}
}

func (h HeatMap) cell(f *Figure, x, y, column float64, i, j int, low, high float64) {
	v := h.at(i, j)
	muted := !finite(v) || h.Muted != nil && h.Muted(i, j)
	fill, font := paint("sunk"), font{cellFont.size, false, "quiet"}
	if !muted {
		step := 0
		if high > low {
			step = heat((v - low) / (high - low))
		}
		fill, font.paint = h.paint(step), paint(fmt.Sprint(h.scale("t"), step))
	}
	tip := fmt.Sprintf("%s, %s: %s", h.Rows[i], h.Columns[j], Number(v))
	f.rect(x+0.5, y+0.5, column-1, cellHeight-1, fill, tip)
	if h.Marked != nil && h.Marked(i, j) {
		font.strong = true
		f.marks = append(f.marks, mark{kind: areaMark, points: []point{{x + 1.5, y + 1.5}, {x + column - 1.5, y + 1.5}, {x + column - 1.5, y + cellHeight - 1.5}, {x + 1.5, y + cellHeight - 1.5}}, stroke: font.paint, width: 1.2})
	}
	f.label(x+column/2, y+cellHeight/2+font.drop(), h.text(i, j), font, middle)
}

// paint is the paint of a step of the map's scale.
func (h HeatMap) paint(step int) paint { return paint(fmt.Sprint(h.scale("h"), step)) }

// scale is the paint prefix of the map's scale, from kind h for cells and t for their text.
func (h HeatMap) scale(kind string) string {
	if h.Signed {
		return "s" + kind
	}
	return kind
}

// scaleBar draws the colour legend and returns the y below it.
func (h HeatMap) scaleBar(f *Figure, x, y, low, high float64) float64 {
	if high <= low {
		return y
	}
	const step = 6.0
	width := textWidth(Number(low), quietFont)
	f.label(x, y+8+quietFont.drop(), Number(low), quietFont, start)
	x += width + 6
	for i := range heatSteps {
		f.rect(x+float64(i)*step, y+3, step+0.4, 10, h.paint(i), "")
	}
	x += heatSteps*step + 6
	f.label(x, y+8+quietFont.drop(), Number(high), quietFont, start)
	f.Width = max(f.Width, x+textWidth(Number(high), quietFont))
	return y + 18
}

func (h HeatMap) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A matrix of %d rows and %d columns.", len(h.Rows), len(h.Columns))
	for i, row := range h.Rows {
		best := -1
		for j := range h.Columns {
			if v := h.at(i, j); finite(v) && (best < 0 || v > h.at(i, best)) {
				best = j
			}
		}
		if best >= 0 {
			fmt.Fprintf(&b, " %s: most in %s, %s.", row, h.Columns[best], Number(h.at(i, best)))
		}
	}
	return b.String()
}

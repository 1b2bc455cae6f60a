package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// LineChart draws series over a common x axis.
type LineChart struct {
	Name, Title   string
	Desc          string // empty to generate it from the series
	Note          string // shown below, such as the number of points and the meaning of bands
	X, Y          Axis
	Lines         []Line
	References    []Reference
	Dots          []Dot
	Scatter       []Scatter
	Width, Height float64 // Width of the figure and Height of its plot; 0 for 360 and 200
	Direct        bool    // names lines at their ends instead of in a legend
	Empty         string  // sentence shown if there is nothing to draw
}

// Line is one series. Low and High, if given, are its band; a non-finite value interrupts the line.
type Line struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Color     int  // index in the palette, which starts with the colours of slots; lines with an index above 8 are dashed
	Markers   bool // a marker at every point; its shape depends on Color
	Dashed    bool
}

// Reference is a thin line across the plot at a value of x or y.
type Reference struct {
	Vertical bool // at a value of x
	At       float64
	Label    string
}

// Dot is one labelled point, for instance the position of a run on a curve.
type Dot struct {
	X, Y  float64
	Label string
	Color int
}

// Scatter is the unlabelled points of one series, for instance the individual seeds behind a mean.
type Scatter struct {
	Name  string // in the tooltip of a point
	X, Y  []float64
	Color int
}

// Draw draws the chart.
func (c LineChart) Draw() Figure {
	f := Figure{Name: c.Name, Title: c.Title, Desc: c.Desc, Width: orElse(c.Width, 360)}
	height := orElse(c.Height, 200)
	if f.Desc == "" {
		f.Desc = c.describe()
	}
	if c.drawable() == 0 {
		return f.nothing(orSentence(c.Empty), height)
	}
	y := f.heading()
	if !c.Direct {
		y = f.legend(y, c.legend())
	}
	p := c.plot(&f, y, height)
	p.grid(&f)
	c.references(&f, p)
	for _, l := range c.Lines {
		l.band(&f, p)
	}
	left := 0
	for _, l := range c.Lines {
		left += l.draw(&f, p)
	}
	for _, s := range c.Scatter {
		left += s.draw(&f, p)
	}
	left += f.dots(c.Dots, p)
	c.referenceLabels(&f, p)
	if c.Direct {
		c.directLabels(&f, p)
	}
	f.footing(p.bottom(), join(c.Note, leftOut(left)))
	return f
}

func orElse(v, otherwise float64) float64 {
	if v > 0 {
		return v
	}
	return otherwise
}

func orSentence(s string) string {
	if s == "" {
		return "No data yet."
	}
	return s
}

func leftOut(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 value cannot be drawn and is omitted."
	}
	return fmt.Sprintf("%s values cannot be drawn and are omitted.", Number(float64(n)))
}

func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

func (c LineChart) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s over %s.", c.Y.Label, c.X.Label)
	for _, l := range c.Lines {
		if i, j := l.ends(); i >= 0 {
			fmt.Fprintf(&b, " %s: from %s at %s to %s at %s.", l.Name, Number(l.Y[i]), Number(l.X[i]), Number(l.Y[j]), Number(l.X[j]))
		}
	}
	for _, d := range c.Dots {
		fmt.Fprintf(&b, " %s: %s at %s.", d.Label, Number(d.Y), Number(d.X))
	}
	return b.String()
}

// ends are the indices of the first and the last point that can be drawn, −1 if none.
func (l Line) ends() (first, last int) {
	first, last = -1, -1
	for i := range min(len(l.X), len(l.Y)) {
		if finite(l.X[i]) && finite(l.Y[i]) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// drawable counts the points that can be drawn.
func (c LineChart) drawable() int {
	xs, ys := scale{log: c.X.Log}, scale{log: c.Y.Log}
	n := 0
	for _, l := range c.Lines {
		for i := range min(len(l.X), len(l.Y)) {
			if xs.fits(l.X[i]) && ys.fits(l.Y[i]) {
				n++
			}
		}
	}
	for _, s := range c.Scatter {
		for i := range min(len(s.X), len(s.Y)) {
			if xs.fits(s.X[i]) && ys.fits(s.Y[i]) {
				n++
			}
		}
	}
	for _, d := range c.Dots {
		if xs.fits(d.X) && ys.fits(d.Y) {
			n++
		}
	}
	return n
}

// plot determines the scales and places the frame below y.
func (c LineChart) plot(f *Figure, y, height float64) plot {
	var xs, ys []float64
	for _, l := range c.Lines {
		xs = append(xs, l.X...)
		ys = append(append(append(ys, l.Y...), l.Low...), l.High...)
	}
	for _, s := range c.Scatter {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	for _, d := range c.Dots {
		xs, ys = append(xs, d.X), append(ys, d.Y)
	}
	for _, r := range c.References {
		if r.Vertical {
			xs = append(xs, r.At)
		} else {
			ys = append(ys, r.At)
		}
	}
	right := 8.0
	if c.Direct {
		for _, l := range c.Lines {
			right = max(right, textWidth(l.Name, labelFont)+10)
		}
		right = min(right, f.Width*0.4)
	}
	return newPlot(f, c.X, c.Y, xs, ys, y, height, right)
}

func (c LineChart) references(f *Figure, p plot) {
	for _, r := range c.References {
		if at, ok := r.place(p); ok {
			ends := []point{{p.x.from, at}, {p.x.to, at}}
			if r.Vertical {
				ends = []point{{at, p.y.to}, {at, p.y.from}}
			}
			f.lines(ends, "strong", 1, []float64{2, 3})
		}
	}
}

// place is the position at which the reference crosses the plot; ok is false if it does not.
func (r Reference) place(p plot) (at float64, ok bool) {
	s := p.y
	if r.Vertical {
		s = p.x
	}
	return s.at(r.At), s.fits(r.At) && s.at(r.At) == s.inside(r.At)
}

// referenceLabels labels the references in free space, as far as there is room.
func (c LineChart) referenceLabels(f *Figure, p plot) {
	for _, r := range c.References {
		at, ok := r.place(p)
		if !ok || r.Label == "" {
			continue
		}
		wide := textWidth(r.Label, quietFont)
		var places []point // left end of the label's base line
		if r.Vertical {
			top, bottom := p.y.to+quietFont.size, p.y.from-4
			places = []point{{at + 5, top}, {at - 5 - wide, top}, {at + 5, bottom}, {at - 5 - wide, bottom}}
		} else {
			above, below := at-4, at+quietFont.size
			if above < p.y.to+quietFont.size {
				above = below
			}
			left, right := p.x.from+4, p.x.to-2-wide
			places = []point{{right, above}, {left, above}, {right, below}, {left, below}}
			if len(c.Dots) > 0 { // labels of dots extend to the right
				places = []point{{left, above}, {right, above}, {left, below}, {right, below}}
			}
		}
		best := places[0]
		for _, place := range places {
			if place.x >= p.x.from && place.x+wide <= f.Width && place.y <= p.y.from && f.blank(place, wide, quietFont.size) {
				best = place
				break
			}
		}
		f.label(best.x, best.y, r.Label, quietFont, start)
	}
}

// blank reports whether a box of the given size, whose base line starts at a point, overlaps no text.
func (f *Figure) blank(at point, wide, high float64) bool {
	for _, m := range f.marks {
		if m.kind != textMark {
			continue
		}
		x, w := m.points[0].x, textWidth(m.text, m.font)
		switch m.anchor {
		case end:
			x -= w
		case middle:
			x -= w / 2
		}
		y := m.points[0].y
		if x < at.x+wide && at.x < x+w && y-m.font.size < at.y && at.y-high < y {
			return false
		}
	}
	return true
}

// beside writes a label to the right of x, or to the left if it would leave the plot.
func (f *Figure) beside(x, y float64, text string, font font, p plot) {
	if x+5+textWidth(text, font) > f.Width {
		f.label(x-5, y, text, font, end)
		return
	}
	f.label(x+5, y, text, font, start)
}

func (l Line) band(f *Figure, p plot) {
	n := min(len(l.X), len(l.Low), len(l.High))
	var low, high []point
	flush := func() {
		if len(low) > 1 {
			f.area(append(low, reversed(high)...), seriesPaint(l.Color), 0.2, "")
		}
		low, high = nil, nil
	}
	for i := range n {
		if !p.x.fits(l.X[i]) || !finite(l.Low[i]) || !p.y.fits(l.High[i]) {
			flush()
			continue
		}
		x := p.x.inside(l.X[i])
		low, high = append(low, point{x, p.y.inside(l.Low[i])}), append(high, point{x, p.y.inside(l.High[i])})
	}
	flush()
}

// draw draws the line and its markers; it returns the number of points that cannot be drawn.
func (l Line) draw(f *Figure, p plot) (left int) {
	dash := Dash(l.Color)
	if l.Dashed {
		dash = []float64{4, 3}
	}
	var run []point
	flush := func() {
		for _, piece := range clip(run, p.bounds()) {
			f.lines(piece, seriesPaint(l.Color), 1.75, dash)
		}
		run = nil
	}
	for i := range min(len(l.X), len(l.Y)) {
		if !p.x.fits(l.X[i]) || !p.y.fits(l.Y[i]) {
			flush()
			left++
			continue
		}
		run = append(run, point{p.x.at(l.X[i]), p.y.at(l.Y[i])})
	}
	alone := !l.Markers && len(run) == 1 && left+1 == min(len(l.X), len(l.Y))
	flush()
	if l.Markers || alone {
		l.markers(f, p)
	}
	return left
}

func (l Line) markers(f *Figure, p plot) {
	for i := range min(len(l.X), len(l.Y)) {
		if !p.x.fits(l.X[i]) || !p.y.fits(l.Y[i]) {
			continue
		}
		at := point{p.x.at(l.X[i]), p.y.at(l.Y[i])}
		if !p.bounds().has(at) {
			continue
		}
		tip := fmt.Sprintf("%s: %s at %s", l.Name, Number(l.Y[i]), Number(l.X[i]))
		if i < len(l.Low) && i < len(l.High) {
			tip += fmt.Sprintf(", from %s to %s", Number(l.Low[i]), Number(l.High[i]))
		}
		f.marker(at, l.Color, 3.2, tip)
	}
}

// draw draws the points inside the plot as open circles; it returns the number of points that cannot be drawn.
func (s Scatter) draw(f *Figure, p plot) (left int) {
	for i := range min(len(s.X), len(s.Y)) {
		if !p.x.fits(s.X[i]) || !p.y.fits(s.Y[i]) {
			left++
			continue
		}
		if at := (point{p.x.at(s.X[i]), p.y.at(s.Y[i])}); p.bounds().has(at) {
			f.hollow(at, seriesPaint(s.Color), fmt.Sprintf("%s: %s at %s", s.Name, Number(s.Y[i]), Number(s.X[i])))
		}
	}
	return left
}

// hollow draws a small open circle, which marks an individual seed.
func (f *Figure) hollow(at point, stroke paint, tip string) {
	f.marks = append(f.marks, mark{kind: circleMark, points: []point{at}, radius: 2.6, fill: "paper", stroke: stroke, width: 1.3, tip: tip})
}

// marker draws the shape of a series, so that series can be distinguished without colour.
func (f *Figure) marker(at point, series int, r float64, tip string) {
	fill := seriesPaint(series)
	corners := func(turn float64, n int, r float64) {
		ring := make([]point, n)
		for i := range ring {
			sin, cos := math.Sincos(turn + 2*math.Pi*float64(i)/float64(n))
			ring[i] = point{at.x + r*cos, at.y + r*sin}
		}
		f.area(ring, fill, 1, tip)
	}
	switch series % 5 {
	case 0:
		f.marks = append(f.marks, mark{kind: circleMark, points: []point{at}, radius: r, fill: fill, tip: tip})
	case 1:
		corners(math.Pi/4, 4, r*1.25)
	case 2:
		corners(-math.Pi/2, 3, r*1.4)
	case 3:
		corners(0, 4, r*1.35)
	case 4:
		corners(math.Pi/2, 3, r*1.4)
	}
}

// dots draws labelled points and separates their labels; it returns the number of points that cannot be drawn.
func (f *Figure) dots(dots []Dot, p plot) (left int) {
	var seen []Dot
	var ys []float64
	for _, d := range dots {
		if !p.x.fits(d.X) || !p.y.fits(d.Y) {
			left++
			continue
		}
		at := point{p.x.inside(d.X), p.y.inside(d.Y)}
		tip := fmt.Sprintf("%s: %s at %s", d.Label, Number(d.Y), Number(d.X))
		f.marks = append(f.marks, mark{kind: circleMark, points: []point{at}, radius: 4.5, fill: seriesPaint(d.Color), stroke: "paper", width: 1.5, tip: tip})
		y := at.y - 6
		if y < p.y.to+2*labelFont.size { // space of the labels of vertical lines
			y = at.y + labelFont.size + 4
		}
		seen, ys = append(seen, d), append(ys, y)
	}
	for i, y := range stacked(seen, ys, p) {
		f.beside(p.x.inside(seen[i].X)+2, y, seen[i].Label, labelFont, p)
	}
	return left
}

// stacked separates the base lines ys of labels in the same column.
func stacked(dots []Dot, ys []float64, p plot) []float64 {
	moved := slices.Clone(ys)
	for i := range dots {
		var column []int
		for j := range dots {
			if math.Abs(p.x.inside(dots[i].X)-p.x.inside(dots[j].X)) < 40 {
				column = append(column, j)
			}
		}
		at := make([]float64, len(column))
		for n, j := range column {
			at[n] = ys[j]
		}
		for n, y := range apart(at, labelFont.size+1, p.y.to+labelFont.size, p.y.from-2) {
			if column[n] == i {
				moved[i] = y
			}
		}
	}
	return moved
}

// directLabels writes each name at the end of its line, separating names that would overlap.
func (c LineChart) directLabels(f *Figure, p plot) {
	type tag struct {
		line Line
		x, y float64
	}
	var tags []tag
	for _, l := range c.Lines {
		x, y, seen := 0.0, 0.0, false
		for i := range min(len(l.X), len(l.Y)) {
			if p.x.fits(l.X[i]) && p.y.fits(l.Y[i]) {
				x, y, seen = p.x.inside(l.X[i]), p.y.inside(l.Y[i]), true
			}
		}
		if seen {
			tags = append(tags, tag{l, x, y})
		}
	}
	ys := make([]float64, len(tags))
	for i, t := range tags {
		ys[i] = t.y
	}
	ys = apart(ys, labelFont.size+1, p.y.to, p.y.from)
	for i, t := range tags {
		font := labelFont
		name := shorten(t.line.Name, font, f.Width-p.x.to-8)
		if t.y-ys[i] > 2 || ys[i]-t.y > 2 {
			f.lines([]point{{p.x.to + 1, t.y}, {p.x.to + 5, ys[i]}}, seriesPaint(t.line.Color), 1, nil)
		}
		f.label(p.x.to+7, ys[i]+font.drop(), name, font, start)
	}
}

// legend are the names and styles of the series; a single series needs none, because the axis names it.
func (c LineChart) legend() []key {
	var keys []key
	for _, l := range c.Lines {
		if l.Name == "" {
			continue
		}
		dash := Dash(l.Color)
		if l.Dashed {
			dash = []float64{4, 3}
		}
		keys = append(keys, key{name: l.Name, series: l.Color, dash: dash, marker: l.Markers, line: true})
	}
	if len(keys) == 1 {
		return nil
	}
	return keys
}

package figure

import (
	"cmp"
	"slices"
)

// plot is the frame around lines and bars.
type plot struct {
	x, y           scale
	xAxis, yAxis   Axis
	xTicks, yTicks []float64
	under          float64 // height of the content below the frame
}

// newPlot lays out a frame: the y label above it, y ticks to its left, x ticks and the x label below it.
func newPlot(f *Figure, x, y Axis, xs, ys []float64, top, height, right float64) plot {
	p := plot{xAxis: x, yAxis: y}
	if y.Label != "" {
		f.label(0, top+labelFont.size, shorten(y.Label, quietFont, f.Width), quietFont, start)
		top += quietFont.lineHeight() + 4
	}
	top += 4
	p.y = y.scale(ys, top+height, top)
	p.yTicks = y.ticks(p.y, int(height/34))
	left := 0.0
	for _, v := range p.yTicks {
		left = max(left, textWidth(Number(v), quietFont))
	}
	p.x = x.scale(xs, left+8, f.Width-right)
	p.xTicks = spaced(x.ticks(p.x, int((p.x.to-p.x.from)/52)), p.x)
	p.under = quietFont.lineHeight() + 4
	if x.Label != "" {
		p.under += quietFont.lineHeight()
	}
	return p
}

// spaced drops tick labels that would touch the previous one.
func spaced(ticks []float64, s scale) []float64 {
	var kept []float64
	last := -1e9
	for _, v := range ticks {
		half := textWidth(Number(v), quietFont) / 2
		if s.at(v)-half > last+6 {
			kept, last = append(kept, v), s.at(v)+half
		}
	}
	return kept
}

func (p plot) bounds() box { return box{p.x.from, p.y.to, p.x.to, p.y.from} }

func (p plot) bottom() float64 { return p.y.from + p.under }

// grid draws rules, tick labels and the label of the x axis.
func (p plot) grid(f *Figure) {
	for _, v := range p.yTicks {
		y := p.y.at(v)
		f.lines([]point{{p.x.from, y}, {p.x.to, y}}, "rule", 1, nil)
		f.label(p.x.from-6, y+quietFont.drop(), Number(v), quietFont, end)
	}
	f.lines([]point{{p.x.from, p.y.from}, {p.x.to, p.y.from}}, "strong", 1, nil)
	for _, v := range p.xTicks {
		x := p.x.at(v)
		f.lines([]point{{x, p.y.from}, {x, p.y.from + 4}}, "strong", 1, nil)
		half := textWidth(Number(v), quietFont) / 2
		f.label(min(max(x, half), f.Width-half), p.y.from+quietFont.lineHeight(), Number(v), quietFont, middle)
	}
	if p.xAxis.Label != "" {
		f.label((p.x.from+p.x.to)/2, p.y.from+2*quietFont.lineHeight(), shorten(p.xAxis.Label, quietFont, f.Width), quietFont, middle)
	}
}

// key is a legend entry.
type key struct {
	name   string
	series int
	dash   []float64
	marker bool
	line   bool // a line; otherwise a filled square
}

// legend draws keys in rows from y and returns the y below them.
func (f *Figure) legend(y float64, keys []key) float64 {
	if len(keys) == 0 {
		return y
	}
	x := 0.0
	for _, k := range keys {
		sample := 11.0
		if k.line {
			sample = 20
		}
		w := sample + 5 + textWidth(k.name, labelFont)
		if x > 0 && x+w > f.Width {
			x, y = 0, y+labelFont.lineHeight()+2
		}
		f.sample(k, x, y+8, sample)
		f.label(x+sample+5, y+8+labelFont.drop(), k.name, labelFont, start)
		x += w + 14
	}
	return y + labelFont.lineHeight() + 4
}

func (f *Figure) sample(k key, x, y, w float64) {
	if !k.line {
		f.rect(x, y-5.5, w, 11, seriesPaint(k.series), "")
		return
	}
	f.lines([]point{{x, y}, {x + w, y}}, seriesPaint(k.series), 1.75, k.dash)
	if k.marker {
		f.marker(point{x + w/2, y}, k.series, 3.2, "")
	}
}

// apart moves positions, approximately as little as possible, so that neighbours are at least gap apart and all lie between low and high.
func apart(at []float64, gap, low, high float64) []float64 {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	moved := slices.Clone(at)
	for i, k := range order {
		if i > 0 {
			moved[k] = max(moved[k], moved[order[i-1]]+gap)
		}
	}
	ceiling := high
	for i := len(order) - 1; i >= 0; i-- {
		moved[order[i]] = min(moved[order[i]], ceiling)
		ceiling = moved[order[i]] - gap
	}
	if len(order) > 0 && moved[order[0]] < low {
		floor := low
		for _, k := range order {
			moved[k] = max(moved[k], floor)
			floor = moved[k] + gap
		}
	}
	return moved
}

type box struct{ x0, y0, x1, y1 float64 }

func (b box) has(p point) bool {
	const edge = 1e-6
	return p.x >= b.x0-edge && p.x <= b.x1+edge && p.y >= b.y0-edge && p.y <= b.y1+edge
}

// clip clips a line to a box and returns the pieces inside.
func clip(points []point, b box) [][]point {
	var pieces [][]point
	var piece []point
	for i := 1; i < len(points); i++ {
		from, to, ok := clipSegment(points[i-1], points[i], b)
		if !ok {
			continue
		}
		if len(piece) == 0 || piece[len(piece)-1] != from {
			if len(piece) > 1 {
				pieces = append(pieces, piece)
			}
			piece = []point{from}
		}
		piece = append(piece, to)
	}
	if len(piece) > 1 {
		pieces = append(pieces, piece)
	}
	return pieces
}

// clipSegment is the part of a segment inside a box (Liang and Barsky 1984).
func clipSegment(a, b point, within box) (from, to point, ok bool) {
	t0, t1 := 0.0, 1.0
	dx, dy := b.x-a.x, b.y-a.y
	for _, side := range [4][2]float64{{-dx, a.x - within.x0}, {dx, within.x1 - a.x}, {-dy, a.y - within.y0}, {dy, within.y1 - a.y}} {
		p, q := side[0], side[1]
		switch {
		case p == 0 && q < 0:
			return a, b, false
		case p < 0:
			t0 = max(t0, q/p)
		case p > 0:
			t1 = min(t1, q/p)
		}
	}
	if t0 > t1 {
		return a, b, false
	}
	at := func(t float64) point {
		switch t {
		case 0:
			return a
		case 1:
			return b
		}
		return point{a.x + t*dx, a.y + t*dy}
	}
	return at(t0), at(t1), true
}

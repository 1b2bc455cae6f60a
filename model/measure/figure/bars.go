package figure

import (
	"fmt"
	"strings"
)

// BarChart draws groups of bars from zero, with error bars for given intervals.
type BarChart struct {
	Name, Title   string
	Desc          string // empty to generate it from the values
	Note          string
	Groups        []string // names below the axis
	Bars          []Bars
	Y             Axis
	Width, Height float64 // Width of the figure and Height of its plot; 0 for 360 and 200
	Values        bool    // writes each value above its bar if it fits
	Empty         string  // sentence shown if there is nothing to draw
}

// Bars is one series: a value for every group, with the ends of its interval if known.
type Bars struct {
	Name      string
	Value     []float64
	Low, High []float64
	Each      [][]float64 // [group] individual values behind each bar, drawn as points
	Color     int
	Colors    []int // of individual bars, for instance those of slots; overrides Color
}

// Draw draws the chart.
func (c BarChart) Draw() Figure {
	f := Figure{Name: c.Name, Title: c.Title, Desc: c.Desc, Width: orElse(c.Width, 360)}
	if f.Desc == "" {
		f.Desc = c.describe()
	}
	values, left := c.values()
	if len(values) == 0 {
		return f.nothing(orSentence(c.Empty), orElse(c.Height, 200))
	}
	y := f.heading()
	if len(c.Bars) > 1 {
		var keys []key
		for _, s := range c.Bars {
			keys = append(keys, key{name: s.Name, series: s.Color})
		}
		y = f.legend(y, keys)
	}
	p := newPlot(&f, Axis{Range: [2]float64{0, float64(len(c.Groups))}, Ticks: []float64{-1}}, c.Y, nil, append(values, 0), y, orElse(c.Height, 200), 0)
	p.grid(&f)
	for g := range c.Groups {
		c.group(&f, p, g)
	}
	f.footing(c.names(&f, p), join(c.Note, leftOut(left)))
	return f
}

// values are all values that bars and error bars reach, and the number of values that cannot be drawn.
func (c BarChart) values() (all []float64, left int) {
	for _, s := range c.Bars {
		for g := range min(len(s.Value), len(c.Groups)) {
			if !finite(s.Value[g]) {
				left++
				continue
			}
			all = append(all, s.Value[g])
			if low, high, ok := s.interval(g); ok {
				all = append(all, low, high)
			}
			if g < len(s.Each) {
				all = append(all, s.Each[g]...)
			}
		}
	}
	return all, left
}

func (s Bars) interval(g int) (low, high float64, ok bool) {
	if g >= len(s.Low) || g >= len(s.High) || !finite(s.Low[g]) || !finite(s.High[g]) {
		return 0, 0, false
	}
	return s.Low[g], s.High[g], true
}

func (c BarChart) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Bars of %s.", c.Y.Label)
	for _, s := range c.Bars {
		for g := range min(len(s.Value), len(c.Groups)) {
			fmt.Fprintf(&b, " %s: %s.", strings.TrimSpace(c.Groups[g]+" "+s.Name), Number(s.Value[g]))
		}
	}
	return b.String()
}

func (c BarChart) group(f *Figure, p plot, g int) {
	span := (p.x.to - p.x.from) / float64(len(c.Groups))
	width := min(span*0.82/float64(len(c.Bars)), 44)
	x := p.x.from + span*(float64(g)+0.5) - width*float64(len(c.Bars))/2
	for _, s := range c.Bars {
		if g < len(s.Value) && finite(s.Value[g]) {
			c.bar(f, p, s, g, x, width)
		}
		x += width
	}
}

func (c BarChart) bar(f *Figure, p plot, s Bars, g int, x, width float64) {
	series := s.Color
	if g < len(s.Colors) {
		series = s.Colors[g]
	}
	zero, y := p.y.inside(0), p.y.inside(s.Value[g])
	tip := fmt.Sprintf("%s: %s", strings.TrimSpace(c.Groups[g]+" "+s.Name), Number(s.Value[g]))
	low, high, known := s.interval(g)
	if known {
		tip += fmt.Sprintf(", from %s to %s", Number(low), Number(high))
	}
	f.rect(x+0.5, min(zero, y), max(width-1, 0.5), max(zero, y)-min(zero, y), seriesPaint(series), tip)
	top := min(zero, y)
	if known {
		top = min(top, p.y.inside(high))
		f.errorBar(x+width/2, p.y.inside(low), p.y.inside(high), min(width*0.3, 5))
	}
	if g < len(s.Each) {
		s.points(f, p, g, x, width, c.Groups[g])
	}
	if text := Number(s.Value[g]); c.Values && textWidth(text, cellFont) < width+4 {
		f.label(x+width/2, top-3, text, cellFont, middle)
	}
}

// points draws the individual values of a bar side by side, so that equal ones do not hide each other.
func (s Bars) points(f *Figure, p plot, g int, x, width float64, group string) {
	n := float64(len(s.Each[g]))
	for i, v := range s.Each[g] {
		if finite(v) {
			f.hollow(point{x + width*(float64(i)+0.5)/n, p.y.inside(v)}, "ink", fmt.Sprintf("%s, one of %d: %s", strings.TrimSpace(group+" "+s.Name), len(s.Each[g]), Number(v)))
		}
	}
}

func (f *Figure) errorBar(x, low, high, half float64) {
	f.lines([]point{{x, low}, {x, high}}, "ink", 1.2, nil)
	for _, y := range []float64{low, high} {
		f.lines([]point{{x - half, y}, {x + half, y}}, "ink", 1.2, nil)
	}
}

// names writes the group names below the axis, in lines if words fit, else slanted; it returns the y below them.
func (c BarChart) names(f *Figure, p plot) float64 {
	span := (p.x.to - p.x.from) / float64(len(c.Groups))
	lines, slanted, longest := 1, false, 0.0
	for _, name := range c.Groups {
		longest = max(longest, textWidth(name, quietFont))
		wrapped := wrap(name, quietFont, span-4)
		lines = max(lines, len(wrapped))
		for _, line := range wrapped {
			slanted = slanted || textWidth(line, quietFont) > span-2
		}
	}
	for g, name := range c.Groups {
		x, y := p.x.from+span*(float64(g)+0.5), p.y.from+quietFont.lineHeight()
		if slanted {
			f.marks = append(f.marks, mark{kind: textMark, points: []point{{x + 4, p.y.from + 12}}, text: name, font: quietFont, anchor: end, angle: -40})
			continue
		}
		for i, line := range wrap(name, quietFont, span-4) {
			f.label(x, y+float64(i)*quietFont.lineHeight(), line, quietFont, middle)
		}
	}
	if slanted {
		return p.y.from + 16 + longest*0.65
	}
	return p.y.from + float64(lines)*quietFont.lineHeight() + 6
}

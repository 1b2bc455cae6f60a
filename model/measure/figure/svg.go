package figure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"math"
	"strconv"
	"strings"
)

// SVG is the drawing as a standalone XML file; it follows the reader's light or dark scheme and prints in the light scheme.
func (f Figure) SVG() []byte {
	w := svgWriter{used: map[paint]bool{"paper": true}}
	w.marks(f)
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<svg xmlns="http://www.w3.org/2000/svg" %s font-family="%s">`, w.frame(f, margin), sans)
	fmt.Fprintf(&b, `%s<style>%s</style><rect class="f-paper" fill="%s" x="-%s" y="-%s" width="%s" height="%s"/>`,
		names(f), ownStyle(w.used), shades["paper"].light, num(margin), num(margin), num(f.Width+2*margin), num(f.Height+2*margin))
	b.WriteString(w.b.String() + "</svg>\n")
	return []byte(b.String())
}

// Inline is the drawing as an element for a page with static/shared/figure.css. Its text is escaped.
func (f Figure) Inline() string {
	w := svgWriter{used: map[paint]bool{}}
	w.marks(f)
	return fmt.Sprintf(`<svg class="figure" %s>%s%s</svg>`, w.frame(f, 0), names(f), w.b.String())
}

const sans = "ui-sans-serif, system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"

// margin is the space around a standalone drawing, in pixels.
const margin = 8.0

func (svgWriter) frame(f Figure, margin float64) string {
	w, h := num(f.Width+2*margin), num(f.Height+2*margin)
	return fmt.Sprintf(`width="%s" height="%s" viewBox="%s %s %s %s" role="img" aria-labelledby="%s-title %s-desc"`,
		w, h, num(-margin), num(-margin), w, h, escape(f.Name), escape(f.Name))
}

func names(f Figure) string {
	return fmt.Sprintf(`<title id="%s-title">%s</title><desc id="%s-desc">%s</desc>`, escape(f.Name), escape(f.Title), escape(f.Name), escape(f.Desc))
}

type svgWriter struct {
	b    strings.Builder
	used map[paint]bool
}

func (w *svgWriter) marks(f Figure) {
	for _, m := range f.marks {
		switch m.kind {
		case linesMark:
			w.element("path", m, fmt.Sprintf(`d="%s"`, pathData(m.points, false)))
		case areaMark:
			w.element("path", m, fmt.Sprintf(`d="%s"`, pathData(m.points, true)))
		case circleMark:
			w.element("circle", m, fmt.Sprintf(`cx="%s" cy="%s" r="%s"`, num(m.points[0].x), num(m.points[0].y), num(m.radius)))
		case textMark:
			w.text(m)
		case imageMark:
			w.image(m)
		}
	}
}

// element writes an element with fill and stroke, and with the tooltip as its title.
func (w *svgWriter) element(name string, m mark, attributes string) {
	fmt.Fprintf(&w.b, "<%s %s", name, attributes)
	var classes []string
	if m.fill != "" {
		classes = append(classes, w.use("f-", m.fill))
		fmt.Fprintf(&w.b, ` fill="%s"`, shades[m.fill].light)
	} else {
		w.b.WriteString(` fill="none"`)
	}
	if m.stroke != "" {
		classes = append(classes, w.use("k-", m.stroke))
		fmt.Fprintf(&w.b, ` stroke="%s" stroke-width="%s" stroke-linejoin="round"`, shades[m.stroke].light, num(m.width))
	}
	if len(classes) > 0 {
		fmt.Fprintf(&w.b, ` class="%s"`, strings.Join(classes, " "))
	}
	if len(m.dash) > 0 {
		dash := make([]string, len(m.dash))
		for i, v := range m.dash {
			dash[i] = num(v)
		}
		fmt.Fprintf(&w.b, ` stroke-dasharray="%s"`, strings.Join(dash, " "))
	}
	if m.opacity != 0 && m.opacity != 1 {
		fmt.Fprintf(&w.b, ` fill-opacity="%s"`, num(m.opacity))
	}
	if m.tip == "" {
		w.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&w.b, "><title>%s</title></%s>", escape(m.tip), name)
}

func (w *svgWriter) use(prefix string, p paint) string {
	w.used[p] = true
	return prefix + string(p)
}

func (w *svgWriter) text(m mark) {
	at := m.points[0]
	fmt.Fprintf(&w.b, `<text x="%s" y="%s" font-size="%s" class="%s" fill="%s"`, num(at.x), num(at.y), num(m.font.size), w.use("f-", m.font.paint), shades[m.font.paint].light)
	if m.font.strong {
		w.b.WriteString(` font-weight="600"`)
	}
	if m.anchor != start {
		fmt.Fprintf(&w.b, ` text-anchor="%s"`, [...]string{middle: "middle", end: "end"}[m.anchor])
	}
	if m.angle != 0 {
		fmt.Fprintf(&w.b, ` transform="rotate(%s %s %s)"`, num(m.angle), num(at.x), num(at.y))
	}
	if m.tip != "" {
		fmt.Fprintf(&w.b, "><title>%s</title>%s</text>", escape(m.tip), escape(m.text))
		return
	}
	fmt.Fprintf(&w.b, ">%s</text>", escape(m.text))
}

func (w *svgWriter) image(m mark) {
	var file bytes.Buffer
	if err := png.Encode(&file, m.picture); err != nil {
		panic(fmt.Sprintf("figure: encoding an image as PNG: %v", err)) // fails only for sizes of 0 or above 2³²
	}
	a, b := m.points[0], m.points[1]
	fmt.Fprintf(&w.b, `<image x="%s" y="%s" width="%s" height="%s" image-rendering="pixelated" preserveAspectRatio="none" href="data:image/png;base64,%s">`,
		num(a.x), num(a.y), num(b.x-a.x), num(b.y-a.y), base64.StdEncoding.EncodeToString(file.Bytes()))
	fmt.Fprintf(&w.b, "<title>%s</title></image>", escape(m.tip))
}

func pathData(points []point, closed bool) string {
	var b strings.Builder
	for i, p := range points {
		b.WriteString([]string{"L", "M"}[b2i(i == 0)] + num(p.x) + " " + num(p.y))
	}
	if closed {
		b.WriteString("Z")
	}
	return b.String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// num writes a coordinate with at most two decimals.
func num(v float64) string {
	if !finite(v) {
		panic(fmt.Sprintf("figure: a coordinate is %v", v)) // charts omit non-finite values
	}
	v = math.Round(v*100) / 100
	if v == 0 {
		v = 0 // never "-0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// escape makes text safe in content and attributes; it drops characters that XML forbids.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF || r == 0xFFFD {
			return -1
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}

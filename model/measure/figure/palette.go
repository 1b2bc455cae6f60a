package figure

import (
	"fmt"
	"image/color"
	"math"
	"strings"
)

// paint is the name of a colour that depends on the reader's scheme. The classes f-NAME and k-NAME fill and stroke with it.
type paint string

// shade is a paint's colours in the light and in the dark scheme, as #rrggbb.
type shade struct{ light, dark string }

// Slots is the number of slot colours. Series start with the same colours in the same order and repeat after Series colours; each group of
// nine has a different dash pattern.
const (
	Slots  = 9
	Series = 20
)

// heatSteps is the number of colours of a heat map.
const heatSteps = 21

// order lists all paints; shades are their colours. Neutrals, accent and slots are the tokens of static/shared/base.css.
var order, shades = palette()

func palette() ([]paint, map[paint]shade) {
	var order []paint
	all := map[paint]shade{}
	add := func(name string, light, dark string) {
		order = append(order, paint(name))
		all[paint(name)] = shade{light, dark}
	}
	add("ink", "#17181a", "#e9e9e6")
	add("quiet", "#5b5e63", "#a0a4aa")
	add("rule", "#dddcd7", "#2b2e32")
	add("strong", "#8e8e88", "#6b7077")
	add("paper", "#fbfbf9", "#131416")
	add("sunk", "#f1f1ee", "#0d0e10")
	add("accent", "#00706b", "#43cfc3")
	for i, s := range []shade{
		{"#0072b2", "#3a9fdc"}, {"#e69f00", "#e69f00"}, {"#009e73", "#1fb98e"}, {"#cc79a7", "#cc79a7"}, {"#56b4e9", "#56b4e9"},
		{"#d55e00", "#ee7a26"}, {"#c9b800", "#f0e442"}, {"#7a7a7a", "#a6a6a6"}, {"#1c1c1c", "#efefef"},
		// each colour is the furthest in OKLab, in the worse of both schemes, from all previous ones
		{"#6403c4", "#8d4df9"}, {"#1c500e", "#5d7358"}, {"#ab3db3", "#f798fd"}, {"#ba022f", "#de394b"}, {"#2f2667", "#716db5"}, {"#686800", "#93953e"},
		{"#541e29", "#a0636d"}, {"#890185", "#bb44b4"}, {"#8d73d1", "#ab91f2"}, {"#1d4ce9", "#4074fb"}, {"#908930", "#cbc88b"},
	} {
		add(fmt.Sprint("s", i), s.light, s.dark)
	}
	for i := range heatSteps {
		t := float64(i) / (heatSteps - 1)
		light, dark := lightHeat(t), darkHeat(t)
		add(fmt.Sprint("h", i), light, dark)
		add(fmt.Sprint("t", i), readable(light), readable(dark))
		light, dark = lightSigned(2*t-1), darkSigned(2*t-1)
		add(fmt.Sprint("sh", i), light, dark)
		add(fmt.Sprint("st", i), readable(light), readable(dark))
	}
	return order, all
}

// The heat scale has equal steps of lightness in OKLCH, so that equal differences look equal and the order is preserved under any colour
// vision and in grey print. Higher values are darker in the light scheme and brighter in the dark scheme.
func lightHeat(t float64) string { return oklch(0.965-0.615*t, 0.008+0.082*t, 195+25*t) }
func darkHeat(t float64) string  { return oklch(0.215+0.685*t, 0.012+0.088*t, 225-35*t) }

// The signed scale has the page's colour at 0, orange below and blue above it; v and −v have the same lightness.
func lightSigned(v float64) string {
	return oklch(0.97-0.5*math.Abs(v), 0.004+0.106*math.Abs(v), hueOf(v))
}
func darkSigned(v float64) string {
	return oklch(0.2+0.58*math.Abs(v), 0.004+0.106*math.Abs(v), hueOf(v))
}

func hueOf(v float64) float64 {
	if v < 0 {
		return 55
	}
	return 235
}

// oklch converts a colour of Ottosson's OKLab (2020), given by lightness, chroma and hue in degrees, clipped to sRGB.
func oklch(l, c, h float64) string {
	a, b := c*math.Cos(h*math.Pi/180), c*math.Sin(h*math.Pi/180)
	cube := func(v float64) float64 { return v * v * v }
	x := cube(l + 0.3963377774*a + 0.2158037573*b)
	y := cube(l - 0.1055613458*a - 0.0638541728*b)
	z := cube(l - 0.0894841775*a - 1.2914855480*b)
	channel := func(linear float64) int {
		v := 12.92 * linear
		if linear > 0.0031308 {
			v = 1.055*math.Pow(linear, 1/2.4) - 0.055
		}
		return int(math.Round(255 * min(max(v, 0), 1)))
	}
	return fmt.Sprintf("#%02x%02x%02x",
		channel(4.0767416621*x-3.3077115913*y+0.2309699292*z),
		channel(-1.2684380046*x+2.6097574011*y-0.3413193965*z),
		channel(-0.0041960863*x-0.7034186147*y+1.7076147010*z))
}

// readable is black or white, whichever has more contrast with a background; at least 4.5:1.
func readable(background string) string {
	l := luminance(background)
	if (l+0.05)/0.05 > 1.05/(l+0.05) {
		return "#000000"
	}
	return "#ffffff"
}

// luminance is the relative luminance of WCAG 2, from 0 to 1.
func luminance(hex string) float64 {
	c := rgba(hex)
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

func rgba(hex string) color.RGBA {
	var c color.RGBA
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
		panic(fmt.Sprintf("figure: %q is not a colour: %v", hex, err))
	}
	c.A = 255
	return c
}

// heat is the step of the scale for t from 0 to 1; values outside are clipped.
func heat(t float64) int { return int(math.Round(min(max(t, 0), 1) * (heatSteps - 1))) }

// Heat is the step of the heat scale for t from 0 to 1, as in the class names f-hN and k-hN, with text in f-tN.
func Heat(t float64) int { return heat(t) }

// seriesPaint and Dash distinguish series: no two of the first 40 have the same combination.
func seriesPaint(i int) paint { return paint(fmt.Sprint("s", i%Series)) }

// Dash is the dash pattern of series i, nil for a solid line.
func Dash(i int) []float64 {
	return [][]float64{nil, {6, 3}, {2, 3}, {8, 3, 2, 3}}[i/Slots%4]
}

func slotPaint(i int) paint { return paint(fmt.Sprint("s", i%Slots)) }

// CSS is the style sheet for figures inside pages: static/shared/figure.css.
func CSS() string {
	var b strings.Builder
	b.WriteString("/* Generated by the test of model/measure/figure from its palette; edit it there. */\n@layer components {\n")
	b.WriteString("  .figure { display: block; max-inline-size: 100%; block-size: auto; font-family: var(--sans); font-variant-numeric: tabular-nums; }\n")
	b.WriteString("  .figure image { image-rendering: pixelated; }\n")
	for _, p := range order {
		s := shades[p]
		both := s.light
		if s.light != s.dark {
			both = fmt.Sprintf("light-dark(%s, %s)", s.light, s.dark)
		}
		fmt.Fprintf(&b, "  .f-%s { fill: %s; } .k-%s { stroke: %s; }\n", p, both, p, both)
	}
	b.WriteString("  @media print { .figure { color-scheme: light; } }\n}\n")
	return b.String()
}

// ownStyle is the style of a standalone figure; its attributes already have the light colours.
func ownStyle(used map[paint]bool) string {
	var b strings.Builder
	b.WriteString("svg{color-scheme:light dark;font-variant-numeric:tabular-nums}image{image-rendering:pixelated}@media screen and (prefers-color-scheme:dark){")
	for _, p := range order {
		if s := shades[p]; used[p] && s.light != s.dark {
			fmt.Fprintf(&b, ".f-%s{fill:%s}.k-%s{stroke:%s}", p, s.dark, p, s.dark)
		}
	}
	return b.String() + "}"
}

// linear reverses the gamma of sRGB: a channel's linear intensity, from 0 to 1.
func linear(v uint8) float64 {
	s := float64(v) / 255
	if s <= 0.04045 {
		return s / 12.92
	}
	return math.Pow((s+0.055)/1.055, 2.4)
}

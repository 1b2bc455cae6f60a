package figure

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// The Go fonts draw the text of PNG files, and measure the text of PNG and SVG.
var regular, bold = sync.OnceValue(func() *sfnt.Font { return parseFont(goregular.TTF) }), sync.OnceValue(func() *sfnt.Font { return parseFont(gobold.TTF) })

func parseFont(ttf []byte) *sfnt.Font {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		panic(fmt.Sprintf("figure: parsing the embedded font: %v", err))
	}
	return f
}

func (f font) face() *sfnt.Font {
	if f.strong {
		return bold()
	}
	return regular()
}

// roomy is the width of the widest common sans-serif font relative to the Go font, because readers may see an SVG in it.
const roomy = 1.18

// textWidth is the width in pixels to reserve for text.
func textWidth(text string, f font) float64 { return roomy * advance(text, f) }

// advance is the width of text in the Go font, in pixels.
func advance(text string, f font) float64 {
	var buf sfnt.Buffer
	face, ppem := f.face(), fixed.Int26_6(f.size*64)
	var sum fixed.Int26_6
	for _, r := range text {
		a, err := face.GlyphAdvance(&buf, glyph(face, &buf, r), ppem, 0)
		if err != nil {
			panic(fmt.Sprintf("figure: measuring %q: %v", text, err))
		}
		sum += a
	}
	return float64(sum) / 64
}

// glyph is the glyph index of a character, or of a question mark if the font lacks it.
func glyph(face *sfnt.Font, buf *sfnt.Buffer, r rune) sfnt.GlyphIndex {
	i, err := face.GlyphIndex(buf, r)
	if err != nil || i == 0 {
		i, _ = face.GlyphIndex(buf, '?')
	}
	return i
}

// wrap breaks text at spaces into lines no wider than width; a single word can be wider.
func wrap(text string, f font, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && textWidth(longer, f) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	return append(lines, line)
}

// shorten truncates text to width, with an ellipsis.
func shorten(text string, f font, width float64) string {
	if textWidth(text, f) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 1 && textWidth(string(runes)+"…", f) > width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimSpace(string(runes)) + "…"
}

package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slotscope/model/measure/figure"
)

var update = flag.Bool("update", false, "rewrite the golden files and static/shared/figure.css")

var nan, inf = math.NaN(), math.Inf(1)

// figures has one figure of each kind, with difficult input: gaps, infinities, zeros on logarithmic axes, markup in names.
func figures() []figure.Figure {
	return []figure.Figure{noise().Draw(), capacity().Draw(), scores().Draw(), information().Draw(), sheet().Draw()}
}

func noise() figure.LineChart {
	x := []float64{20, 10, 0, -10, -20}
	return figure.LineChart{
		Name: "noise", Title: "PSNR under noise", Note: "10,000 images, 5 seeds; the band is the 95 % interval.",
		X: figure.Axis{Label: "SNR, dB"}, Y: figure.Axis{Label: "PSNR, dB"},
		Lines: []figure.Line{
			{Name: "HRR", X: x, Y: []float64{41, 40, 33, 20, 12}, Low: []float64{37, 36, 30, 18, 11}, High: []float64{45, 44, 36, 22, 13}, Markers: true},
			{Name: "QLAE <b>&", X: x, Y: []float64{38, nan, 28, 17, inf}, Color: 1, Markers: true},
			{Name: "tenth", X: x, Y: []float64{30, 29, 24, 15, 10}, Color: 9},
		},
		References: []figure.Reference{{At: 35, Label: "clean"}},
	}
}

func capacity() figure.LineChart {
	c := figure.LineChart{
		Name: "capacity", Title: "Capacity of the latent", Direct: true, Width: 640, Height: 260,
		X: figure.Axis{Label: "slots m", Log: true}, Y: figure.Axis{Label: "nats", Log: true},
		Dots:       []figure.Dot{{X: 9, Y: 56, Label: "run a", Color: 5}},
		References: []figure.Reference{{Vertical: true, At: 9, Label: "m = 9"}},
	}
	for i, d := range []float64{128, 256, 512} {
		l := figure.Line{Name: fmt.Sprintf("d = %v", d), Color: i}
		for m := 0.0; m <= 64; m++ {
			l.X, l.Y = append(l.X, m), append(l.Y, m*d/2*math.Log1p(1/m))
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

func scores() figure.BarChart {
	return figure.BarChart{
		Name: "scores", Title: "InfoMEC", Groups: []string{"InfoM", "InfoE", "InfoC"}, Y: figure.Axis{Label: "score", Range: [2]float64{0, 1}}, Values: true,
		Bars: []figure.Bars{
			{Name: "HRR", Value: []float64{0.85, 0.99, 0.61}, Low: []float64{0.8, 0.98, 0.55}, High: []float64{0.9, 1, 0.67}},
			{Name: "VQ-VAE", Value: []float64{0.5, nan, 0.4}, Color: 1},
		},
	}
}

func information() figure.HeatMap {
	return figure.HeatMap{
		Name: "nmi", Title: "What each slot says about each factor", Corner: "factor", Range: [2]float64{0, 1},
		Rows: []string{"floor hue", "wall hue", "orientation"}, Columns: []string{"slot 0", "slot 1", "slot 2", "slot 3"}, Colors: []int{0, 1, 2, 3},
		Value:  [][]float64{{0.93, 0.02, 0, nan}, {0.01, 0.97, 0.1, 0.5}, {0.05, 0.04, 0.44, -inf}},
		Marked: func(i, j int) bool { return i == j }, Muted: func(_, j int) bool { return j == 3 },
		Note: "10,000 images. Slot 3 takes one code only.",
	}
}

func sheet() figure.ImageGrid {
	tile := func(c color.Color) image.Image {
		img := image.NewRGBA(image.Rect(0, 0, 4, 4))
		for i := range 4 {
			img.Set(i, i, c)
		}
		return img
	}
	return figure.ImageGrid{
		Name: "swaps", Title: "Swaps", Scale: 12, Rows: []string{"A", "B"}, Columns: []string{"image", "slot 0", "slot 1"}, Colors: []int{8, 0, 1},
		Images:   [][]image.Image{{tile(color.Black), tile(color.RGBA{255, 0, 0, 255}), nil}, {tile(color.White), nil, tile(color.RGBA{0, 0, 255, 255})}},
		Captions: [][]string{{"", "3 % changed"}},
	}
}

// TestGolden compares every byte of one figure of each kind; -update rewrites the files, which must then be inspected.
func TestGolden(t *testing.T) {
	for _, f := range figures() {
		golden(t, filepath.Join("testdata", f.Name+".svg"), f.SVG())
		file, err := f.PNG(2)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", f.Name+".png"), file)
	}
}

// TestStyleSheet: the style sheet of the pages matches the palette.
func TestStyleSheet(t *testing.T) {
	golden(t, "../../../static/shared/figure.css", []byte(figure.CSS()))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".png") {
		samePixels(t, name, got, want)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s: the figure has changed; look at it, then run with -update", name)
	}
}

// samePixels compares pixels, not files, because another Go release may compress differently.
func samePixels(t *testing.T, name string, got, want []byte) {
	t.Helper()
	a, errA := png.Decode(bytes.NewReader(got))
	b, errB := png.Decode(bytes.NewReader(want))
	if err := errors.Join(errA, errB); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if a.Bounds() != b.Bounds() {
		t.Fatalf("%s is %v, want %v", name, a.Bounds(), b.Bounds())
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if far(a.At(x, y), b.At(x, y)) {
				t.Fatalf("%s differs at (%d, %d): %v, want %v", name, x, y, a.At(x, y), b.At(x, y))
			}
		}
	}
}

// far tolerates a difference of two of 255 for rounding on another processor.
func far(a, b color.Color) bool {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	d := func(x, y uint32) bool { return math.Abs(float64(x)-float64(y)) > 2*257 }
	return d(ar, br) || d(ag, bg) || d(ab, bb)
}

// TestWellFormed: both forms are XML with a role, a title and a description, and contain no NaN.
func TestWellFormed(t *testing.T) {
	for _, f := range figures() {
		for form, text := range map[string]string{"alone": string(f.SVG()), "inline": f.Inline()} {
			count := elements(t, text)
			if count["svg"] != 1 || count["title"] < 1 || count["desc"] != 1 {
				t.Errorf("%s %s has %d svg, %d title, %d desc", f.Name, form, count["svg"], count["title"], count["desc"])
			}
			for _, want := range []string{`role="img"`, `aria-labelledby="` + f.Name + `-title ` + f.Name + `-desc"`} {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s lacks %s", f.Name, form, want)
				}
			}
			for _, bad := range []string{"NaN", `"-0"`, "<b>"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s %s contains %s", f.Name, form, bad)
				}
			}
		}
		if inline := f.Inline(); strings.Contains(inline, "style=") || strings.Contains(inline, "<style") {
			t.Errorf("%s has an inline style, which the page's security policy blocks", f.Name)
		}
		if !bytes.Equal(f.SVG(), f.SVG()) {
			t.Errorf("%s differs between two drawings", f.Name)
		}
	}
}

// elements counts the elements of well-formed XML by name.
func elements(t *testing.T, text string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("not XML: %v in %.300s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

// TestCounts: there is one bar, cell and image per drawable value, and the note counts the others.
func TestCounts(t *testing.T) {
	if text := words(noise().Draw()); !strings.Contains(text, "2 values cannot be drawn and are omitted.") {
		t.Error("the two values of QLAE that are not finite are not counted")
	}
	if text := words(capacity().Draw()); !strings.Contains(text, "3 values cannot be drawn") {
		t.Error("the three zeros on a logarithmic axis are not counted")
	}
	text := string(information().Draw().SVG())
	for _, want := range []string{"<title>floor hue, slot 0: 0.93</title>", "<title>floor hue, slot 3: –</title>", ">0.97</text>"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q occurs %d times", want, strings.Count(text, want))
		}
	}
	if n := elements(t, string(sheet().Draw().SVG()))["image"]; n != 4 {
		t.Errorf("%d images, want 4", n)
	}
	if n := strings.Count(string(scores().Draw().SVG()), "<title>Info"); n != 5 {
		t.Errorf("%d bars, want 5", n)
	}
}

// words is the text of a figure in one string.
func words(f figure.Figure) string {
	return regexp.MustCompile(`(\s*<[^>]*>\s*)+`).ReplaceAllString(f.Inline(), " ")
}

// TestEmpty: without data, the figure shows a sentence.
func TestEmpty(t *testing.T) {
	for name, f := range map[string]figure.Figure{
		"lines":  figure.LineChart{Name: "a", Empty: "Nothing was measured."}.Draw(),
		"nan":    figure.LineChart{Name: "a", Empty: "Nothing was measured.", Lines: []figure.Line{{X: []float64{1}, Y: []float64{nan}}}}.Draw(),
		"bars":   figure.BarChart{Name: "a", Empty: "Nothing was measured.", Groups: []string{"x"}}.Draw(),
		"cells":  figure.HeatMap{Name: "a", Empty: "Nothing was measured.", Rows: []string{"x"}, Columns: []string{"y"}}.Draw(),
		"images": figure.ImageGrid{Name: "a", Empty: "Nothing was measured.", Images: [][]image.Image{{nil}}}.Draw(),
	} {
		if text := string(f.SVG()); !strings.Contains(text, ">Nothing was measured.</text>") || f.Height < 50 || f.Width < 100 {
			t.Errorf("%s: %v×%v, %s", name, f.Width, f.Height, text)
		}
		if _, err := f.PNG(1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScale: integer scales keep the pixels of small images, and invalid scales are rejected.
func TestScale(t *testing.T) {
	for _, scale := range []float64{0, -1, 9, nan, inf} {
		if _, err := sheet().Draw().PNG(scale); err == nil {
			t.Errorf("scale %v was accepted", scale)
		}
	}
	red := func(img image.Image) (n int) {
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if r, g, b, _ := img.At(x, y).RGBA(); r == 0xffff && g == 0 && b == 0 {
					n++
				}
			}
		}
		return n
	}
	for _, scale := range []int{1, 2, 3} {
		file, err := sheet().Draw().PNG(float64(scale))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := red(img), 4*12*12*scale*scale; got != want {
			t.Errorf("at scale %d, %d pixels are red, want %d: four pixels enlarged 12 times", scale, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", -3: "−3", 1500: "1,500", 999999: "999,999", 2e-5: "2e−5", 1e6: "1e6", -1.5e7: "−1.5e7", 1.0 / 3: "0.3333", inf: "∞", -inf: "−∞", 12.3456: "12.35"} {
		if got := figure.Number(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if figure.Number(nan) != "–" {
		t.Error("NaN must be formatted as a dash")
	}
}

func ExampleLineChart() {
	f := figure.LineChart{
		Name: "snr", X: figure.Axis{Label: "slots m"}, Y: figure.Axis{Label: "SNR"},
		Lines: []figure.Line{{Name: "1/m", X: []float64{1, 2, 4}, Y: []float64{1, 0.5, 0.25}}},
	}.Draw()
	fmt.Println(f.Desc)
	// Output: SNR over slots m. 1/m: from 1 at 1 to 0.25 at 4.
}

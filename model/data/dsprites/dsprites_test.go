package dsprites

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func draw(im Image) []byte {
	b := bytes.Repeat([]byte{77}, Bytes) // a used buffer
	Draw(b, im)
	return b
}

// sheet returns every shape and scale at four orientations in the middle and four random orientations and positions: 18 × 8 images, row by
// row.
func sheet() []Image {
	rng := rand.New(rand.NewPCG(7, 7))
	var all []Image
	for shape := range Shapes {
		for scale := range Scales {
			for turn := range 8 {
				im := Image{shape, scale, 5 * turn, 15, 16}
				if turn >= 4 {
					im = Image{shape, scale, rng.IntN(Orientations), rng.IntN(Positions), rng.IntN(Positions)}
				}
				all = append(all, im)
			}
		}
	}
	return all
}

// TestGolden checks the pixels of 144 images on every architecture: the dataset must not change, since models were trained on it.
func TestGolden(t *testing.T) {
	const columns, file = 16, "testdata/golden.png"
	const digest = "419082b9399de6b8a316f3ab1e4629585ed97869f59f5afe9d92e194cfc8a9f3"
	images, hash := sheet(), sha256.New()
	drawn := image.NewPaletted(image.Rect(0, 0, columns*Side, len(images)/columns*Side), color.Palette{color.Black, color.White})
	for k, im := range images {
		b := draw(im)
		hash.Write(b)
		for p, level := range b {
			drawn.SetColorIndex(k%columns*Side+p%Side, k/columns*Side+p/Side, level&1)
		}
	}
	if *update {
		var out bytes.Buffer
		if err := png.Encode(&out, drawn); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := png.Decode(bytes.NewReader(b))
	if err != nil || golden.Bounds() != drawn.Bounds() {
		t.Fatalf("golden: %v", err)
	}
	if !bytes.Equal(golden.(*image.Paletted).Pix, drawn.Pix) {
		t.Error("the images are not those of " + file)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != digest {
		t.Errorf("the bytes hash to %s, not %s", got, digest)
	}
}

// TestAreas compares the white pixels of shapes with their areas in the plane, at every scale, over orientations and positions.
func TestAreas(t *testing.T) {
	for shape, area := range map[int]float64{
		Square:  4 * halfSquare * halfSquare,
		Ellipse: math.Pi * halfLong * halfShort,
		Heart:   180 * math.Pi * (halfHeart / 16) * (halfHeart / 16), // of the curve
	} {
		for scale := range Scales {
			white, n := 0, 0
			for turn := range Orientations {
				for at := range Positions {
					for _, level := range draw(Image{shape, scale, turn, at, (7*at + 3*turn) % Positions}) {
						white += int(level / 255)
					}
					n++
				}
			}
			want, got := area*Scale(scale)*Scale(scale), float64(white)/float64(n)
			if math.Abs(got-want) > 0.01*want {
				t.Errorf("shape %d at scale %.1f covers %.1f pixels, not %.1f", shape, Scale(scale), got, want)
			}
		}
	}
}

// TestPixelIsInsideItsShape compares every pixel with floating-point geometry. They may differ only if the outline passes within 1/50 of a
// pixel of the pixel's centre.
func TestPixelIsInsideItsShape(t *testing.T) {
	inside := func(shape int, u, v float64) bool {
		switch {
		case shape == Square:
			return max(math.Abs(u), math.Abs(v)) <= halfSquare
		case shape == Ellipse:
			return math.Hypot(u/halfLong, v/halfShort) <= 1
		case math.Abs(u) > halfHeart:
			return false
		}
		top, bottom := heart(math.Abs(u))
		return v >= top && v <= bottom
	}
	clear := func(shape int, u, v float64, want bool) bool { // whether all nearby points are on the same side
		for k := range 16 {
			sin, cos := math.Sincos(float64(k) * math.Pi / 8)
			if inside(shape, u+0.02*cos, v+0.02*sin) != want {
				return false
			}
		}
		return inside(shape, u, v) == want
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		im := Image{rng.IntN(Shapes), rng.IntN(Scales), rng.IntN(Orientations), rng.IntN(Positions), rng.IntN(Positions)}
		sin, cos := math.Sincos(Orientation(im.Orientation) * math.Pi / 180)
		for p, level := range draw(im) {
			dx := (float64(p%Side) + 0.5 - 16 - 32*Position(im.X)) / Scale(im.Scale)
			dy := (float64(p/Side) + 0.5 - 16 - 32*Position(im.Y)) / Scale(im.Scale)
			u, v := cos*dx+sin*dy, cos*dy-sin*dx
			if clear(im.Shape, u, v, level == 0) {
				t.Fatalf("%+v: pixel (%d, %d) is %d, %.3f right and %.3f below the centre", im, p%Side, p/Side, level, u, v)
			}
		}
	}
}

// TestFactorsShow counts distinct images: the square repeats every 90 degrees and the ellipse every 180; nothing else repeats.
func TestFactorsShow(t *testing.T) {
	for shape, want := range map[int]int{Square: 10, Ellipse: 20, Heart: 40} {
		seen := map[string]bool{}
		for scale := range Scales {
			for turn := range Orientations {
				seen[string(draw(Image{shape, scale, turn, 12, 20}))] = true
			}
		}
		if len(seen) != want*Scales {
			t.Errorf("shape %d gives %d distinct images at %d scales, want %d", shape, len(seen), Scales, want*Scales)
		}
	}
	seen := map[string]bool{}
	for x := range Positions {
		for y := range Positions {
			seen[string(draw(Image{Heart, 5, 7, x, y}))] = true
		}
	}
	if len(seen) != Positions*Positions {
		t.Errorf("%d of %d positions differ", len(seen), Positions*Positions)
	}
}

func BenchmarkDraw(b *testing.B) {
	dst, rng := make([]byte, Bytes), rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		Draw(dst, Image{rng.IntN(Shapes), rng.IntN(Scales), rng.IntN(Orientations), rng.IntN(Positions), rng.IntN(Positions)})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}

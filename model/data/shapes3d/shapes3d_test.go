package shapes3d

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// pick returns a random image.
func pick(rng *rand.Rand) Image {
	return Image{rng.IntN(Hues), rng.IntN(Hues), rng.IntN(Hues), Geometry{rng.IntN(Scales), rng.IntN(Shapes), rng.IntN(Orientations)}}
}

func picks(n int) []Image {
	rng := rand.New(rand.NewPCG(7, 7))
	images := make([]Image, n)
	for i := range images {
		images[i] = pick(rng)
	}
	return images
}

func draw(r *Renderer, im Image) []byte {
	b := make([]byte, Bytes)
	r.Draw(b, im)
	return b
}

// TestGolden checks the pixels of 40 images: the dataset must not change, since models were trained on it. Other architectures may round
// differently, hence a tolerance of one level; on amd64 the bytes must be equal.
func TestGolden(t *testing.T) {
	const columns, file = 10, "testdata/golden.png"
	const digest = "d784e4cbe1c14f9e9781450c9c5b5fca1f4195153fae9d697ec49882f4bf9d26"
	images, r := picks(40), new(Renderer)
	sheet := image.NewNRGBA(image.Rect(0, 0, columns*Side, len(images)/columns*Side))
	hash := sha256.New()
	for k, im := range images {
		b := draw(r, im)
		hash.Write(b)
		for p := range Side * Side {
			sheet.SetNRGBA(k%columns*Side+p%Side, k/columns*Side+p/Side, color.NRGBA{b[3*p], b[3*p+1], b[3*p+2], 255})
		}
	}
	if *update {
		var out bytes.Buffer
		if err := png.Encode(&out, sheet); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compareSheet(t, file, sheet)
	if got := hex.EncodeToString(hash.Sum(nil)); runtime.GOARCH == "amd64" && got != digest {
		t.Errorf("the bytes hash to %s, not %s", got, digest)
	}
}

func compareSheet(t *testing.T, file string, got *image.NRGBA) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if want.Bounds() != got.Bounds() {
		t.Fatalf("golden is %v, drawn %v", want.Bounds(), got.Bounds())
	}
	for y := range got.Rect.Max.Y {
		for x := range got.Rect.Max.X {
			w, g := color.NRGBAModel.Convert(want.At(x, y)).(color.NRGBA), got.NRGBAAt(x, y)
			if apart(w.R, g.R) > 1 || apart(w.G, g.G) > 1 || apart(w.B, g.B) > 1 {
				t.Fatalf("pixel (%d, %d) is %v, golden %v", x, y, g, w)
			}
		}
	}
}

func apart(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }

// TestSameInAnotherProcess compares with the images of another process, which traces on all cores first.
func TestSameInAnotherProcess(t *testing.T) {
	images := picks(30)
	if os.Getenv("SHAPES3D_CHILD") != "" {
		r := new(Renderer)
		r.Prepare(slices.Values(images))
		os.Stdout.WriteString("digest " + digestOf(r, images) + "\n")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSameInAnotherProcess$")
	cmd.Env = append(os.Environ(), "SHAPES3D_CHILD=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "digest " + digestOf(new(Renderer), images); !strings.Contains(string(out), want) {
		t.Errorf("another process printed %q, want %q", out, want)
	}
}

func digestOf(r *Renderer, images []Image) string {
	hash := sha256.New()
	for _, im := range images {
		hash.Write(draw(r, im))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// TestConcurrent draws the same untraced geometries in many goroutines, for the race detector.
func TestConcurrent(t *testing.T) {
	images, r := picks(8), new(Renderer)
	want := digestOf(new(Renderer), images)
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			r.Prepare(slices.Values(images))
			if got := digestOf(r, images); got != want {
				t.Errorf("drawn together: %s, alone: %s", got, want)
			}
		})
	}
	work.Wait()
}

// TestEveryGeometryDiffers: all 480 geometries, and all values of each hue, give different images.
func TestEveryGeometryDiffers(t *testing.T) {
	if testing.Short() {
		t.Skip("traces all 480 geometries")
	}
	r := new(Renderer)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]Image{}
	for g := range geometries {
		for hue := range Hues { // each of the three hues takes every value, the others held
			for _, im := range []Image{
				{Floor: hue, Wall: 3, Object: 5, Geometry: geometryOf(g)},
				{Floor: 4, Wall: hue, Object: 5, Geometry: geometryOf(g)},
				{Floor: 4, Wall: 3, Object: hue, Geometry: geometryOf(g)},
			} {
				sum := sha256.Sum256(draw(r, im))
				if other, ok := seen[string(sum[:])]; ok && other != im {
					t.Fatalf("%+v and %+v give the same image", other, im)
				}
				seen[string(sum[:])] = im
			}
		}
	}
	if want := geometries * (3*Hues - 2); len(seen) != want {
		t.Errorf("%d distinct images, want %d", len(seen), want)
	}
}

// TestLayersEqualTracing compares with direct tracing of each image, clamping every ray. Only pixels on the edge of a surface brighter
// than white can differ.
func TestLayersEqualTracing(t *testing.T) {
	r := new(Renderer)
	sum, n := 0, 0
	for _, im := range picks(12) {
		layered, direct := draw(r, im), traceDirectly(im)
		differ := 0
		for k := range layered {
			d := apart(layered[k], direct[k])
			sum, n = sum+d, n+1
			if d > 1 {
				differ++
			}
		}
		if differ > Bytes/20 {
			t.Errorf("%+v: %d of %d values differ", im, differ, Bytes)
		}
	}
	mean := float64(sum) / float64(n)
	t.Logf("mean difference %.4f of 255", mean)
	if mean > 0.15 {
		t.Errorf("mean difference %.3f of 255", mean)
	}
}

func traceDirectly(im Image) []byte {
	s, out := newScene(im.Geometry), make([]byte, Bytes)
	albedo := [materials]colour{skyColour, hues[im.Floor], hues[im.Wall], hues[im.Object]}
	for p := range Side * Side {
		for c := range 3 {
			mean := 0.0
			for i := range rays * rays {
				at := s.trace(s.view(float64(p%Side)+subpixel(i%rays), float64(p/Side)+subpixel(i/rays)))
				mean += min(255, at.shade*channel(albedo[at.material], c)+255*at.white) / (rays * rays)
			}
			out[3*p+c] = byte(mean + 0.5)
		}
	}
	return out
}

func channel(c colour, i int) float64 { return float64(c >> (lane * i) & 255) }

// TestComposeIsTheSum compares the packed arithmetic with the plain sum, for every pixel of some images.
func TestComposeIsTheSum(t *testing.T) {
	r, saturated := new(Renderer), 0
	for _, im := range picks(20) {
		got, l := draw(r, im), r.layer(im.Geometry.number())
		for p, w := range l.weights {
			for c := range 3 {
				v := float64(w&skyMask)*channel(skyColour, c) + float64(w>>floorAt&gainMask)*channel(hues[im.Floor], c) +
					float64(w>>wallAt&gainMask)*channel(hues[im.Wall], c) + float64(w>>objectAt&gainMask)*channel(hues[im.Object], c) + float64(w>>whiteAt)
				want := byte(min(255, math.Floor(v/one+0.5)))
				if got[3*p+c] != want {
					t.Fatalf("%+v pixel %d channel %d is %d, want %d", im, p, c, got[3*p+c], want)
				}
				if v/one > 256 {
					saturated++
				}
			}
		}
	}
	if saturated == 0 {
		t.Error("no pixel was brighter than white, so clamping is not tested")
	}
}

func TestPackRefusesWhatDoesNotFit(t *testing.T) {
	for name, shade := range map[string][materials]float64{
		"floor beyond its bits": {floor: 4.1},
		"sky beyond one":        {sky: 1.1},
		"sum beyond a lane":     {floor: 1.2, wall: 1.2},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			pack(shade, 0)
		})
	}
}

func TestHues(t *testing.T) {
	for i, want := range [Hues][3]float64{
		{255, 0, 0}, {255, 153, 0}, {204, 255, 0}, {51, 255, 0}, {0, 255, 102},
		{0, 255, 255}, {0, 102, 255}, {51, 0, 255}, {204, 0, 255}, {255, 0, 153},
	} {
		if got := [3]float64{channel(hues[i], 0), channel(hues[i], 1), channel(hues[i], 2)}; got != want {
			t.Errorf("hue %d is %v, want %v", i, got, want)
		}
	}
}

func TestWarmStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := new(Renderer).Warm(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Warm returned %v", err)
	}
}

func BenchmarkWarm(b *testing.B) {
	for b.Loop() {
		if err := new(Renderer).Warm(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	r, dst, rng := new(Renderer), make([]byte, Bytes), rand.New(rand.NewPCG(1, 1))
	if err := r.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.Draw(dst, pick(rng))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}

package play_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	gomlx "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
	"slotscope/model/play"
)

// Every model works in the playground: images are encoded to tuples of whole numbers, tuples are decoded to images, and the tuple of an image
// decodes to the model's reconstruction, up to rounding to the grid for real-valued slots.
func TestEveryModelPlays(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	images := make([]byte, 3*64*64*3)
	for i := range images {
		images[i] = byte(rng.IntN(256))
	}
	for _, name := range model.ModelNames() {
		t.Run(name, func(t *testing.T) {
			file := randomOf(t, name)
			m, err := play.Open(t.Context(), cpu(t), file)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			codes, err := m.Encode(t.Context(), images)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(codes[0], codes[1]) {
				t.Errorf("two images have the tuple %v", codes[0])
			}
			pictures, err := m.Decode(t.Context(), play.Held, codes)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range reconstructions(t, file, images) {
				if d := play.Compare(pictures[i], want, 3); d.PSNR < 45 {
					t.Errorf("image %d: decoding its tuple differs by %+v", i, d)
				}
			}
			swapped, err := m.Decode(t.Context(), play.Strip, play.Swaps(codes[0], codes[1]))
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			for i, p := range swapped {
				if same := slices.Equal(p, pictures[0]); same && codes[0][i] != codes[1][i] {
					t.Logf("slot %d changes from %s to %s, but the image does not", i, m.Text(codes[0][i]), m.Text(codes[1][i]))
				} else if !same {
					changed++
				}
			}
			if changed == 0 {
				t.Error("no swap changes the image")
			}
			if err := m.Check([]int{0, 0, 0, 0, m.Codes() - 1}); err != nil {
				t.Error(err)
			}
			if m.Check([]int{0, 0, 0, 0, m.Codes()}) == nil || m.CheckCode(5, 0) == nil {
				t.Error("CheckCode accepts a code or slot that does not exist")
			}
			distances(t, m, codes[0][2])
		})
	}
}

// distances checks that distances are 0 for the code itself (or its nearest entry, on the grid), not negative, and have mean 1 over the others.
func distances(t *testing.T, m *play.Model, c int) {
	t.Helper()
	d, err := m.Distances(2, c)
	entries := m.Entries()
	if err != nil || len(d) != len(entries) {
		t.Fatalf("%d distances for %d entries: %v", len(d), len(entries), err)
	}
	nearest := slices.Index(d, slices.Min(d))
	if off := entries[nearest] - c; max(off, -off) > (entries[1]-entries[0])/2 {
		t.Errorf("nearest to %d is entry %d", c, entries[nearest])
	}
	sum := 0.0
	for _, v := range d {
		sum += v
	}
	if mean := sum / float64(len(d)-1); math.Abs(mean-1) > 1e-3 {
		t.Errorf("the mean distance is %v", mean)
	}
}

func TestRealNumbersOnTheGrid(t *testing.T) {
	m, err := play.Open(t.Context(), cpu(t), randomOf(t, "betavae"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Continuous() || m.Codes() != 2049 || len(m.Entries()) != 129 || !slices.Equal(m.Nothing(), []int{1024, 1024, 1024, 1024, 1024}) {
		t.Errorf("continuous %v, %d codes, %d entries, Nothing() is %v", m.Continuous(), m.Codes(), len(m.Entries()), m.Nothing())
	}
	for c, want := range map[int]string{0: "-16.00", 1024: "0.00", 1025: "+0.02", 1040: "+0.25", 928: "-1.50", 2048: "+16.00"} {
		if got := m.Text(c); got != want {
			t.Errorf("code %d is formatted as %s, want %s", c, got, want)
		}
	}
	for v, want := range map[float64]int{0: 1024, 0.25: 1040, -1.5: 928, 0.007: 1024, 0.009: 1025, 99: 2048, -99: 0, math.Inf(1): 2048, math.NaN(): 1024} {
		if got := play.GridCode(float32(v)); got != int32(want) {
			t.Errorf("%v has code %d, want %d", v, got, want)
		}
	}
	kept := m.Kept([]int{1024, 1024, 1024, 0, 5}, []int{1040, 1041, 1008, 0, 900})
	if !slices.Equal(kept, []int{0, 2, 3}) {
		t.Errorf("kept %v", kept)
	}
	hrr := openRandom(t)
	if kept := hrr.Kept([]int{1, 2, 3}, []int{1, 3, 3}); hrr.Continuous() || hrr.Text(7) != "7" || !slices.Equal(kept, []int{0, 2}) {
		t.Errorf("kept %v of discrete codes", kept)
	}
}

// randomOf returns a small model of any kind with initial weights. Those of the latents are enlarged, because untrained encoders map all images
// to almost the same latent.
func randomOf(t *testing.T, name string) checkpoint.File {
	t.Helper()
	cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Widths, cfg.FC, cfg.M, cfg.Seed = [4]int{4, 4, 8, 8}, 16, 5, 1
	if name == "hrr" {
		cfg.D, cfg.K = 32, 12
	}
	file := initial(t, cfg)
	for i := range file.Tensors["fc2.weight"].Data {
		file.Tensors["fc2.weight"].Data[i] *= 30
	}
	return file
}

// reconstructions returns the model's reconstructions of images, computed directly by its graphs.
func reconstructions(t *testing.T, file checkpoint.File, images []byte) [][]byte {
	t.Helper()
	net, err := ae.New(file.Config, rgb)
	if err != nil {
		t.Fatal(err)
	}
	scope := gomlx.New().Checked(false)
	if err := net.Import(scope, file.Tensors); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(images))
	for i, b := range images {
		x[i] = float32(b) / 255
	}
	n := len(images) / (64 * 64 * 3)
	out, err := gomlx.ExecOnceN(cpu(t).Backend, scope, func(scope *gomlx.Context, x *Node) []*Node {
		return []*Node{Sigmoid(net.Decode(scope, net.Encode(scope, x)))}
	}, tensors.FromFlatDataAndDimensions(x, n, 64, 64, 3))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for picture := range slices.Chunk(tensors.MustCopyFlatData[float32](out[0]), 64*64*3) {
		bytes := make([]byte, len(picture))
		for i, p := range picture {
			bytes[i] = byte(255*p + 0.5)
		}
		all = append(all, bytes)
	}
	if len(all) != n {
		t.Fatal(fmt.Errorf("%d reconstructions for %d images", len(all), n))
	}
	return all
}

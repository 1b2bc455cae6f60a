package play

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/learn/evaluate"
)

// read is the same computation as static/play/probe.js.
func (r *Reader) read(pixels []byte) (classes []int) {
	x := make([]float32, len(pixels))
	for i, v := range pixels {
		x[i] = float32(v)/255 - 0.5
	}
	h, w, c := r.Head.H, r.Head.W, r.Head.C
	leaky := func(v float32) float32 { return max(v, 0.1*v) }
	for _, k := range r.weights[:3] {
		out := make([]float32, h/2*w/2*k.cols)
		for y := range h / 2 {
			for xx := range w / 2 {
				for row := range k.rows {
					iy, ix, ch := 2*y-1+row/(4*c), 2*xx-1+row/c%4, row%c
					if iy < 0 || iy >= h || ix < 0 || ix >= w {
						continue
					}
					for o := range k.cols {
						out[(y*w/2+xx)*k.cols+o] += x[(iy*w+ix)*c+ch] * k.data[row*k.cols+o]
					}
				}
			}
		}
		for i, v := range out {
			out[i] = leaky(v)
		}
		x, h, w, c = out, h/2, w/2, k.cols
	}
	for l, k := range r.weights[3:] {
		out := slices.Clone(r.biases[l])
		for i, v := range x {
			for o := range k.cols {
				out[o] += v * k.data[i*k.cols+o]
			}
		}
		if l == 0 {
			for i, v := range out {
				out[i] = leaky(v)
			}
		}
		x = out
	}
	for _, n := range r.Head.Sizes {
		classes = append(classes, slices.Index(x[:n], slices.Max(x[:n])))
		x = x[n:]
	}
	return classes
}

var update = flag.Bool("update", false, "retrain and overwrite the embedded probe")

// TestEmbeddedReader verifies the accuracy of the embedded probe; `-update` retrains it, which takes two minutes.
func TestEmbeddedReader(t *testing.T) {
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	src, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		trainReader(t, engine, src)
		return
	}
	l := NewLibrary(t.TempDir(), engine, data.Catalogue{})
	defer l.Close()
	r, err := l.Reader(t.Context(), src.Config.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	set, err := l.Set(t.Context(), src.Config.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	const images = 60
	info, rng, right := set.Info(), rand.New(rand.NewPCG(1, 2)), make([]float64, 6)
	pixels, want := make([]byte, info.H*info.W*info.C), make([]int, 6)
	for range images {
		index := []int{rng.IntN(info.Len)}
		if err := errors.Join(set.Images(pixels, index), set.Classes(want, index)); err != nil {
			t.Fatal(err)
		}
		for f, c := range r.read(pixels) {
			if c == want[f] {
				right[f] += 1.0 / images
			}
		}
	}
	for f, share := range right {
		if share < r.Head.Accuracy[f]-0.05 {
			t.Errorf("factor %d is read correctly on %.1f%% of images; the probe claims %.1f%%", f, 100*share, 100*r.Head.Accuracy[f])
		}
	}
	if _, err := l.Reader(t.Context(), "dsprites-synthetic"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("without a probe: %v", err)
	}
	raw := r.Encode(0)
	for _, bad := range [][]byte{nil, raw[:3], raw[:200], raw[:len(raw)-1], append(slices.Clone(raw), 0)} {
		if _, err := decodeReader(bad); err == nil {
			t.Errorf("%d of %d bytes are accepted as a probe", len(bad), len(raw))
		}
	}
	if again, err := decodeReader(raw); err != nil || !bytes.Equal(again.Encode(0), raw) {
		t.Errorf("after a round trip: %v", err)
	}
	if small := r.Encode(44); len(small) > len(raw)/2 {
		t.Errorf("%d bytes at rank 44, %d at full rank", len(small), len(raw))
	}
}

// trainReader trains the probe by evaluating the embedded checkpoint, and saves it.
func trainReader(t *testing.T, engine *compute.Engine, src Source) {
	t.Helper()
	dir := os.Getenv("SLOTSCOPE_PROBES") // of an earlier evaluation
	set, err := data.Catalogue{}.Open(t.Context(), src.Config.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		dir = t.TempDir()
		file, err := src.read()
		if err != nil {
			t.Fatal(err)
		}
		o := evaluate.Options{Images: 512, Pairs: 2, Probe: evaluate.Default(0).Probe, Trees: 2, Probes: dir}
		if _, err := evaluate.Run(t.Context(), engine, file, set, o); err != nil {
			t.Fatal(err)
		}
	}
	file, accuracy, err := evaluate.OpenProbe(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReader(file, set.Info(), accuracy)
	if err == nil {
		err = os.MkdirAll("probe", 0o755)
	}
	if err == nil {
		err = os.WriteFile(embeddedReaderPath(src.Config.Dataset), r.Encode(0), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

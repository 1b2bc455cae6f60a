package weights_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/weights"
)

// The module's return values of open.
const (
	short, foreign, damaged, impossible, length = 1, 2, 3, 4, 5
)

// sample returns a small model and its file.
func sample(t testing.TB, name string) (*engine, []byte) {
	t.Helper()
	s := shapes()[slices.IndexFunc(shapes(), func(s shape) bool { return s.name == name && s.change != nil })]
	e := newEngine(t, s.config(t), s.image)
	raw, err := weights.Encode(e.file, weights.Float32)
	if err != nil {
		t.Fatal(err)
	}
	return e, raw
}

// sealed updates the checksum of a file.
func sealed(raw []byte) []byte {
	if len(raw) >= 12 {
		binary.LittleEndian.PutUint32(raw[8:], crc32.ChecksumIEEE(raw[12:]))
	}
	return raw
}

func TestEncodeIsDocumented(t *testing.T) {
	e, raw := sample(t, "hrr")
	again, err := weights.Encode(e.file, weights.Float32)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the same checkpoint gives other bytes (%v)", err)
	}
	le := binary.LittleEndian
	for _, f := range []struct {
		name   string
		offset int
		want   uint32
	}{
		{"type", 12, 0}, {"latent", 16, 0}, {"binding", 20, 1}, {"flags", 24, 1}, {"H", 28, 32}, {"W", 32, 48}, {"C", 36, 1},
		{"width of Conv 1", 40, 3}, {"width of Conv 4", 52, 14}, {"fc", 56, 11}, {"m", 60, 3}, {"k", 64, 7}, {"d", 68, 30}, {"n", 72, 30},
		{"gain", 76, math.Float32bits(float32(math.Sqrt(0.1)))}, {"count", 80, uint32(len(raw)-96) / 4},
	} {
		if got := le.Uint32(raw[f.offset:]); got != f.want {
			t.Errorf("%s is %d, want %d", f.name, got, f.want)
		}
	}
	kernel := e.file.Tensors["encoder.0.weight"] // [3, 1, 4, 4], in the file [4, 4, 1, 4]
	for out := range 3 {
		for tap := range 16 {
			if got, want := math.Float32frombits(le.Uint32(raw[96+4*(4*tap+out):])), kernel.Data[out*16+tap]; got != want {
				t.Fatalf("tap %d of channel %d is %v, want %v", tap, out, got, want)
			}
		}
	}
	half, err := weights.Encode(e.file, weights.Float16)
	if err != nil || len(half) != 96+(len(raw)-96)/2 {
		t.Errorf("float16 takes %d bytes, float32 %d (%v)", len(half), len(raw), err)
	}
	rounded, err := weights.Rounded(e.file)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := weights.Encode(rounded, weights.Float16); err != nil || !bytes.Equal(again, half) {
		t.Errorf("the rounded checkpoint is written differently from the original (%v)", err)
	}
	if planes := weights.Planes(half); len(planes) != len(half) || planes[96+1] != half[96+2] || planes[96+(len(half)-96)/2] != half[97] {
		t.Error("the bytes of numbers are not regrouped")
	}
}

func TestEncodeRefusesWhatIsNoModel(t *testing.T) {
	e, _ := sample(t, "hrr")
	for name, c := range map[string]struct {
		change func(*checkpoint.File)
		want   string
	}{
		"another model":      {func(f *checkpoint.File) { f.Config.Model = "gan" }, `"gan"`},
		"no canvas":          {func(f *checkpoint.File) { delete(f.Tensors, "canvas") }, "canvas"},
		"a tensor missing":   {func(f *checkpoint.File) { delete(f.Tensors, "denoise2.bias") }, "denoise2.bias"},
		"another width":      {func(f *checkpoint.File) { f.Config.FC = 12 }, "fc1.weight"},
		"images that do not": {func(f *checkpoint.File) { f.Tensors["canvas"] = checkpoint.Tensor{Shape: []int{1, 14, 9, 3}} }, "144×48×1"},
	} {
		file := e.file
		file.Tensors = maps.Clone(e.file.Tensors)
		c.change(&file)
		_, err := weights.Encode(file, weights.Float32)
		var invalid model.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %s", name, err, c.want)
		}
	}
}

func TestModuleRefusesDamagedFiles(t *testing.T) {
	_, raw := sample(t, "hrr")
	at := func(offset int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[offset:], v); return sealed(b) }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   uint32
	}{
		"empty":             {func([]byte) []byte { return nil }, short},
		"cut in the header": {func(b []byte) []byte { return b[:95] }, short},
		"an HTML page":      {func(b []byte) []byte { return bytes.Repeat([]byte("<!doctype html>"), 20) }, foreign},
		"another version":   {func(b []byte) []byte { b[7] = 2; return sealed(b) }, foreign},
		"one bit":           {func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, damaged},
		"cut":               {func(b []byte) []byte { return b[:len(b)-16] }, damaged},
		"cut and sealed":    {func(b []byte) []byte { return sealed(b[:len(b)-16]) }, length},
		"longer and sealed": {func(b []byte) []byte { return sealed(append(b, 0, 0, 0, 0)) }, length},
		"no such type":      {at(12, 2), impossible},
		"no such model":     {at(16, 9), impossible},
		"no binding":        {at(20, 0), impossible},
		"a size of 0":       {at(28, 0), impossible},
		"a size of 2^31":    {at(28, 1<<31), impossible},
		"two channels":      {at(36, 2), impossible},
		"a width of 2^32−1": {at(40, math.MaxUint32), impossible},
		"another width":     {at(40, 64), length},
		"65 slots":          {at(60, 65), impossible},
		"gain of NaN":       {at(76, math.Float32bits(float32(math.NaN()))), impossible},
		"another count":     {at(80, 17), length},
	} {
		if got := newCodec(t).open(c.change(bytes.Clone(raw))); got != c.want {
			t.Errorf("%s: the module returns %d, want %d", name, got, c.want)
		}
	}
}

// FuzzOpen: the module returns for any bytes, and can compute with any file that it opens.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"hrr", "vqvae", "qlae", "betavae"} {
		_, raw := sample(f, name)
		f.Add(raw, true)
		f.Add(raw[:200], true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, seal bool) {
		raw = bytes.Clone(raw)
		if seal {
			raw = sealed(raw)
		}
		c := newCodec(t)
		if c.open(raw) != 0 {
			return
		}
		c.call("see")
		c.call("represent")
		if bad := c.call("take"); bad != 0 {
			t.Errorf("the module rejects its own code for slot %d", bad-1)
		}
		c.call("draw")
	})
}

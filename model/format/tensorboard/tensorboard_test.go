package tensorboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"slotscope/model/expect"
)

var at = time.UnixMicro(1_700_000_000_123_456).UTC()

func sample(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, at)
	w.Start(at, "run-1", map[string]any{"lr": 0.001, "model": "hrr", "tied": true}, []string{"loss"})
	w.Scalars(at, 1, map[string]float64{"loss": 0.1, "psnr/eval": math.Inf(1)})
	w.Picture(at, 1, "sheet", []byte("PNG"), 4, 2)
	w.Restart(at, 2)
	w.Scalars(at, 1<<40, map[string]float64{"loss": math.NaN()})
	w.End(at, Success)
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return b.Bytes()
}

func write(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.out.tfevents.1")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string, offset int64) (all []Event, next int64) {
	t.Helper()
	next, err := Read(path, offset, func(e Event) { all = append(all, e) })
	if err != nil {
		t.Fatal(err)
	}
	return all, next
}

// TestMasked: the CRC-32C of "123456789" is e3069283 (RFC 3720, appendix B.4 has other examples), masked by TFRecord's rule.
func TestMasked(t *testing.T) {
	sum := uint32(0xe3069283)
	if got, want := masked([]byte("123456789")), (sum>>15|sum<<17)+0xa282ead8; got != want {
		t.Errorf("%08x, want %08x", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	raw := sample(t)
	all, next := read(t, write(t, raw), 0)
	if next != int64(len(raw)) || len(all) != 5 {
		t.Fatalf("%d of %d bytes, %+v", next, len(raw), all)
	}
	if !maps.Equal(all[0].HParams, map[string]any{"lr": 0.001, "model": "hrr", "tied": true}) {
		t.Errorf("hyperparameters %v", all[0].HParams)
	}
	if e := all[1]; e.Tag != "loss" || e.Step != 1 || e.Value != float64(float32(0.1)) || !e.Time.Equal(at) {
		t.Errorf("%+v", e)
	}
	if e := all[2]; e.Tag != "psnr/eval" || !math.IsInf(e.Value, 1) {
		t.Errorf("%+v", e)
	}
	if e := all[3]; !e.Restart || e.Step != 2 {
		t.Errorf("%+v", e)
	}
	if e := all[4]; e.Step != 1<<40 || !math.IsNaN(e.Value) {
		t.Errorf("%+v", e)
	}
}

// TestGrowing: reading a growing file resumes after the last complete frame, wherever the file was cut.
func TestGrowing(t *testing.T) {
	raw := sample(t)
	whole, _ := read(t, write(t, raw), 0)
	for cut := range raw {
		path := write(t, raw[:cut])
		first, next := read(t, path, 0)
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		rest, end := read(t, path, next)
		if end != int64(len(raw)) || fmt.Sprint(append(first, rest...)) != fmt.Sprint(whole) {
			t.Fatalf("cut at %d", cut)
		}
	}
}

func TestDamaged(t *testing.T) {
	raw := sample(t)
	for at := range raw {
		damaged := bytes.Clone(raw)
		damaged[at] ^= 4
		n := 0
		if next, err := Read(write(t, damaged), 0, func(Event) { n++ }); err == nil && next == int64(len(raw)) {
			t.Fatalf("a changed bit in byte %d is not detected", at)
		}
	}
}

// TestTensors reads scalars as written by TensorBoard 2 and PyTorch: tensors with raw content, or one float or double.
func TestTensors(t *testing.T) {
	tensor := func(content []byte) []byte {
		return appendFrame(nil, message(varint(double(nil, 1, 1), 2, 3), 5, message(nil, 1, message(text(nil, 1, "loss"), 8, content))))
	}
	f := math.Float32bits(1.5)
	bits := []byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)}
	for name, content := range map[string][]byte{
		"raw":     message(varint(nil, 1, dtFloat), 4, bits),
		"packed":  message(varint(nil, 1, dtFloat), 5, bits),
		"double":  double(varint(nil, 1, dtDouble), 6, 1.5),
		"shape 1": message(message(varint(nil, 1, dtFloat), 2, message(nil, 2, varint(nil, 1, 1))), 4, bits),
	} {
		all, _ := read(t, write(t, tensor(content)), 0)
		if len(all) != 1 || all[0].Value != 1.5 || all[0].Step != 3 || all[0].Tag != "loss" {
			t.Errorf("%s: %+v", name, all)
		}
	}
	for name, content := range map[string][]byte{
		"two numbers": message(varint(nil, 1, dtFloat), 5, append(bits, bits...)),
		"text":        message(varint(nil, 1, 7), 8, []byte("hello")),
		"shape 2":     message(message(varint(nil, 1, dtFloat), 2, message(nil, 2, varint(nil, 1, 2))), 4, bits),
	} {
		if all, _ := read(t, write(t, tensor(content)), 0); len(all) != 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// TestIndependentReader: an independent reader finds every number, bit for bit.
func TestIndependentReader(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	said, err := exec.Command(python, "testdata/read_events.py", write(t, sample(t))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var lines []map[string]any
	for line := range strings.Lines(string(said)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v["time"] != 1_700_000_000.123456 {
			t.Errorf("time %v", v["time"])
		}
		delete(v, "time")
		lines = append(lines, v)
	}
	want := []map[string]any{
		{"step": 0.0, "version": "brain.Event:2"},
		{"step": 0.0, "plugin": "_hparams_/experiment"},
		{"step": 0.0, "plugin": "_hparams_/session_start_info", "hparams": map[string]any{"lr": 0.001, "model": "hrr", "tied": true}},
		{"step": 1.0, "scalars": map[string]any{"loss": fmt.Sprintf("%08x", math.Float32bits(0.1)), "psnr/eval": "7f800000"}},
		{"step": 1.0, "image": []any{"sheet", 2.0, 4.0, "504e47"}},
		{"step": 2.0, "restart": 1.0},
		{"step": float64(1 << 40), "scalars": map[string]any{"loss": fmt.Sprintf("%08x", math.Float32bits(float32(math.NaN())))}},
		{"step": 0.0, "plugin": "_hparams_/session_end_info"},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d events, want %d:\n%s", len(lines), len(want), said)
	}
	for i := range want {
		if !reflect.DeepEqual(lines[i], want[i]) {
			t.Errorf("event %d: %v, want %v", i, lines[i], want[i])
		}
	}
}

func FuzzRead(f *testing.F) {
	raw := sample(f)
	f.Add(raw)
	f.Add(raw[:len(raw)-3])
	f.Add(appendFrame(nil, []byte{0x2a, 0x7f}))
	path := filepath.Join(f.TempDir(), "events")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		var next int64
		expect.Frugal(t, len(raw), 64, func() { next, _ = Read(path, 0, func(Event) {}) })
		if next < 0 || next > int64(len(raw)) {
			t.Fatalf("%d of %d bytes", next, len(raw))
		}
		// The same bytes in a frame with valid checksums reach the parser.
		if err := os.WriteFile(path, appendFrame(nil, raw), 0o644); err != nil {
			t.Fatal(err)
		}
		expect.Frugal(t, len(raw), 64, func() { _, _ = Read(path, 0, func(Event) {}) })
	})
}

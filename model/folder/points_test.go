//go:build linux

package folder

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slotscope/model"
)

// TestSeries: names come from headers and from points of earlier versions; damaged and incomplete lines are ignored.
func TestSeries(t *testing.T) {
	f := newFolder(t)
	if names, err := f.Series(); err != nil || len(names) != 0 {
		t.Fatal(names, err)
	}
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 300; step++ {
		p := model.Point{Step: step, Time: time.Unix(1e9, 0).UTC(), Values: map[string]float64{"total": 1}}
		if step == 290 {
			p.Values["psnr/eval"] = 20
		}
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(f.Dir(), "points.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, `{"step":301,"time":"2026-01-02T03:04:05Z","values":{"older":1}}`, "\n", `{"series":["damaged"],"crc":"00000000"}`, "\n\n", `{"step":302,"time":"2026-01-02T03:04:05Z","values":{"half":1}}`)
	file.Close()
	if names, err := f.Series(); err != nil || !slices.Equal(names, []string{"older", "psnr/eval", "total"}) {
		t.Fatal(names, err)
	}
}

// TestDamagedPoints flips bits of points: damaged lines are counted and skipped, never read as another value. Lines without checksums, of
// earlier versions, are still read.
func TestDamagedPoints(t *testing.T) {
	f := newFolder(t)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 200; step++ {
		p := model.Point{Step: step, Time: time.Unix(1e9, 0).UTC(), Values: map[string]float64{"loss": float64(step) / 8, "rate": 0.5}}
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), "points.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(content []byte) ([]model.Point, int) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		points, _, _ := f.Tail(0)
		n, err := f.DamagedPoints()
		if err != nil {
			t.Fatal(err)
		}
		return points, n
	}
	if points, n := read(whole); len(points) != 200 || n != 0 || points[7].Values["loss"] != 1 {
		t.Fatalf("%d points, %d damaged", len(points), n)
	}
	counted, err := f.CountDamage(Damage{})
	if err != nil {
		t.Fatal(err)
	}
	for more, want := range []int{1, 1, 2} { // counting continues where it ended, and restarts if the file is replaced
		if more < 2 {
			appended, openErr := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if openErr != nil {
				t.Fatal(openErr)
			}
			fmt.Fprint(appended, []string{"damaged\n{\"step\"", ":300,\"values\":{}}\n"}[more])
			appended.Close()
		} else {
			if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("x\ny\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if counted, err = f.CountDamage(counted); err != nil || counted.Lines != want {
			t.Errorf("look %d: %d damaged, %v; want %d", more, counted.Lines, err, want)
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for at := range len(lines[90]) - 1 { // every bit of one line whose flip creates no line end
		for bit := range 8 {
			changed := slices.Clone(lines[90])
			if changed[at] ^= 1 << bit; changed[at] == '\n' {
				continue
			}
			r := reader{}
			if _, _, err := r.line(lines[0]); err != nil {
				t.Fatal(err)
			}
			if p, isPoint, err := r.line(changed); err == nil || isPoint {
				t.Fatalf("byte %d, bit %d: %q is read as %+v", at, bit, changed, p)
			}
		}
	}
	changed := slices.Clone(whole)
	for i := range 28 {
		changed[len(whole)/30*(i+1)] ^= 4
	}
	points, n := read(changed)
	if n < 20 || n > 28 || len(points)+n != 200 {
		t.Errorf("%d points, %d damaged", len(points), n)
	}
	for _, p := range points {
		if p.Values["loss"] != float64(p.Step)/8 {
			t.Errorf("step %d has a wrong loss: %v", p.Step, p.Values)
		}
	}
	if err := f.TruncatePoints(150); err != nil {
		t.Fatal(err)
	}
	if n, err := f.DamagedPoints(); n != 0 || err != nil {
		t.Errorf("after truncation %d are damaged: %v", n, err)
	}
	former := []byte("{\"step\":1,\"time\":\"2026-01-01T00:00:00Z\",\"values\":{\"loss\":2}}\n")
	if p, _, err := new(reader).line(former); err != nil || p.Step != 1 || p.Values["loss"] != 2 {
		t.Errorf("line of an earlier version: %+v, %v", p, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if n, err := f.DamagedPoints(); n != 0 || err != nil {
		t.Error(n, err, errors.Is(err, os.ErrNotExist))
	}
}

// TestLastPoint: it returns the last complete readable line, however much damage follows it.
func TestLastPoint(t *testing.T) {
	f := newFolder(t)
	last := func(want int) {
		t.Helper()
		if got, err := f.LastPoint(); err != nil || got != want {
			t.Fatalf("step %d (%v), want %d", got, err, want)
		}
	}
	last(0)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 700; step++ {
		if err := a.Append(model.Point{Step: step, Time: time.Unix(1e9, 0).UTC(), Values: map[string]float64{"loss": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	last(700)
	file, err := os.OpenFile(filepath.Join(f.Dir(), "points.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fmt.Fprint(file, `[701,2.5`) // incomplete
	last(700)
	file.Write(slices.Repeat([]byte("damage\n"), searchPiece/3))
	last(700)
}

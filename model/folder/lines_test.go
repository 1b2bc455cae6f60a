//go:build linux

package folder

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slotscope/model"
)

// same reports whether two lists hold the same points, bit for bit.
func same(a, b []model.Point) bool {
	sameValue := func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return slices.EqualFunc(a, b, func(p, q model.Point) bool {
		return p.Step == q.Step && p.Time.Equal(q.Time) && maps.EqualFunc(p.Values, q.Values, sameValue)
	})
}

// oddPoint is a random point with values that a trainer or an import may have measured.
func oddPoint(rng *rand.Rand, step int) model.Point {
	odd := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-7, 1e7, 1e21, 1e300, math.MaxFloat32, math.SmallestNonzeroFloat64, 1 << 60, math.NaN(), math.Inf(1), math.Inf(-1)}
	p := model.Point{Step: step, Time: time.Unix(1e9+int64(step), rng.Int64N(1e9)).UTC(), Values: map[string]float64{}}
	if rng.IntN(50) == 0 {
		p.Time = p.Time.Add(time.Duration(rng.Int64()) * time.Duration(1-2*rng.IntN(2))) // a clock that jumps by up to 292 years
	}
	for i := range 12 {
		p.Values[fmt.Sprintf("steady/%02d", i)] = float64(float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(12)-6))))
	}
	if rng.IntN(9) == 0 {
		p.Values["odd, \"<name>\""] = odd[rng.IntN(len(odd))]
	}
	if rng.IntN(90) == 0 {
		p.Values[fmt.Sprint("late/", step/100)] = rng.NormFloat64()
	}
	if rng.IntN(200) == 0 {
		p.Values = map[string]float64{}
	}
	return p
}

// TestPointsKeepEverything writes many kinds of points with appenders that stop anywhere, like killed processes, and reads them from the
// start, from any line, up to any step, and from the end.
func TestPointsKeepEverything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := newFolder(t)
	path := filepath.Join(f.Dir(), "points.jsonl")
	var all []model.Point
	for step := 1; step < 1500; {
		a, err := f.Points()
		if err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(400) {
			all = append(all, oddPoint(rng, step))
			if err := a.Append(all[len(all)-1]); err != nil {
				t.Fatal(err)
			}
			step++
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		torn, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		fmt.Fprint(torn, `{"series":["total"],"time":"2026-01-02T03:04:05Z","crc":"01234567"}`[:rng.IntN(60)])
		torn.Close()
	}
	if got, _, err := f.Tail(0); err != nil || !same(got, all) {
		t.Fatalf("%d points of %d, or wrong points, %v", len(got), len(all), err)
	}
	whole, _ := os.ReadFile(path)
	offset, before := int64(0), 0
	for i, line := range slices.Collect(bytes.Lines(whole)) {
		if i%17 == 0 {
			if got, _, err := f.Tail(offset); err != nil || !same(got, all[before:]) {
				t.Fatalf("from line %d on: %d points of %d, or wrong points, %v", i+1, len(got), len(all)-before, err)
			}
		}
		if offset += int64(len(line)); !bytes.HasPrefix(line, headerStart) {
			before++
		}
	}
	last := map[string]float64{}
	for _, p := range all {
		maps.Copy(last, p.Values)
	}
	if got, err := f.LastValues(slices.Collect(maps.Keys(last))...); err != nil || !same([]model.Point{{Values: got}}, []model.Point{{Values: last}}) {
		t.Error(got, err)
	}
	for _, to := range []int{1400, 257, 256, 3} {
		if err := f.TruncatePoints(to); err != nil {
			t.Fatal(err)
		}
		if got, _, err := f.Tail(0); err != nil || !same(got, all[:to]) {
			t.Fatalf("truncated to %d: %d points, or wrong points, %v", to, len(got), err)
		}
	}
}

// former is lines in the format of earlier versions: without and with a checksum.
const former = `{"step":1,"time":"2026-01-01T00:00:00Z","values":{"loss":0.30000001192092896,"total":2}}
{"step":2,"time":"2026-01-01T00:00:01.5Z","values":{"loss":"NaN","total":1.1},"crc":"SUM"}
`

// TestFolderOfEarlierVersion: points of an earlier version are read, and a resumed run appends points in the current format.
func TestFolderOfEarlierVersion(t *testing.T) {
	f := newFolder(t)
	path := filepath.Join(f.Dir(), "points.jsonl")
	if err := os.WriteFile(path, []byte(strings.Replace(former, "SUM", "39a34b6b", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, f, 3, 4)
	got, _, err := f.Tail(0)
	if err != nil || !slices.Equal(steps(got), []int{1, 2, 3, 4}) || got[0].Values["loss"] != float64(float32(0.3)) ||
		!math.IsNaN(got[1].Values["loss"]) || got[1].Values["total"] != 1.1 || !got[1].Time.Equal(time.Date(2026, 1, 1, 0, 0, 1, 5e8, time.UTC)) {
		t.Fatal(got, err)
	}
	if n, err := f.DamagedPoints(); n != 0 || err != nil {
		t.Errorf("%d damaged, %v", n, err)
	}
	if err := f.TruncatePoints(3); err != nil {
		t.Fatal(err)
	}
	if got, _, err := f.Tail(0); err != nil || !slices.Equal(steps(got), []int{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDamagedHeader: points are never read with wrong names; if the previous header has the same names, only the time is lost.
func TestDamagedHeader(t *testing.T) {
	f := newFolder(t)
	write(t, f, 1, 2)
	path := filepath.Join(f.Dir(), "points.jsonl")
	whole, _ := os.ReadFile(path)
	first, rest, _ := bytes.Cut(whole, []byte("\n"))
	for at := range first {
		changed := slices.Clone(first)
		changed[at] ^= 1
		os.WriteFile(path, append(append(changed, '\n'), rest...), 0o600)
		if got, _, err := f.Tail(0); err == nil || len(got) != 0 {
			t.Fatalf("%s is read: %v", changed, got)
		}
		if n, err := f.DamagedPoints(); n != 3 || err != nil {
			t.Fatalf("%d damaged lines, %v", n, err)
		}
	}
	write(t, f, 3) // writes a new header
	if got, _, _ := f.Tail(0); !slices.Equal(steps(got), []int{3}) {
		t.Error(steps(got))
	}
}

// TestBytesPerPoint checks the file size for the points of a typical HRR run: 19 float32 per step, three more now and then.
func TestBytesPerPoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := newFolder(t)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000
	for s := 1; s <= n; s++ {
		p := model.Point{Step: s, Time: time.Unix(1e9, 0).Add(time.Duration(s) * 23456 * time.Microsecond), Values: map[string]float64{}}
		for i := range 19 {
			p.Values[fmt.Sprint("a/name/of/a/series/", i)] = float64(float32(rng.NormFloat64()))
		}
		if s%200 == 1 {
			p.Values["process/cpu"], p.Values["process/memory"] = 0.5, 0.25
		}
		if s%1000 == 0 {
			p.Values["psnr/eval"] = 20
		}
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(f.Dir(), "points.jsonl"))
	if err != nil || info.Size() > 250*n {
		t.Errorf("%d bytes per step, %v", info.Size()/n, err)
	}
}

// TestSeriesOneAfterTheOther: hundreds of series, each measured at separate steps, do not fill the file with headers and nulls.
func TestSeriesOneAfterTheOther(t *testing.T) {
	f := newFolder(t)
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	for s := 1; s <= n; s++ {
		p := point(s)
		p.Values = map[string]float64{fmt.Sprint("group/series-", s%700): 0.5}
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(f.Dir(), "points.jsonl"))
	if err != nil || info.Size() > 150*n {
		t.Errorf("%d bytes per step, %v", info.Size()/n, err)
	}
	if got, _, err := f.Tail(0); err != nil || len(got) != n || got[1999].Values["group/series-600"] != 0.5 {
		t.Errorf("%d points, %v", len(got), err)
	}
}

// FuzzLines reads arbitrary files: it must not panic, and reading from any line must give the same points as reading from the start.
func FuzzLines(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	seed := newFolder(f)
	a, err := seed.Points()
	for s := 1; err == nil && s < 8; s++ {
		err = a.Append(oddPoint(rng, s))
	}
	if err := errors.Join(err, a.Close()); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(seed.Dir(), "points.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[len(whole)/3:])
	f.Add([]byte(former))
	f.Add([]byte("[1,2,3]\n{\"series\":[\"a\",\"a\"],\"time\":\"2026-01-01T00:00:00Z\"}\n[]\n[\n{\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		all, end, _ := seed.Tail(0)
		if n := bytes.LastIndexByte(content, '\n') + 1; int(end) != n && len(content) < tailChunk {
			t.Fatalf("read up to %d of %d", end, n)
		}
		from := bytes.IndexByte(content[:end], '\n') + 1
		rest, _, _ := seed.Tail(int64(from))
		if len(rest) > len(all) || len(all)-len(rest) > 1 || !same(rest, all[len(all)-len(rest):]) {
			t.Fatalf("%d points, %d from line 2 on", len(all), len(rest))
		}
		n, err := seed.DamagedPoints()
		if lines := bytes.Count(content, []byte("\n")); err != nil || n+len(all) > lines {
			t.Fatalf("%d damaged and %d points in %d lines: %v", n, len(all), lines, err)
		}
	})
}

package db

import (
	"database/sql"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
)

// anyBlock returns random samples of one block: dense or with gaps, float32 or float64, sometimes non-finite.
func anyBlock(rng *rand.Rand) (block int, samples []model.Sample) {
	block = rng.IntN(400_000)
	gaps, wide := rng.IntN(3), rng.IntN(2) == 0
	for step := block*blockSteps + rng.IntN(40); step < (block+1)*blockSteps; step += 1 + rng.IntN(1+gaps*20) {
		v := rng.NormFloat64() * math.Pow(10, float64(rng.IntN(60)-30))
		if !wide {
			v = float64(float32(v))
		}
		if rng.IntN(20) == 0 {
			v = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat64}[rng.IntN(6)]
		}
		samples = append(samples, model.Sample{Step: max(1, step), Value: v})
	}
	return block, samples
}

// TestBlocksComeBack checks that unpacking restores every bit, that a range of steps is correct, and that float32 values pack compactly.
func TestBlocksComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 2000 {
		block, samples := anyBlock(rng)
		data := packSamples(samples)
		got, err := unpackSamples(nil, block, data, 0, math.MaxInt)
		if diff := cmp.Diff(samples, got, sameNaN); diff != "" || err != nil {
			t.Fatalf("%v %s", err, diff)
		}
		for i := range got {
			if math.Signbit(got[i].Value) != math.Signbit(samples[i].Value) && !math.IsNaN(got[i].Value) {
				t.Fatal("the sign of a zero is lost")
			}
		}
		from := block*blockSteps + rng.IntN(blockSteps)
		to := from + rng.IntN(blockSteps)
		want := slices.DeleteFunc(slices.Clone(samples), func(s model.Sample) bool { return s.Step < from || s.Step > to })
		if got, _ := unpackSamples([]model.Sample{}, block, data, from, to); len(got) != len(want) {
			t.Fatalf("%d samples within %d to %d, want %d", len(got), from, to, len(want))
		}
		times := make([]stamp, len(samples))
		for i, s := range samples {
			times[i] = stamp{s.Step, rng.Int64() - rng.Int64()}
		}
		back, err := unpackTimes(nil, block, packTimes(times), 0, math.MaxInt)
		if err != nil || !slices.Equal(back, times) {
			t.Fatalf("times: %v", err)
		}
	}
	dense := make([]model.Sample, blockSteps)
	for i := range dense {
		dense[i] = model.Sample{Step: blockSteps + i, Value: float64(float32(rng.NormFloat64()))}
	}
	if n := len(packSamples(dense)); n > 4*blockSteps+8 {
		t.Errorf("a block of float32 takes %d bytes", n)
	}
}

// TestSpansComeBack does the same for spans of both levels.
func TestSpansComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		block, samples := anyBlock(rng)
		for _, l := range levels {
			part := block * blockSteps / l.width / partSpans
			var spans []span
			for _, s := range samples {
				if n := s.Step / l.width; len(spans) == 0 || spans[len(spans)-1].n != n {
					spans = append(spans, span{n: n})
				}
				spans[len(spans)-1].add(s)
			}
			var got []span
			err := unpackSpans(packSpans(spans, l.width), part, l.width, func(s *span) { got = append(got, *s) })
			if diff := cmp.Diff(spans, got, sameNaN, cmp.AllowUnexported(span{}, extent{})); diff != "" || err != nil {
				t.Fatalf("%v %s", err, diff)
			}
		}
	}
}

// FuzzUnpack checks that arbitrary bytes give an error or samples within the block, and never a panic.
func FuzzUnpack(f *testing.F) {
	rng := rand.New(rand.NewPCG(25, 26))
	for range 20 {
		_, samples := anyBlock(rng)
		f.Add(packSamples(samples))
		f.Add(packTimes([]stamp{{1, 5}, {2, 9}}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := unpackSamples(nil, 3, data, 0, math.MaxInt); err == nil && (len(got) == 0 || got[0].Step < 3*blockSteps) {
			t.Errorf("%v", got)
		}
		_, _ = unpackTimes(nil, 3, data, 0, math.MaxInt)
		_ = unpackSpans(data, 3, 16, func(*span) {})
	})
}

// TestKeysTellApart checks that keys increase with run, level, series and number without overlapping.
func TestKeysTellApart(t *testing.T) {
	const most = 1<<numberBits - 1
	if !(blobKey(1, 0, 0, 0) < blobKey(1, 0, 0, most) && blobKey(1, 0, 0, most) < blobKey(1, 0, 1, 0) && blobKey(1, 0, 1<<seriesBits-1, most) < blobKey(1, 1, 0, 0) &&
		blobKey(1, 3, 1<<seriesBits-1, most) < blobKey(2, 0, 0, 0) && blobKey(1<<runBits-1, 3, 1<<seriesBits-1, most) > 0) {
		t.Error("keys overlap")
	}
	if numberOf(blobKey(9, 2, 77, 12345)) != 12345 {
		t.Error("the number is lost")
	}
	for _, bad := range []error{fits(1<<runBits, 1, 1), fits(1, 1<<seriesBits, 1), fits(1, 1, blockSteps<<numberBits)} {
		if bad == nil {
			t.Error("a key that does not fit is accepted")
		}
	}
	if err := fits(1, 1, 1e8); err != nil {
		t.Error(err)
	}
}

// TestOlderIndexIsReadAgain checks that migrating an index with one row per value keeps its runs and resets their cursors, so that
// points are read again.
func TestOlderIndexIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	old, err := sql.Open("sqlite3", "file:"+path+"?"+writing)
	if err != nil {
		t.Fatal(err)
	}
	p, err := migrator(old)
	if err == nil {
		_, err = p.Up(t.Context())
	}
	if err == nil {
		err = (&DB{write: old, read: old}).SaveRun(t.Context(), aRun("r"))
	}
	if err == nil {
		_, err = p.DownTo(t.Context(), 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"INSERT INTO series (name) VALUES ('total')", "INSERT INTO steps (run, step, at) VALUES (1, 1, 5)",
		"INSERT INTO points (run, series, step, value, kind) VALUES (1, 1, 1, 0.5, 0)", "INSERT INTO cursors (run, offset, mark, attempt, head) VALUES (1, 90, 1, 1, 1)",
	} {
		if _, err := old.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	old.Close()
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if c, err := d.Cursor(t.Context(), "r"); err != nil || c != (model.Cursor{}) {
		t.Errorf("cursor %+v, %v", c, err)
	}
	if page := query(t, d, "r", model.PointQuery{}); page.Head != 0 || len(page.Series) != 0 {
		t.Errorf("%+v", page)
	}
	all := points(rand.New(rand.NewPCG(1, 1)), 1, 700)
	if err := d.AddPoints(t.Context(), "r", all, model.Cursor{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seriesOf(all), query(t, d, "r", model.PointQuery{}).Series, sameNaN); diff != "" {
		t.Error(diff)
	}
}

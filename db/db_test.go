package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"slotscope/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDB(t testing.TB) *DB {
	t.Helper()
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "index of 100% runs?.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func aRun(id string) model.Run {
	cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	at := func(s int64) time.Time { return time.UnixMilli(1_700_000_000_123 + 1000*s).UTC() }
	return model.Run{ID: id, Name: "a name", Notes: "two\nlines", Config: cfg, Created: at(0), Status: model.Status{
		State: model.Running, Step: 5, Checkpoint: 4, Resumed: 3, Attempt: 2, PID: 17, Host: "node-3", Engine: "cpu", EngineWhy: "no GPU",
		Parameters: 1000, ImagesPerSecond: 12.5, SecondsLeft: 80, Started: at(1), Updated: at(2), Reason: "because", Revision: "abc", Best: 3, BestValue: 21.5, Early: "collapsing", Precision: model.BF16x3}}
}

func TestRunsReadBack(t *testing.T) {
	d, ctx := newDB(t), t.Context()
	old, fresh := aRun("old"), aRun("fresh")
	fresh.Created = old.Created.Add(time.Hour)
	old.Ended = old.Updated
	for _, r := range []model.Run{old, fresh} {
		if err := d.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	fresh.Name, fresh.State, fresh.Config.Steps = "renamed", model.Stopped, 77
	if err := d.SaveRun(ctx, fresh); err != nil {
		t.Fatal(err)
	}
	runs, err := d.Runs(ctx)
	if diff := cmp.Diff([]model.Run{fresh, old}, runs); diff != "" || err != nil {
		t.Error(diff, err)
	}
	one, err := d.Run(ctx, "old")
	if diff := cmp.Diff(old, one); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := d.Run(ctx, "none"); !errors.Is(err, model.ErrNotFound) || err.Error() != `there is no run "none": not found` {
		t.Errorf("an unknown run: %v", err)
	}
}

func points(rng *rand.Rand, from, to int) (out []model.Point) {
	for s := from; s <= to; s++ {
		p := model.Point{Step: s, Time: time.Unix(0, rng.Int64N(1e18)), Values: map[string]float64{"total": rng.NormFloat64()}}
		switch rng.IntN(12) {
		case 0:
			p.Values["total"] = math.NaN()
		case 1:
			p.Values["total"] = math.Inf(1 - 2*rng.IntN(2))
		case 2:
			p.Values["psnr/eval"] = float64(s)
		}
		out = append(out, p)
	}
	return out
}

func seriesOf(points []model.Point) map[string][]model.Sample {
	all := map[string][]model.Sample{}
	for _, p := range points {
		for name, v := range p.Values {
			all[name] = append(all[name], model.Sample{Step: p.Step, Value: v})
		}
	}
	return all
}

func savedRun(t testing.TB, d *DB, id string) string {
	t.Helper()
	if err := d.SaveRun(t.Context(), aRun(id)); err != nil {
		t.Fatal(err)
	}
	return id
}

func query(t testing.TB, d *DB, id string, q model.PointQuery) model.PointPage {
	t.Helper()
	page, err := d.Points(t.Context(), id, q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

var sameNaN = cmpopts.EquateNaNs()

func TestPointsReadBack(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(1, 2))
	id := savedRun(t, d, "r")
	savedRun(t, d, "other")
	all := points(rng, 1, 60)
	for i := 0; i < 60; i += 20 {
		if err := d.AddPoints(t.Context(), id, all[i:i+20], model.Cursor{Offset: int64(i), Mark: math.MaxInt64, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	d.AddPoints(t.Context(), "other", points(rng, 1, 9), model.Cursor{})
	if c, err := d.Cursor(t.Context(), id); err != nil || c != (model.Cursor{Offset: 40, Mark: math.MaxInt64, Attempt: 1, Head: 60}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, c := range []struct {
		q                  model.PointQuery
		first, last, count int
	}{
		{model.PointQuery{}, 1, 60, 60},
		{model.PointQuery{Since: 58}, 59, 60, 2},
		{model.PointQuery{Since: 10, Until: 12}, 11, 12, 2},
		{model.PointQuery{Limit: 7}, 1, 7, 7},
		{model.PointQuery{Since: 57, Limit: 7}, 58, 60, 3},
		{model.PointQuery{Columns: 1000}, 1, 60, 60}, // finer than the steps: raw
	} {
		page := query(t, d, id, c.q)
		want := model.PointPage{Attempt: 1, Head: 60, Last: c.last, Count: c.count, Series: seriesOf(all[c.first-1 : c.last])}
		if diff := cmp.Diff(want, page, sameNaN); diff != "" {
			t.Errorf("%+v: %s", c.q, diff)
		}
	}
	named := query(t, d, id, model.PointQuery{Names: []string{"psnr/eval", "nothing"}})
	if diff := cmp.Diff(map[string][]model.Sample{"psnr/eval": seriesOf(all)["psnr/eval"]}, named.Series); diff != "" {
		t.Error(diff)
	}
	if page := query(t, d, id, model.PointQuery{Since: 60}); len(page.Series) != 0 || page.Last != 60 || page.Count != 0 {
		t.Errorf("beyond the head: %+v", page)
	}
	var bad model.Invalid
	if _, err := d.Points(t.Context(), id, model.PointQuery{Since: -1, Columns: -2}); !errors.As(err, &bad) || len(bad) != 2 {
		t.Errorf("a negative query: %v", err)
	}
	if _, err := d.Points(t.Context(), "none", model.PointQuery{}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
}

func TestNoStepIsStoredTwice(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(3, 4))
	id := savedRun(t, d, "r")
	first := points(rng, 1, 10)
	for _, batch := range [][]model.Point{first, points(rng, 5, 10), {}} {
		if err := d.AddPoints(t.Context(), id, batch, model.Cursor{Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(seriesOf(first), query(t, d, id, model.PointQuery{}).Series, sameNaN); diff != "" {
		t.Error(diff)
	}
}

func TestAddIsAllOrNothing(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(5, 6))
	id := savedRun(t, d, "r")
	d.AddPoints(t.Context(), id, points(rng, 1, 5), model.Cursor{Offset: 50, Attempt: 1})
	broken := points(rng, 6, 9)
	if _, err := d.write.Exec("CREATE TRIGGER refuse BEFORE INSERT ON blobs WHEN NEW.key >> 25 & 0xffff = 1 BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
	if err := d.AddPoints(t.Context(), id, broken, model.Cursor{Offset: 90, Attempt: 1}); err == nil || !strings.Contains(err.Error(), "series total: refused") {
		t.Fatalf("%v", err)
	}
	if page := query(t, d, id, model.PointQuery{}); page.Head != 5 || page.Count != 5 {
		t.Errorf("part of a batch is stored: %+v", page)
	}
	if c, _ := d.Cursor(t.Context(), id); c.Offset != 50 {
		t.Errorf("the cursor moved: %+v", c)
	}
}

// bucketed computes the expected result of columns the slow way.
func bucketed(samples []model.Sample, width int) (out []model.Sample) {
	for i := 0; i < len(samples); {
		var group []model.Sample
		for n := samples[i].Step / width; i < len(samples) && samples[i].Step/width == n; i++ {
			group = append(group, samples[i])
		}
		least, most, odd := -1, -1, -1
		for j, s := range group {
			switch {
			case math.IsNaN(s.Value) || math.IsInf(s.Value, 0):
				if odd < 0 {
					odd = j
				}
				continue
			case least < 0 || s.Value < group[least].Value:
				least = j
			}
			if most < 0 || s.Value > group[most].Value {
				most = j
			}
		}
		for j, s := range group {
			if j == least || j == most || j == odd || j == len(group)-1 {
				out = append(out, s)
			}
		}
	}
	return out
}

func TestColumnsKeepEveryExtreme(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(7, 8))
	id := savedRun(t, d, "r")
	all := points(rng, 1, 3000)
	for i := 0; i < len(all); { // batches end anywhere within a span
		n := min(1+rng.IntN(70), len(all)-i)
		if err := d.AddPoints(t.Context(), id, all[i:i+n], model.Cursor{Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		i += n
	}
	for range 200 {
		q := model.PointQuery{Since: rng.IntN(2990), Columns: 1 + rng.IntN(400)}
		last := 3000
		if rng.IntN(2) == 0 {
			q.Until = q.Since + 1 + rng.IntN(3000-q.Since)
			last = q.Until
		}
		width := q.Width(3000)
		if width > 1 && last/(width/2)-(q.Since+1)/(width/2)+1 <= q.Columns {
			t.Fatalf("%+v: width %d is wider than requested", q, width)
		}
		for name, samples := range seriesOf(all[q.Since:last]) {
			want := samples
			if width > 1 {
				want = bucketed(samples, width)
			}
			if diff := cmp.Diff(want, query(t, d, id, q).Series[name], sameNaN); diff != "" {
				t.Fatalf("%+v, width %d, %s: %s", q, width, name, diff)
			}
		}
	}
}

func TestRewindDropsInOneTransaction(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(9, 10))
	id := savedRun(t, d, "r")
	kept := []model.Point{}
	attempt, head := 1, 0
	for range 40 {
		n := 1 + rng.IntN(60)
		batch := points(rng, head+1, head+n)
		if err := d.AddPoints(t.Context(), id, batch, model.Cursor{Attempt: attempt}); err != nil {
			t.Fatal(err)
		}
		kept, head = append(kept, batch...), head+n
		if rng.IntN(3) == 0 {
			attempt, head = attempt+1, rng.IntN(head+1)
			kept = kept[:head]
			if err := d.Rewind(t.Context(), id, head, model.Cursor{Attempt: attempt, Head: 12345}); err != nil {
				t.Fatal(err)
			}
		}
		page := query(t, d, id, model.PointQuery{})
		if page.Head != head || page.Count != head || page.Attempt != attempt {
			t.Fatalf("head %d, count %d, attempt %d; want %d, %d", page.Head, page.Count, page.Attempt, head, attempt)
		}
		if diff := cmp.Diff(seriesOf(kept), page.Series, sameNaN); diff != "" {
			t.Fatal(diff)
		}
		columns := query(t, d, id, model.PointQuery{Columns: 5})
		for name, samples := range seriesOf(kept) {
			want := samples
			if width := (model.PointQuery{Columns: 5}).Width(head); width > 1 {
				want = bucketed(samples, width)
			}
			if diff := cmp.Diff(want, columns.Series[name], sameNaN); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func TestPageSaysWhatOutlivedRewinds(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(11, 12))
	id := savedRun(t, d, "r")
	d.AddPoints(t.Context(), id, points(rng, 1, 100), model.Cursor{Attempt: 1})
	d.Rewind(t.Context(), id, 30, model.Cursor{Attempt: 2})
	d.AddPoints(t.Context(), id, points(rng, 31, 90), model.Cursor{Attempt: 2})
	d.Rewind(t.Context(), id, 80, model.Cursor{Attempt: 4})
	for asked, want := range map[int]int{0: 80, 1: 30, 2: 80, 3: 80, 4: 0} {
		if page := query(t, d, id, model.PointQuery{Attempt: asked}); page.Attempt != 4 || page.Resumed != want && asked != 4 {
			t.Errorf("query with attempt %d: attempt %d, resumed %d; want %d", asked, page.Attempt, page.Resumed, want)
		}
	}
}

func TestMatchTellsOldPointsFromNew(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(13, 14))
	id := savedRun(t, d, "r")
	old := points(rng, 1, 20)
	d.AddPoints(t.Context(), id, old, model.Cursor{Attempt: 1})
	fresh := append(append([]model.Point{}, old[:12]...), points(rng, 13, 25)...)
	for _, c := range []struct {
		after  int
		points []model.Point
		want   int
	}{{0, old, 20}, {0, fresh, 12}, {5, fresh[5:], 7}, {12, fresh[12:], 0}, {0, old[1:], 0}, {20, fresh[20:], 0}, {0, nil, 0}} {
		if n, err := d.Match(t.Context(), id, c.after, c.points); n != c.want || err != nil {
			t.Errorf("after %d, %d points: %d, %v; want %d", c.after, len(c.points), n, err, c.want)
		}
	}
}

func TestDeletedRunTakesItsPointsAlong(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(15, 16))
	id := savedRun(t, d, "r")
	d.AddPoints(t.Context(), id, points(rng, 1, 40), model.Cursor{Attempt: 1})
	d.Rewind(t.Context(), id, 20, model.Cursor{Attempt: 2})
	if err := d.DeleteRun(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"runs", "blobs", "cursors", "rewinds"} {
		var n int
		if err := d.read.QueryRow("SELECT count(*) FROM " + table).Scan(&n); n != 0 || err != nil {
			t.Errorf("%s: %d rows left, %v", table, n, err)
		}
	}
	for what, err := range map[string]error{
		"add":    d.AddPoints(t.Context(), id, points(rng, 1, 2), model.Cursor{}),
		"rewind": d.Rewind(t.Context(), id, 0, model.Cursor{}),
	} {
		if !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s after deletion: %v", what, err)
		}
	}
}

func TestReopenedIndexKeepsItsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	for i := range 3 {
		d, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		savedRun(t, d, fmt.Sprint("r", i))
		if runs, _ := d.Runs(t.Context()); len(runs) != i+1 {
			t.Errorf("opening %d: %d runs", i, len(runs))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPragmasReachEveryConnection(t *testing.T) {
	d := newDB(t)
	for _, pool := range []*sql.DB{d.write, d.read} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000"} {
			var got string
			if err := pool.QueryRow("PRAGMA " + pragma).Scan(&got); got != want || err != nil {
				t.Errorf("%s is %q, %v", pragma, got, err)
			}
		}
	}
	if _, err := d.read.Exec("DELETE FROM runs"); err == nil {
		t.Error("a reader wrote")
	}
}

func TestIndexThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	os.WriteFile(damaged, []byte(strings.Repeat("no database ", 500)), 0o644)
	newer := filepath.Join(dir, "newer.db")
	d, err := Open(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.write.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	for path, want := range map[string]string{
		damaged: "file is not a database",
		newer:   "version 999",
		dir:     "unable to open database file",
		filepath.Join(dir, "no", "such", "folder.db"): "unable to open database file",
	} {
		if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
	}
}

func TestReadersSeeWholeBatches(t *testing.T) {
	d, rng := newDB(t), rand.New(rand.NewPCG(17, 18))
	id := savedRun(t, d, "r")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for head := 0; ctx.Err() == nil && err == nil; head += 25 {
			err = d.AddPoints(t.Context(), id, points(rng, head+1, head+25), model.Cursor{Attempt: 1})
		}
		done <- err
	}()
	for range 100 {
		page := query(t, d, id, model.PointQuery{Names: []string{"total"}})
		if page.Head%25 != 0 || page.Count != min(page.Head, pageSteps) || len(page.Series["total"]) != page.Count {
			t.Fatalf("head %d, %d points", page.Head, page.Count)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLongRun measures storing a long run of twenty series and drawing charts of all of it.
func BenchmarkLongRun(b *testing.B) {
	d := newDB(b)
	id := savedRun(b, d, "r")
	const steps = 125_000
	began := time.Now()
	for head := 0; head < steps; head += 500 {
		var batch []model.Point
		for s := head + 1; s <= head+500; s++ {
			values := map[string]float64{}
			for i := range 20 {
				values[fmt.Sprint("series", i)] = math.Sin(float64(s*i) / 1000)
			}
			batch = append(batch, model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: values})
		}
		if err := d.AddPoints(b.Context(), id, batch, model.Cursor{Attempt: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%.0f values/s stored", steps*20/time.Since(began).Seconds())
	for name, q := range map[string]model.PointQuery{
		"overview":  {Columns: 1000},
		"one-chart": {Columns: 1000, Names: []string{"series3", "series4"}},
		"zoom":      {Since: 60_000, Until: 70_000, Columns: 1000, Names: []string{"series3"}},
		"live-tail": {Since: steps - 10},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				query(b, d, id, q)
			}
		})
	}
	b.Run("rewind-1000", func(b *testing.B) {
		attempt := 1
		for b.Loop() {
			attempt++
			if err := d.Rewind(b.Context(), id, steps-1000, model.Cursor{Attempt: attempt}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestFullDiskHasItsName limits the index to its present pages, so that SQLite reports a full disk.
func TestFullDiskHasItsName(t *testing.T) {
	d, ctx := newDB(t), t.Context()
	if err := d.SaveRun(ctx, aRun("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.write.ExecContext(ctx, "PRAGMA max_page_count = 1"); err != nil { // SQLite raises this to the present count
		t.Fatal(err)
	}
	second := aRun("second")
	second.Notes = strings.Repeat("long ", 1<<18)
	err := d.SaveRun(ctx, second)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("saving to a full disk: %v", err)
	}
	if runs, err := d.Runs(ctx); err != nil || len(runs) != 1 {
		t.Errorf("afterwards there are %d runs, %v", len(runs), err)
	}
	if _, err := d.write.ExecContext(ctx, "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
}

// TestOpenInMemory checks that an index in memory is shared by all of its connections, works while it is read, and is not shared with others.
func TestOpenInMemory(t *testing.T) {
	ctx := t.Context()
	d, err := OpenInMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	other, err := OpenInMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := d.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for i := range 8 {
		id := fmt.Sprintf("run-%d", i)
		work.Go(func() {
			points := []model.Point{{Step: 1, Time: time.Unix(1, 0), Values: map[string]float64{"total": 0.5}}}
			if err := errors.Join(d.SaveRun(ctx, aRun(id)), d.AddPoints(ctx, id, points, model.Cursor{Head: 1})); err != nil {
				t.Error(err)
			}
			if _, err := d.Runs(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if err := d.DeleteRun(ctx, "run-3"); err != nil {
		t.Error(err)
	}
	if runs, err := d.Runs(ctx); err != nil || len(runs) != 7 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if runs, err := other.Runs(ctx); err != nil || len(runs) != 0 {
		t.Errorf("another index has %d runs, %v", len(runs), err)
	}
}

// TestWalkHandsOverEverySample checks that Walk yields the same samples as raw pages, in blocks, up to a step, only of the named series.
func TestWalkHandsOverEverySample(t *testing.T) {
	d, ctx := newDB(t), t.Context()
	if err := d.SaveRun(ctx, aRun("a")); err != nil {
		t.Fatal(err)
	}
	var points []model.Point
	for s := 1; s <= 700; s++ {
		p := model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: map[string]float64{"total": math.Sin(float64(s)), "other": 1}}
		if s%100 == 3 {
			p.Values["psnr/eval"] = math.NaN()
		}
		points = append(points, p)
	}
	if err := d.AddPoints(ctx, "a", points, model.Cursor{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	names := []string{"total", "psnr/eval", "absent"}
	for _, until := range []int{0, 1, 255, 256, 600, 9_999} {
		got := map[string][]model.Sample{}
		if err := d.Walk(ctx, "a", names, until, func(name string, block []model.Sample) { got[name] = append(got[name], block...) }); err != nil {
			t.Fatal(err)
		}
		page, err := d.Points(ctx, "a", model.PointQuery{Names: names, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(page.Series, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("up to %d: %s", until, diff)
		}
	}
	none := func(string, []model.Sample) { t.Error("a sample of an unknown series") }
	if err := d.Walk(ctx, "none", names, 0, none); !errors.Is(err, model.ErrNotFound) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Walk(gone, "a", names, 0, none); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

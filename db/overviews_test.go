package db

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slotscope/model"
	"slotscope/model/host"
)

func pointsOf(from, to int, values func(step int) map[string]float64) (all []model.Point) {
	for s := from; s <= to; s++ {
		all = append(all, model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: values(s)})
	}
	return all
}

// TestOverviewHasTheLastValues checks the last values of every series, also after a rewind dropped points, and the scores.
func TestOverviewHasTheLastValues(t *testing.T) {
	d, ctx := newDB(t), t.Context()
	run := aRun("a")
	run.Tags, run.Star, run.Archived = "night paper", true, true
	if err := d.SaveRun(ctx, run); err != nil {
		t.Fatal(err)
	}
	see := func(when string, values, scores model.Values) {
		t.Helper()
		all, err := d.Overviews(ctx)
		want := []model.Overview{{Run: run, Values: values, Scores: scores}}
		if diff := cmp.Diff(want, all, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %s %v", when, diff, err)
		}
	}
	see("before anything is measured", nil, nil)
	measured := func(s int) map[string]float64 {
		v := map[string]float64{"total": float64(s), "bad": math.NaN()}
		if s%10 == 0 {
			v["psnr/eval"] = float64(s) / 10
		}
		if s > 35 {
			v["late"] = math.Inf(-1)
		}
		return v
	}
	if err := d.AddPoints(ctx, "a", pointsOf(1, 25, measured), model.Cursor{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.AddPoints(ctx, "a", pointsOf(20, 43, measured), model.Cursor{Attempt: 1}); err != nil { // some are already stored
		t.Fatal(err)
	}
	see("after 43 steps", model.Values{"total": 43, "bad": math.NaN(), "psnr/eval": 4, "late": math.Inf(-1)}, nil)
	if err := d.SaveScores(ctx, "a", "first", model.Values{"infom": 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := d.Rewind(ctx, "a", 33, model.Cursor{Attempt: 2}); err != nil {
		t.Fatal(err)
	}
	see("after going back to step 33", model.Values{"total": 33, "bad": math.NaN(), "psnr/eval": 3}, model.Values{"infom": 0.5})
	if err := d.SaveScores(ctx, "a", "second", model.Values{"infom": 0.75, "psnr": 30}); err != nil {
		t.Fatal(err)
	}
	stamps, err := d.Scored(ctx)
	if diff := cmp.Diff(map[string]string{"a": "second"}, stamps); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := d.SaveScores(ctx, "a", "", nil); err != nil { // its scores.json was deleted
		t.Fatal(err)
	}
	see("after its scores were deleted", model.Values{"total": 33, "bad": math.NaN(), "psnr/eval": 3}, nil)
	if err := d.DeleteRun(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Overviews(ctx); len(all) != 0 || err != nil {
		t.Errorf("after deleting the run: %v, %v", all, err)
	}
}

// TestOlderIndexGetsOverviews checks that runs of an index from before overviews are listed with their last values.
func TestOlderIndexGetsOverviews(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "index.db")
	d, err := Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveRun(ctx, aRun("a")); err != nil {
		t.Fatal(err)
	}
	values := func(s int) map[string]float64 { return map[string]float64{"total": float64(s), "odd": math.Inf(1)} }
	if err := d.AddPoints(ctx, "a", pointsOf(1, 40, values), model.Cursor{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	p, err := migrator(d.write)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(ctx, path); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all, err := d.Overviews(ctx)
	if err != nil || len(all) != 1 || all[0].Values["total"] != 40 || !math.IsInf(all[0].Values["odd"], 1) {
		t.Errorf("%+v, %v", all, err)
	}
}

// BenchmarkOverviews lists 1,000 runs with 30 last values and 30 scores each.
func BenchmarkOverviews(b *testing.B) {
	d := newDB(b)
	manyRuns(b, d, 1000)
	b.ReportAllocs()
	before := host.CPU()
	for b.Loop() {
		if all, err := d.Overviews(b.Context()); len(all) != 1000 || err != nil {
			b.Fatal(len(all), err)
		}
	}
	b.ReportMetric((host.CPU()-before).Seconds()*1000/float64(b.N), "CPU-ms/op")
}

// manyRuns stores n runs with values and scores.
func manyRuns(b testing.TB, d *DB, n int) {
	b.Helper()
	var err error
	for i := range n {
		r := aRun(fmt.Sprintf("run-%05d", i))
		r.Config.Seed = int64(i)
		values, scores := map[string]float64{}, model.Values{}
		for s := range 30 {
			values[fmt.Sprintf("series/%d", s)], scores[fmt.Sprintf("score_%d", s)] = float64(i)/7, float64(s)/31
		}
		if err == nil {
			err = d.SaveRun(b.Context(), r)
		}
		if err == nil {
			err = d.AddPoints(b.Context(), r.ID, pointsOf(1, 1, func(int) map[string]float64 { return values }), model.Cursor{Attempt: 1})
		}
		if err == nil {
			err = d.SaveScores(b.Context(), r.ID, "1", scores)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}

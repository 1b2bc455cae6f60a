//go:build linux

package folder

import (
	"math"
	"testing"
	"time"

	"slotscope/model"
)

// TestLastValues: it returns every series near the end of the file, and named ones however far back.
func TestLastValues(t *testing.T) {
	f := newFolder(t)
	if v, err := f.LastValues("total"); len(v) != 0 || err != nil {
		t.Errorf("before the first point: %v, %v", v, err)
	}
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for s := 1; s <= 20_000; s++ {
		v := map[string]float64{"total": float64(s), "odd": math.Inf(1)}
		if s%8000 == 0 {
			v["psnr/eval"] = float64(s)
		}
		if s == 1 {
			v["early"] = 7
		}
		if err := a.Append(model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := f.LastValues()
	if _, far := v["psnr/eval"]; err != nil || v["total"] != 20_000 || !math.IsInf(v["odd"], 1) || far {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := f.LastValues("psnr/eval"); err != nil || v["psnr/eval"] != 16_000 || v["total"] != 20_000 || v["early"] != 0 {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := f.LastValues("early", "nowhere"); err != nil || v["early"] != 7 || v["psnr/eval"] != 16_000 || v["total"] != 20_000 || len(v) != 4 {
		t.Errorf("%v, %v", v, err)
	}
}

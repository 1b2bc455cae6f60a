package run_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slotscope/db"
	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	"slotscope/model"
	"slotscope/model/host"
	"slotscope/web"
)

// stored serves runs whose points are in an index, as in the server.
type stored struct {
	*handlertest.Runs
	index *db.DB
}

func (s stored) Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error) {
	return s.index.Points(ctx, id, q)
}

func (s stored) Walk(ctx context.Context, id string, names []string, until int, take func(string, []model.Sample)) error {
	return s.index.Walk(ctx, id, names, until, take)
}

// BenchmarkLongRun measures the server's work for the page of a long run. It generates the series of an HRR training with SLOTSCOPE_STEPS
// steps (default 125,000). cpu-ms/op is the CPU time of the process, including compression.
//
//	go test ./handlers/run -run '^$' -bench LongRun -benchtime 3x
func BenchmarkLongRun(b *testing.B) {
	steps := 125_000
	if text := os.Getenv("SLOTSCOPE_STEPS"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	h, path := longRun(b, steps)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("index: %d B per step", int(info.Size())/steps)
	eight := "total,recon,vq,commit,perplexity/batch,perplexity/window,latent/norm2,codebook/norm2"
	for _, c := range []struct{ name, path string }{
		{"open", "/api/runs/a/points?columns=1000"},
		{"smooth-all", "/api/runs/a/points?columns=1000&smooth=0.9&only=smoothed"},
		{"smooth-eight", "/api/runs/a/points?columns=1000&smooth=0.9&only=smoothed&names=" + eight},
		{"verdict", "/api/runs/a/verdict"},
		{"csv", "/api/runs/a/points.csv"},
	} {
		b.Run(c.name, func(b *testing.B) {
			before := host.CPU()
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", c.path, nil)
				r.Host = "localhost"
				r.Header.Set("Accept-Encoding", "gzip")
				w.Body = nil // discard the response
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("status %d", w.Code)
				}
			}
			b.ReportMetric(float64((host.CPU()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// longRun serves a finished run of the given steps with its index at path.
func longRun(tb testing.TB, steps int) (h http.Handler, path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "index.sqlite")
	index, err := db.Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	runs := handlertest.NewRuns(tb.TempDir())
	run := runs.Put("a", model.Finished, 0)
	run.Step = steps
	if err := index.SaveRun(tb.Context(), run.Run); err != nil {
		tb.Fatal(err)
	}
	began := time.Now()
	for head := 0; head < steps; head += 500 {
		points := make([]model.Point, 0, 500)
		for s := head + 1; s <= min(head+500, steps); s++ {
			p := handlertest.PointAt(run.Config, s)
			for name, v := range p.Values {
				if !strings.HasPrefix(name, "perplexity/") && name != "images_per_second" { // computed in float32
					p.Values[name] = float64(float32(v * (1 + 0.01*math.Sin(float64(s*len(name))))))
				}
			}
			points = append(points, p)
		}
		if err := index.AddPoints(tb.Context(), "a", points, model.Cursor{Attempt: 1}); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Logf("%d steps of %d series stored in %s", steps, len(handlertest.PointAt(run.Config, 1).Values), time.Since(began).Round(time.Millisecond))
	tb.Cleanup(func() { index.Close() })
	h, err = web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{runpage.Runs{Service: stored{runs, index}, Datasets: handlertest.Data{}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return h, path
}

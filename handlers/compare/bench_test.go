package compare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/db"
	"slotscope/handlers"
	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/host"
	"slotscope/model/measure/report"
)

// stored is a service on top of an index; scores are decoded on every call, as from a run's folder.
type stored struct {
	*db.DB
	handlers.RunService
	scores []byte
}

func (s stored) Get(ctx context.Context, id string) (model.Run, error)  { return s.Run(ctx, id) }
func (s stored) List(ctx context.Context) ([]model.Run, error)          { return s.Runs(ctx) }
func (s stored) Overview(ctx context.Context) ([]model.Overview, error) { return s.Overviews(ctx) }
func (s stored) Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error) {
	return s.DB.Points(ctx, id, q)
}

func (s stored) Walk(ctx context.Context, id string, names []string, until int, take func(string, []model.Sample)) error {
	return s.DB.Walk(ctx, id, names, until, take)
}
func (s stored) Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error) {
	return s.DB.Alerts(ctx, q)
}

func (s stored) DamagedPoints(context.Context, string) (int, error)         { return 0, nil }
func (s stored) Sample(context.Context, string, int) (string, []int, error) { return "", nil, nil }
func (s stored) Scores(context.Context, string) (scores model.Scores, err error) {
	return scores, json.Unmarshal(s.scores, &scores)
}

// scoresJSON returns a scores.json of typical size: matrices of 9 slots, and usage counts of 128 entries for each.
func scoresJSON(b *testing.B, step int) []byte {
	matrix := func(rows, columns int) (m [][]model.Score) {
		for i := range rows {
			m = append(m, make([]model.Score, columns))
			for j := range columns {
				m[i][j] = model.Score(math.Sin(float64(i*columns + j)))
			}
		}
		return m
	}
	counts := make([][]int, 9)
	for i := range counts {
		counts[i] = make([]int, 128)
	}
	s := model.Scores{Version: model.ScoresVersion, Step: step, Images: 10_000, PSNR: 30, Metrics: &model.Metrics{Discrete: true, InfoM: 0.5, NMI: matrix(6, 9), DCI: model.DCI{OneHot: model.DCIScore{Importance: matrix(1152, 6)}}}, Usage: &model.Usage{Counts: counts}}
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// BenchmarkCurves requests one series of many runs with intervals. CPU-ms/op is the processor time per response.
func BenchmarkCurves(b *testing.B) {
	for _, size := range []struct{ runs, steps int }{{25, 125_000}, {200, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", size.runs, size.steps), func(b *testing.B) {
			index, err := db.Open(b.Context(), filepath.Join(b.TempDir(), "index.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer index.Close()
			var ids []string
			for i := range size.runs {
				cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
				cfg.Seed, cfg.Steps, cfg.LR = int64(i%5), size.steps, []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2}[i/5%5]
				run := model.Run{ID: fmt.Sprintf("run-%03d", i), Config: cfg, Created: time.Unix(int64(i), 0), Status: model.Status{State: model.Finished, Step: size.steps}}
				if err := index.SaveRun(b.Context(), run); err != nil {
					b.Fatal(err)
				}
				ids = append(ids, run.ID)
				for from := 1; from <= size.steps; from += 25_000 {
					var points []model.Point
					for s := from; s < min(from+25_000, size.steps+1); s++ {
						points = append(points, model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: map[string]float64{"total": float64(float32(math.Exp(-float64(s)/5000) + 0.01*math.Sin(float64(s*(i+1)))))}})
					}
					if err := index.AddPoints(b.Context(), run.ID, points, model.Cursor{Attempt: 1}); err != nil {
						b.Fatal(err)
					}
				}
			}
			text := scoresJSON(b, size.steps)
			var scores model.Scores
			if err := json.Unmarshal(text, &scores); err != nil {
				b.Fatal(err)
			}
			for _, id := range ids {
				if err := index.SaveScores(b.Context(), id, "1", report.Values(scores)); err != nil {
					b.Fatal(err)
				}
			}
			service := stored{DB: index, scores: text}
			r := chi.NewRouter()
			compare.Reports{Runs: service, Scores: service}.Routes(r)
			address := "/api/compare/curves?series=total&columns=300&runs=" + strings.Join(ids, ",")
			var answer struct{ Groups []struct{ Points int } }
			if err := json.Unmarshal(handlertest.Ask(r, "GET", address, "").Body.Bytes(), &answer); err != nil || len(answer.Groups) != 5 || answer.Groups[0].Points != size.runs*size.steps/5 {
				b.Fatal(err, answer)
			}
			before := host.CPU()
			b.ResetTimer()
			for b.Loop() {
				if w := handlertest.Ask(r, "GET", address, ""); w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
			}
			b.ReportMetric((host.CPU()-before).Seconds()*1000/float64(b.N), "CPU-ms/op")
		})
	}
}

// BenchmarkReport writes the archive of five long runs with every point of 19 series. CPU-s/op is the processor time per archive,
// MB its size.
func BenchmarkReport(b *testing.B) {
	const runs, steps = 5, 125_000
	names := []string{"total", "recon", "vq", "commit", "latent", "value", "codebook", "grad_norm", "perplexity/batch", "perplexity/window", "perplexity/used",
		"latent/mean", "latent/var", "latent/norm2", "codebook/mean", "codebook/var", "codebook/norm2", "images_per_second", "tie"}
	index, err := db.Open(b.Context(), filepath.Join(b.TempDir(), "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer index.Close()
	var ids []string
	for i := range runs {
		cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
		cfg.Seed, cfg.Steps = int64(i), steps
		run := model.Run{ID: fmt.Sprintf("run-%03d", i), Config: cfg, Created: time.Unix(int64(i), 0), Status: model.Status{State: model.Finished, Step: steps}}
		if err := index.SaveRun(b.Context(), run); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, run.ID)
		for from := 1; from <= steps; from += 25_000 {
			var points []model.Point
			for s := from; s < from+25_000; s++ {
				p := model.Point{Step: s, Time: time.Unix(int64(s), 0), Values: map[string]float64{}}
				for j, name := range names {
					p.Values[name] = float64(float32(math.Exp(-float64(s)/5000) + 0.01*math.Sin(float64(s*(i+1)*(j+1)))))
				}
				points = append(points, p)
			}
			if err := index.AddPoints(b.Context(), run.ID, points, model.Cursor{Attempt: 1}); err != nil {
				b.Fatal(err)
			}
		}
	}
	service := stored{DB: index, scores: scoresJSON(b, steps)}
	r := chi.NewRouter()
	compare.Reports{Runs: service, Scores: service}.Routes(r)
	before, size := host.CPU(), 0
	b.ResetTimer()
	for b.Loop() {
		w := handlertest.Ask(r, "GET", "/api/report/report.zip?runs="+strings.Join(ids, ","), "")
		if size = w.Body.Len(); w.Code != 200 || size < 1<<20 {
			b.Fatal(w.Code, size)
		}
	}
	b.ReportMetric((host.CPU()-before).Seconds()/float64(b.N), "CPU-s/op")
	b.ReportMetric(float64(size)/1e6, "MB")
}

package measure_test

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/handlers/handlertest"
	"slotscope/handlers/measure"
	"slotscope/model"
)

// sheetAt is the path of a sheet of images; empty if none.
type sheetAt string

func (s sheetAt) NoiseSheet(_ context.Context, id string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("run %s has no sheet: %w", id, model.ErrNotFound)
	}
	return string(s), nil
}

// sheetOf returns a file with a blank image.
func sheetOf(t *testing.T, w, h int) sheetAt {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "noise.png"))
	if err == nil {
		err = png.Encode(file, image.NewNRGBA(image.Rect(0, 0, w, h)))
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sheetAt(file.Name())
}

// TestMeasureHeldOut: the page compares both parts and names the factors that are constant in one.
func TestMeasureHeldOut(t *testing.T) {
	scores := measuredWorld(t)
	left := *scores.Metrics
	left.InfoM, left.KeptFactors = scores.Metrics.InfoM-0.125, []int{0}
	scores.HeldOut = &model.HeldOut{Dataset: "d[shape=cube]", Images: 321, PSNR: *at(24.54, 0.2), Metrics: &left, Usage: &model.Usage{Entries: 8},
		Recombination: &model.Recombination{Unseen: model.Recombined{Hits: model.Interval{Value: 0.4, Low: 0.3, High: 0.5}}, Seen: model.Recombined{Hits: model.Interval{Value: 0.65, Low: 0.6, High: 0.7}}}}
	_, h := measureSite(t, &scores, nil)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	rows := map[string]string{}
	doc.Find("[data-testid=held-out-scores] tbody tr").Each(func(_ int, s *goquery.Selection) {
		rows[s.Find("th").Text()] = strings.Join(s.Find("td.n").Map(func(_ int, td *goquery.Selection) string { return td.Text() }), "|")
	})
	for name, want := range map[string]string{
		"Images": "400|321|", "PSNR, dB": "26.04 (25.94 to 26.14)|24.54 (24.34 to 24.74)|−1.50", "Codes in use": "9|8|",
		"Recombined codes": "65.0% (60.0 to 70.0%)|40.0% (30.0 to 50.0%)|−25.0",
		"InfoM":            fmt.Sprintf("%.3f|%.3f|−0.125", float64(scores.Metrics.InfoM), float64(left.InfoM)),
	} {
		if rows[name] != want {
			t.Errorf("%s is compared as %q, want %q", name, rows[name], want)
		}
	}
	if text := doc.Find("[data-testid=held-out]").Text(); !strings.Contains(text, "d[shape=cube]") || !strings.Contains(text, "the same value of shape") || strings.Contains(text, "NaN") {
		t.Errorf("the page says: %s", text)
	}
	if doc.Find("[data-testid=figure-compose] svg").Length() != 1 || handlertest.Get(t, h, "/runs/a/measure/compose.png").Code != 200 {
		t.Error("the figure of both parts is missing")
	}
	scores.HeldOut.Recombination, scores.HeldOut.NoRecombination = nil, "No image of d can be put together."
	if _, h = measureSite(t, &scores, nil); !strings.Contains(handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=held-out]").Text(), "can be put together") {
		t.Error("the page does not say why no codes were recombined")
	}
	scores.HeldOut = nil
	if _, h = measureSite(t, &scores, nil); handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure")).Find("[data-testid=held-out]").Length() != 0 {
		t.Error("a run on a whole dataset shows a comparison with a held-out part")
	}
}

// TestMeasureWithoutFactors: the page explains why, shows the available scores, and does not suggest an evaluation.
func TestMeasureWithoutFactors(t *testing.T) {
	scores := measuredWorld(t)
	scores.Metrics, scores.Swap, scores.Usage.Names = nil, nil, nil
	scores.NoFactors = "InfoMEC, DCI and swaps compare slots with factors, but own has no known factors."
	_, h := measureSite(t, &scores, nil)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/measure"))
	if text := doc.Find("[data-testid=no-factors]").Text(); !strings.Contains(text, scores.NoFactors) || doc.Find("[data-testid=measure-empty]").Length() != 0 {
		t.Errorf("the page says %q", text)
	}
	for name, want := range map[string]int{"usage": 1, "noise": 1, "flips": 1, "nmi": 0, "purity": 0, "degraded": 0} {
		if n := doc.Find("[data-testid=figure-" + name + "]").Length(); n != want {
			t.Errorf("%d figures %s", n, name)
		}
	}
}

// TestMeasureNoiseSheet: a sheet is split into its images; a sheet of other scores is not shown.
func TestMeasureNoiseSheet(t *testing.T) {
	scores := measuredWorld(t)
	scores.Noise.Shown = []int{17, 4}
	columns := 2 + len(scores.Noise.Curve)
	for _, c := range []struct {
		sheet handlers.NoiseService
		shown bool
	}{{sheetOf(t, 8*columns, 16), true}, {sheetOf(t, 8*columns+1, 16), false}, {sheetAt(""), false}, {nil, false}} {
		f, _ := measureSite(t, nil, nil)
		r := chi.NewRouter()
		measure.Measure{Runs: f, Datasets: handlertest.Data{}, Scores: &laterScores{kept: &scores}, Noise: c.sheet}.Routes(r)
		images := handlertest.Document(t, handlertest.Get(t, r, "/runs/a/measure")).Find("[data-testid=figure-degraded] image").Length()
		code := handlertest.Get(t, r, "/runs/a/measure/degraded.svg").Code
		if c.shown != (images == 2*columns) || c.shown != (code == 200) || !c.shown && (images != 0 || code != 404) {
			t.Errorf("%v: %d images of %d, the file returns %d", c.sheet, images, 2*columns, code)
		}
	}
}

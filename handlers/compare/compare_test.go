package compare_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"slotscope/handlers/compare"
	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/format/checkpoint"
	"slotscope/web"
)

func TestComparePage(t *testing.T) {
	f, h := openReports(t)
	if doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/compare", "")); doc.Find("[data-testid=empty]").Length() != 1 {
		t.Error("the page without runs has no instructions")
	}
	handlertest.Pair(f)
	failed := f.Put("c", model.Failed, 12)
	failed.Config.Steps, failed.Config.Seed, failed.Reason = 40, 2, "The loss is not finite."
	doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/compare", ""))
	if n := doc.Find("[data-testid=picker] input[name=runs]").Length(); n != 5 {
		t.Errorf("%d selectable runs", n)
	}
	doc = handlertest.Page(t, handlertest.Ask(h, "GET", "/compare?runs=a0,a1,b0,b1,c", ""))
	rows := doc.Find("[data-testid=scores] tbody").First().Find("tr")
	if rows.Length() != 2 || !strings.HasPrefix(strings.TrimSpace(rows.Eq(1).Text()), "HRR, no denoiser") {
		t.Errorf("rows: %s", rows.Text())
	}
	first := rows.Eq(0).Find("td")
	if got := strings.Join(strings.Fields(first.Eq(1).Text()), " "); got != "0.81 ± 0.06 paper 0.85 ± 0.05 *" { // ± 12.7·0.00707/√2 = 0.0635
		t.Errorf("InfoM of the plain model: %q", got)
	}
	if doc.Find(".best").Length() != 0 {
		t.Error("two seeds at another preset set something in bold")
	}
	verdicts := doc.Find("[data-testid=verdicts]").First()
	if n := strings.Count(verdicts.Text(), "No winner: a row has 2 seeds; at least 3 per row are needed."); n != 1 {
		t.Errorf("the notice of too few seeds appears %d times: %s", n, verdicts.Text())
	}
	if row := verdicts.Find("tbody tr").First().Text(); !strings.Contains(row, "HRR − HRR, no denoiser") {
		t.Errorf("verdict on InfoM: %s", row)
	}
	if why := doc.Find("[data-testid=withheld]").First().Text(); !strings.Contains(why, "2 seeds instead of at least 3, preset tiny instead of paper") {
		t.Errorf("reason for no claim: %q", why)
	}
	if left := doc.Find("[data-testid=left-out]").Text(); !strings.Contains(left, "The loss is not finite.") {
		t.Errorf("left out: %q", left)
	}
	var cells []string
	doc.Find("[data-testid=differences] th, [data-testid=differences] td").Each(func(_ int, s *goquery.Selection) { cells = append(cells, strings.Join(strings.Fields(s.Text()), " ")) })
	if got := strings.Join(cells, " | "); got != "Group | Seeds | No denoiser | HRR | 0–2 | false | HRR, no denoiser | 0, 1 | true" {
		t.Errorf("differences: %s", got)
	}
	if doc.Find("[data-testid=ablations]").Length() != 1 || doc.Find("[data-testid=figures] svg").Length() != 3 {
		t.Error("no ablations, or not three figures (scores, PSNR, noise)")
	}
	link, _ := doc.Find("[data-testid=figures] figcaption a").First().Attr("href")
	if w := handlertest.Ask(h, "GET", link, ""); w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%s: status %d", link, w.Code)
	}
}

func TestCompareRefuses(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	many := strings.Repeat("x,", 1) + func() string {
		var ids []string
		for i := range 250 {
			ids = append(ids, fmt.Sprint("r", i))
		}
		return strings.Join(ids, ",")
	}()
	for path, want := range map[string]struct {
		status int
		say    string
	}{
		"/api/report/results.json?runs=nothing":           {404, "nothing"},
		"/api/report/results.json":                        {422, "?runs="},
		"/api/report/results.json?runs=a0&rule=loud":      {422, "loud"},
		"/api/report/results.json?runs=a0&sweep=s":        {422, "not both"},
		"/api/report/results.json?sweep=nothing":          {404, "nothing"},
		"/api/report/secrets?runs=a0":                     {404, "no file of this name"},
		"/api/report/results.json?runs=" + many:           {422, "the limit is"},
		"/api/compare/curves?runs=a0":                     {422, "series"},
		"/api/compare/curves?series=total":                {422, "?runs="},
		"/api/compare/curves?runs=a0&series=x&smooth=1":   {422, "0.999"},
		"/api/compare/curves?runs=a0&series=x&clock=late": {422, "late"},
		"/compare?runs=nothing":                           {404, "nothing"},
		"/compare/figures/x.svg?runs=a0":                  {404, "of this comparison"},
		"/compare/figures/x.exe?runs=a0":                  {404, "is not a figure"},
	} {
		if w := handlertest.Ask(h, "GET", path, ""); w.Code != want.status || !strings.Contains(w.Body.String(), want.say) {
			t.Errorf("%.60s: status %d, want %d saying %q: %.300s", path, w.Code, want.status, want.say, w.Body)
		}
	}
}

func TestReportFiles(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	f.Draw("a1", 0)
	doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/report?runs=a0,a1,b0,b1", ""))
	links := doc.Find("[data-testid=files] a")
	if links.Length() != 10 {
		t.Errorf("%d files", links.Length())
	}
	links.Each(func(_ int, a *goquery.Selection) {
		href, _ := a.Attr("href")
		w := handlertest.Ask(h, "GET", href, "")
		if w.Code != 200 || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Content-Disposition"), a.Text()) {
			t.Errorf("%s: status %d, %d bytes, %s", href, w.Code, w.Body.Len(), w.Header().Get("Content-Disposition"))
		}
		if again := handlertest.Ask(h, "GET", href, ""); !bytes.Equal(again.Body.Bytes(), w.Body.Bytes()) {
			t.Errorf("%s: the same runs gave other bytes", href)
		}
	})
	raw := handlertest.Ask(h, "GET", "/api/report/report.zip?runs=a0,a1", "").Body.Bytes()
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	in, err := archive.Open("results.json")
	if err != nil {
		t.Fatal(err)
	}
	var results struct{ Runs []struct{ ID string } }
	if err := json.NewDecoder(in).Decode(&results); err != nil || len(results.Runs) != 2 {
		t.Errorf("%v %v", results, err)
	}
	if w := handlertest.Ask(h, "GET", "/report", ""); w.Code != http.StatusSeeOther {
		t.Errorf("a report of nothing: status %d", w.Code)
	}
}

// TestReportProgress checks that the progress of a named download is available during the download and for a while after.
func TestReportProgress(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	at := func(name string) (status int, now struct {
		Name, File    string
		Number, Of    int
		Share         float64
		Ended, Failed bool
	}) {
		w := handlertest.Ask(h, "GET", "/api/report/progress/"+name, "")
		json.Unmarshal(w.Body.Bytes(), &now)
		return w.Code, now
	}
	if status, _ := at("first-one"); status != http.StatusNotFound {
		t.Errorf("before a download: status %d", status)
	}
	if w := handlertest.Ask(h, "GET", "/api/report/report.zip?runs=a0,a1&progress=first-one", ""); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	if status, now := at("first-one"); status != http.StatusOK || !now.Ended || now.Failed || now.Name != "report.zip" || now.File != "SHA256SUMS" || now.Number != now.Of || now.Of < 9 {
		t.Errorf("after it: status %d, %+v", status, now)
	}
	if w := handlertest.Ask(h, "GET", "/api/report/curves.csv?runs=a0&progress=another-one", ""); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	if _, now := at("another-one"); !now.Ended || now.File != "curves.csv" || now.Of != 1 || now.Share != 1 {
		t.Errorf("%+v", now)
	}
	for name, status := range map[string]int{"first-one": 409, "short": 422, "a%20b%2Fc%2Fd%2Fe": 422, strings.Repeat("x", 65): 422} {
		if w := handlertest.Ask(h, "GET", "/api/report/summary.csv?runs=a0&progress="+name, ""); w.Code != status {
			t.Errorf("progress=%s: status %d, want %d: %s", name, w.Code, status, w.Body)
		}
	}
}

// An unreadable image fails the whole archive; no part is sent.
func TestReportOfADamagedPicture(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	f.Draw("a1", 0)
	if err := os.WriteFile(filepath.Join(f.Dir, "sample-0.png"), []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	if w := handlertest.Ask(h, "GET", "/api/report/report.zip?runs=a0,a1&progress=it-fails", ""); w.Code != http.StatusInternalServerError || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	if body := handlertest.Ask(h, "GET", "/api/report/progress/it-fails", "").Body.String(); !strings.Contains(body, `"ended":true,"failed":true`) {
		t.Errorf("its progress: %s", body)
	}
	if w := handlertest.Ask(h, "GET", "/api/report/summary.csv?runs=a0,a1", ""); w.Code != http.StatusOK {
		t.Errorf("a file that needs no image: status %d", w.Code)
	}
}

// Damaged scores of one run leave those of the others intact.
func TestCompareDamagedScores(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	f.Damaged = "a1"
	doc := handlertest.Page(t, handlertest.Ask(h, "GET", "/compare?runs=a0,a1,b0,b1", ""))
	if left := doc.Find("[data-testid=left-out]").Text(); !strings.Contains(left, "scores.json is damaged") || strings.Contains(left, "EOF") {
		t.Errorf("left out: %q", left)
	}
	if n := doc.Find("[data-testid=scores] tbody").First().Find("tr").Length(); n != 2 {
		t.Errorf("%d rows", n)
	}
	w := handlertest.Ask(h, "GET", "/api/report/results.json?runs=a0,a1,b0,b1", "")
	if !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), "NaN") {
		t.Errorf("status %d: %.200s", w.Code, w.Body)
	}
}

// TestUnscoredRunsAreOneLine checks that unevaluated runs are one line with a button that evaluates all of them and returns.
func TestUnscoredRunsAreOneLine(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	f.Put("x", model.Finished, 40)
	f.Put("y", model.Finished, 40)
	left := handlertest.Page(t, handlertest.Ask(h, "GET", "/compare?runs=a0,a1,x,y", "")).Find("[data-testid=left-out]")
	if text := strings.Join(strings.Fields(left.Text()), " "); text != "2 runs are not evaluated yet and missing from the tables. Evaluate 2 runs" {
		t.Errorf("text %q", text)
	}
	if ids, back := left.Find("[name=run]").AttrOr("value", ""), left.Find("[name=back]").AttrOr("value", ""); len(strings.Split(ids, ",")) != 2 || back != "/compare?runs=a0%2Ca1%2Cx%2Cy" {
		t.Errorf("evaluates %s, back to %s", ids, back)
	}
}

func TestCurvesOfGroups(t *testing.T) {
	f, h := openReports(t)
	handlertest.Pair(f)
	var out struct {
		Groups []struct {
			Label  string
			Points int
			Mean   struct {
				Steps, N        []int
				Mean, Low, High []*float64
			}
			Members []struct {
				Run    string
				Steps  []int
				Values []*float64
			}
		}
	}
	w := handlertest.Ask(h, "GET", "/api/compare/curves?runs=a0,a1,b0&series=total", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Groups) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	g := out.Groups[0]
	if g.Label != "HRR" || g.Points != 80 || len(g.Mean.Steps) != 40 || g.Mean.N[0] != 2 || len(g.Members) != 2 || *g.Mean.Low[0] != *g.Mean.Mean[0] {
		t.Errorf("%+v", g)
	}
	if timed := handlertest.Ask(h, "GET", "/api/compare/curves?runs=a0,a1&series=total&clock=true", "").Body.String(); strings.Count(timed, `"seconds":[0.0`) != 3 { // 16 images at 320 per second
		t.Errorf("no clock of the mean and of each run: %.300s", timed)
	}
	if one := out.Groups[1]; one.Mean.Low[0] != nil || one.Mean.N[0] != 1 {
		t.Error("one run has no interval")
	}
	if w := handlertest.Ask(h, "GET", "/api/compare/curves?runs=a0&series=nothing", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"groups":[]`) {
		t.Errorf("a series that no run has: %d %s", w.Code, w.Body)
	}
}

// openReports returns the comparison and report pages with their test runs.
func openReports(t *testing.T) (*handlertest.Scored, http.Handler) {
	t.Helper()
	f := handlertest.NewScored(t)
	h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{compare.Reports{Runs: f, Scores: f, Sweeps: handlertest.Sweeps{Scored: f}}}})
	if err != nil {
		t.Fatal(err)
	}
	return f, h
}

// models returns untrained bundles, and an error for the one run with a damaged checkpoint.
type models struct{ damaged string }

func (m models) Check(name string) error {
	if name == m.damaged {
		return model.Invalid{"checkpoint": "its header is not a JSON object"}
	}
	return nil
}

func (m models) Bundle(_ context.Context, name string) (bundle.Bundle, error) {
	return bundle.Bundle{Name: name, File: checkpoint.File{Config: model.Config{Model: "qlae"}, Tensors: map[string]checkpoint.Tensor{
		"canvas": {Shape: []int{1, 2, 4, 4}, Data: make([]float32, 32)}, "out.weight": {Shape: []int{3, 2, 3, 3}, Data: make([]float32, 54)}}}}, nil
}

// With bundles=true the archive contains the model of every run that has one; a damaged one is reported before anything is sent.
func TestReportWithModels(t *testing.T) {
	f := handlertest.NewScored(t)
	handlertest.Pair(f)
	f.Runs.Runs["a0"].Checkpoint, f.Runs.Runs["b0"].Checkpoint, f.Runs.Runs["b1"].Checkpoint = 40, 40, 0
	site := func(m models) http.Handler {
		h, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{compare.Reports{Runs: f, Scores: f, Bundles: m}}})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := site(models{})
	href, _ := handlertest.Page(t, handlertest.Ask(h, "GET", "/report?runs=a0,b0,b1", "")).Find("[data-testid=models]").Attr("href")
	raw := handlertest.Ask(h, "GET", href, "").Body.Bytes()
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatalf("%s: %v", href, err)
	}
	sums, held := "", map[string]string{}
	for _, file := range archive.File {
		in, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(file.Name, "bundles/") {
			held[file.Name] = fmt.Sprintf("%x", sha256.Sum256(content))
		}
		sums = string(content) // of the last file
	}
	if len(held) != 2 || held["bundles/a0.zip"] == "" {
		t.Errorf("models %v", held)
	}
	for name, sum := range held {
		if !strings.Contains(sums, sum+"  "+name+"\n") {
			t.Errorf("%s is not in %s", name, sums)
		}
	}
	for path, want := range map[string]struct {
		status int
		say    string
	}{
		"/api/report/report.zip?runs=a0,b0":               {200, "report.html"},
		"/api/report/report.zip?runs=a0,b0&bundles=maybe": {422, "is not a boolean"},
		"/api/report/REPRODUCE.md?runs=a0&bundles=true":   {200, "slotscope verify bundles/a0.zip"},
	} {
		w := handlertest.Ask(h, "GET", path, "")
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.say) || strings.Contains(w.Body.String(), "bundles/b0") {
			t.Errorf("%s: status %d: %.300q", path, w.Code, w.Body)
		}
	}
	if w := handlertest.Ask(site(models{"b0"}), "GET", href, ""); w.Code != 422 || !strings.Contains(w.Body.String(), "model of run b0") {
		t.Errorf("a damaged checkpoint: status %d: %.300s", w.Code, w.Body)
	}
}

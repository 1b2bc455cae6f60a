package handlers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	sweeppage "slotscope/handlers/sweep"
	"slotscope/model"
)

// places is a fake Placer whose cluster has the partitions "gpu" and "cpu".
type places struct{ are model.Placements }

func (p places) Placements() model.Placements { return p.are }

func (p places) CheckPlacement(at model.Placement) error {
	if at.Executor == model.Slurm && p.are.Missing != "" {
		return model.Invalid{"executor": p.are.Missing}
	}
	bad := model.Invalid{}
	if slices.Contains(at.Asks["partition"], "moon") {
		bad["partition"] = "there is none"
	}
	if slices.Contains(at.Asks["line"], "nice") {
		bad["line"] = "is no option"
	}
	return bad.OrNil()
}

// placing is a site with runs and sweeps whose service records their placement.
func placing(t *testing.T, p model.Placements) (*handlertest.Scored, string) {
	t.Helper()
	f := handlertest.NewScored(t)
	r := chi.NewRouter()
	runpage.Runs{Service: f, Datasets: handlertest.Data{}, Places: places{p}}.Routes(r)
	sweeppage.Sweeps{Service: handlertest.Sweeps{Scored: f}, Datasets: handlertest.Data{}, Places: places{p}}.Routes(r)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return f, server.URL
}

var forms = map[string]struct {
	page, post string
	fields     url.Values
}{
	"launch": {"/runs/new", "/runs", url.Values{"dataset": {"shapes3d-synthetic"}, "model": {"hrr"}, "preset": {"tiny"}}},
	"sweep":  {"/sweeps/new", "/sweeps", url.Values{"kind": {"own"}, "name": {"mine"}, "preset": {"tiny"}, "seeds": {"2"}, "models": {"hrr"}, "datasets": {"shapes3d-synthetic"}}},
}

// postForm posts a form with additional fields and returns the response without following redirects.
func postForm(t *testing.T, address string, form url.Values, entries url.Values) (*http.Response, *goquery.Document) {
	t.Helper()
	all := url.Values{}
	for _, part := range []url.Values{form, entries} {
		for k, v := range part {
			all[k] = v
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.PostForm(address, all)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return answer, page
}

func TestFormsSayWhereRunsAreComputed(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			f, site := placing(t, model.Placements{Default: model.Slurm, Lines: true, Asks: model.AsksOf("partition=cpu", "time=1:00:00", "line=--nice", "line=--exclusive", "mem=8G")})
			answer, err := http.Get(site + form.page)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			page, err := goquery.NewDocumentFromReader(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			shows(t, page, model.Slurm, "cpu", "1:00:00", "", "--nice\n--exclusive")

			typed := url.Values{"executor": {"slurm"}, "slurm_partition": {"gpu"}, "slurm_account": {""}, "slurm_time": {"2:00:00"}, "slurm_gpus": {"1"}, "slurm_lines": {" --constraint=h100\r\n\r\n--nice "}}
			if answer, _ := postForm(t, site+form.post, form.fields, typed); answer.StatusCode != http.StatusSeeOther {
				t.Fatalf("status %s", answer.Status)
			}
			want := model.Placement{Executor: model.Slurm, Asks: model.AsksOf("partition=gpu", "account=", "time=2:00:00", "gpus=1", "line=--constraint=h100", "line=--nice")}
			if !f.Placed.Equal(want) {
				t.Errorf("placed %+v, want %+v", f.Placed, want)
			}
			typed.Set("executor", "local")
			if answer, _ := postForm(t, site+form.post, form.fields, typed); answer.StatusCode != http.StatusSeeOther || !f.Placed.Equal(model.Placement{Executor: model.Local}) {
				t.Errorf("status %s, placed %+v", answer.Status, f.Placed)
			}

			f.Placed = model.Placement{}
			typed = url.Values{"executor": {"slurm"}, "slurm_partition": {"moon"}, "slurm_time": {"9"}, "slurm_gpus": {"2"}, "slurm_lines": {"nice"}}
			answer, page = postForm(t, site+form.post, form.fields, typed)
			if answer.StatusCode != http.StatusUnprocessableEntity || !f.Placed.Equal(model.Placement{}) {
				t.Errorf("status %s, placed %+v", answer.Status, f.Placed)
			}
			shows(t, page, model.Slurm, "moon", "9", "2", "nice")
			for id, want := range map[string]string{"slurm_partition-error": "there is none", "slurm_line-error": "is no option"} {
				if got := page.Find("#" + id).Text(); got != want {
					t.Errorf("%s: %q", id, got)
				}
			}
			if n := page.Find("#slurm_partition[aria-invalid=true][aria-describedby=slurm_partition-error]").Length(); n != 1 {
				t.Error("the field is not marked as invalid")
			}
		})
	}
}

// shows compares the placement fields of a form with the expected values.
func shows(t *testing.T, page *goquery.Document, executor, partition, limit, gpus, lines string) {
	t.Helper()
	value := func(selector string) string { v, _ := page.Find(selector).Attr("value"); return v }
	got := []string{value("input[name=executor][checked]"), value("#slurm_partition"), value("#slurm_time"), value("#slurm_gpus"), page.Find("#slurm_lines").Text()}
	if want := []string{executor, partition, limit, gpus, lines}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the form has %q, want %q", got, want)
	}
}

// TestFormsHaveNoLines: unless the operator allows sbatch options, the form has no field for them and rejects posted ones.
func TestFormsHaveNoLines(t *testing.T) {
	for name, form := range forms {
		_, site := placing(t, model.Placements{Default: model.Slurm, Asks: model.AsksOf("line=--nice")})
		answer, err := http.Get(site + form.page)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		page, err := goquery.NewDocumentFromReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if page.Find("#slurm_partition").Length() != 1 || page.Find("[name=slurm_lines]").Length() != 0 {
			t.Errorf("%s: the form has the wrong fields", name)
		}
		bad, page := postForm(t, site+form.post, form.fields, url.Values{"executor": {"slurm"}, "slurm_lines": {"nice"}})
		if got := page.Find("[data-testid=slurm_line-error]").Text(); bad.StatusCode != http.StatusUnprocessableEntity || got != "is no option." {
			t.Errorf("%s: %s, %q", name, bad.Status, got)
		}
	}
}

func TestFormsSayWhyThereIsNoCluster(t *testing.T) {
	for name, form := range forms {
		_, site := placing(t, model.Placements{Default: model.Local, Missing: "SLURM's sbatch was not found on the PATH"})
		answer, err := http.Get(site + form.page)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		page, err := goquery.NewDocumentFromReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := page.Find("[data-testid=no-cluster]").Text(); !strings.Contains(got, "SLURM's sbatch was not found on the PATH.") || page.Find("[name=executor]").Length() != 0 {
			t.Errorf("%s: %q", name, got)
		}
		bad, page := postForm(t, site+form.post, form.fields, url.Values{"executor": {"slurm"}, "slurm_partition": {"gpu"}})
		if got := page.Find("[data-testid=executor-error]").Text(); bad.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, "sbatch was not found") {
			t.Errorf("%s: %s, %q", name, bad.Status, got)
		}
	}
}

func TestProgramsSayWhereRunsAreComputed(t *testing.T) {
	f, site := placing(t, model.Placements{Default: model.Local})
	for path, body := range map[string]string{
		"/api/runs":   `{"config": {"model": "hrr"}, "executor": "slurm", "slurm": ["partition=gpu", "gpus=1"]}`,
		"/api/sweeps": `{"name": "x", "preset": "tiny", "parts": [{"name": "main", "models": ["hrr"], "datasets": ["shapes3d-synthetic"], "seeds": [0]}], "executor": "slurm", "slurm": ["partition=gpu", "gpus=1"]}`,
	} {
		f.Placed = model.Placement{}
		answer, err := http.Post(site+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if want := (model.Placement{Executor: model.Slurm, Asks: model.AsksOf("partition=gpu", "gpus=1")}); answer.StatusCode != http.StatusCreated || !f.Placed.Equal(want) {
			t.Errorf("%s: %s %s, placed %+v", path, answer.Status, text, f.Placed)
		}
	}
}

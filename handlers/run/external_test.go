package run_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	"slotscope/model"
	"slotscope/model/exchange"
	"slotscope/model/folder"
)

// Another program creates and logs a run. Resent points add nothing; invalid requests return an error and change nothing.
func TestLogFromAnywhere(t *testing.T) {
	dir := t.TempDir()
	f := handlertest.NewRuns(t.TempDir())
	r := chi.NewRouter()
	runpage.Runs{Service: f, Datasets: handlertest.Data{}, Folders: folders(filepath.Join(dir, "runs")), Logs: listing{exchange.Store{Data: dir}, f}}.Routes(r)
	post := func(path, body string) (int, string) {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	code, body := post("/api/runs", `{"name": "first try", "external": {"lr": 0.001, "dataset": "cifar10", "amp": true}}`)
	var run model.Run
	if err := json.Unmarshal([]byte(body), &run); err != nil || code != 201 || run.State != model.Running || run.Config.LR != 0.001 || run.Config.Dataset != "cifar10" || !strings.Contains(run.Notes, "amp = true") {
		t.Fatalf("%d %s", code, body)
	}
	page := httptest.NewRecorder()
	if r.ServeHTTP(page, httptest.NewRequest("GET", "/runs/"+run.ID, nil)); page.Code != 200 || strings.Contains(page.Body.String(), `data-testid="clone"`) || strings.Contains(page.Body.String(), `data-testid="resume"`) {
		t.Errorf("%d: the page of an external run offers to repeat it", page.Code)
	}
	if !strings.Contains(page.Body.String(), `data-testid="unlogged"`) || strings.Contains(page.Body.String(), "data-panel=") || strings.Contains(page.Body.String(), `data-testid="verdict"`) {
		t.Error("an external run without points shows charts or a verdict, or no message about missing points")
	}
	points := "/api/runs/" + run.ID + "/points"
	for _, c := range []struct {
		what, path, body string
		code             int
		want             string
	}{
		{"out of order", points, `{"points": [{"step": 2, "values": {"loss": "NaN"}}, {"step": 1, "time": "2026-03-01T12:00:00Z", "values": {"loss": 2.5}}]}`, 200, `{"added":2,"skipped":0,"last":2}`},
		{"again, and one more", points, `{"points": [{"step": 2, "values": {"loss": 7}}, {"step": 3, "values": {"loss": 1}}, {"step": 3, "values": {"loss": 1}}]}`, 200, `{"added":1,"skipped":2,"last":3}`},
		{"step 0", points, `{"points": [{"step": 0, "values": {"loss": 1}}]}`, 422, "steps start at 1"},
		{"no values", points, `{"points": [{"step": 9, "values": {}}]}`, 422, "a point has 1 to 1000"},
		{"a comma", points, `{"points": [{"step": 9, "values": {"a,b": 1}}]}`, 422, "cannot name a series"},
		{"no points", points, `{"points": []}`, 422, "1 to 10000"},
		{"an unknown run", "/api/runs/nobody/points", `{"points": [{"step": 9, "values": {"a": 1}}]}`, 404, ""},
		{"a list among hyperparameters", "/api/runs", `{"external": {"a": [1]}}`, 422, "is not text, a number"},
		{"both kinds of run", "/api/runs", `{"external": {}, "config": {"model": "hrr"}}`, 422, "set the hyperparameters of an external run in external"},
	} {
		if code, body := post(c.path, c.body); code != c.code || !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(body, " ", ""), "\n", ""), strings.ReplaceAll(c.want, " ", "")) {
			t.Errorf("%s: %d %s; want %d %s", c.what, code, body, c.code, c.want)
		}
	}
	kept, err := folder.Open(filepath.Join(dir, "runs", run.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	stored, _, err := kept.Tail(0)
	if err != nil || len(stored) != 3 || stored[0].Values["loss"] != 2.5 || stored[2].Step != 3 {
		t.Errorf("%+v, %v", stored, err)
	}
	status, err := kept.Status()
	if err != nil || status.Step != 3 {
		t.Errorf("%+v, %v", status, err)
	}
	status.State = model.Finished
	if err := kept.SetStatus(status); err != nil {
		t.Fatal(err)
	}
	if code, body := post(points, `{"points": [{"step": 9, "values": {"a": 1}}]}`); code != 409 {
		t.Errorf("after its end: %d %s", code, body)
	}
	ours, err := folder.Create(filepath.Join(dir, "runs", "ours"), model.Config{Model: "hrr"}, "")
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
	if code, body := post("/api/runs/ours/points", `{"points": [{"step": 9, "values": {"a": 1}}]}`); code != 409 || !strings.Contains(body, "is trained by Slotscope") {
		t.Errorf("for a run that is not external: %d %s", code, body)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", "ours", "points.jsonl")); err == nil {
		t.Error("points were written to a run that is not external")
	}
}

// listing adds started runs to the fake service, as the index does with a short delay.
type listing struct {
	exchange.Store
	runs *handlertest.Runs
}

func (l listing) Begin(name string, hparams map[string]any) (model.Run, error) {
	run, err := l.Store.Begin(name, hparams)
	if err == nil {
		l.runs.Put(run.ID, run.State, 0).Config = run.Config
	}
	return run, err
}

// The page of an adopted model shows no training and offers no weights, because another program has them.
func TestAdoptedRunPage(t *testing.T) {
	f := handlertest.NewRuns(t.TempDir())
	run := f.Put("mine", model.Finished, 60)
	run.Config = model.Config{Model: model.External, Preset: "thirds", Dataset: "shapes3d-synthetic", Engine: "auto", Steps: 60, M: 3, K: 8, EvalImages: 10_000}
	run.Checkpoint, run.Reason = 60, "Adopted: another program trained and runs this model."
	r := chi.NewRouter()
	runpage.Runs{Service: f, Datasets: handlertest.Data{}}.Routes(r)
	doc := handlertest.Document(t, handlertest.Get(t, r, "/runs/mine"))
	for _, id := range []string{"samples", "evidence", "bundle", "elapsed", "precision"} {
		if found := doc.Find("[data-testid=" + id + "]"); found.Length() > 0 && found.Closest("[hidden]").Length() == 0 {
			t.Errorf("%s is shown", id)
		}
	}
	if text := doc.Find("[data-testid=reason]").Text(); strings.Contains(text, "kept") {
		t.Errorf("the reason: %q", text)
	}
	if doc.Find("[data-testid=play][hidden]").Length() > 0 || doc.Find("[data-part=checkpoints][hidden]").Length() > 0 {
		t.Error("it cannot be opened in the playground")
	}
	text := doc.Find("[data-testid=config]").Text()
	for _, word := range []string{"Learning rate", "Batch", "β"} {
		if strings.Contains(text, word) {
			t.Errorf("the configuration contains %s: %s", word, text)
		}
	}
	if !strings.Contains(text, "10000") {
		t.Errorf("the configuration: %s", text)
	}
}

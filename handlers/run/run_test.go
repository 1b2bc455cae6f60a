package run_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"slotscope/handlers"
	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/verdict"
)

// runSite serves the pages of runs with a fake service.
func runSite(t *testing.T) (*handlertest.Runs, http.Handler) {
	t.Helper()
	f := handlertest.NewRuns(t.TempDir())
	r := chi.NewRouter()
	runpage.Runs{Service: f, Datasets: handlertest.Data{}}.Routes(r)
	return f, r
}

func TestFormHoldsEveryField(t *testing.T) {
	for _, name := range model.ModelNames() {
		t.Run(name, func(t *testing.T) { formHoldsEveryField(t, name) })
	}
}

func formHoldsEveryField(t *testing.T, name string) {
	_, h := runSite(t)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/new?model="+name))
	def, err := model.Default(name, "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	fields := model.FieldsOf(name)
	if n := doc.Find("[data-field]").Length(); n != len(fields) {
		t.Errorf("%d form fields, want %d for %s", n, len(fields), name)
	}
	for _, f := range fields {
		field := doc.Find("[data-field=" + f.Name + "]")
		if field.Find("label[for="+f.Name+"]").Length() != 1 {
			t.Errorf("%s has no label", f.Name)
		}
		if got := valueOf(field); got != f.Get(def) {
			t.Errorf("%s holds %q, its default is %q", f.Name, got, f.Get(def))
		}
		if !strings.Contains(field.Text(), f.Help) {
			t.Errorf("%s does not show its help", f.Name)
		}
		if decides := f.Name == "dataset" || f.Name == "model" || f.Name == "preset"; !decides && !strings.Contains(field.Text(), f.SourceIn(def)) {
			t.Errorf("%s does not show the source of its default", f.Name)
		}
	}
	if doc.Find("[data-field=lr] .symbol").Text() != "η" || doc.Find("[data-field=batch] .unit").Text() != "images" {
		t.Error("symbol or unit is missing")
	}
	if doc.Find("details[data-group=optimizer][open]").Length() != 0 {
		t.Error("advanced groups are expanded")
	}
}

func valueOf(field *goquery.Selection) string {
	if s := field.Find("select option[selected]"); s.Length() == 1 {
		return s.AttrOr("value", "")
	}
	in := field.Find("input")
	if in.AttrOr("type", "") == "checkbox" {
		_, on := in.Attr("checked")
		return strconv.FormatBool(on)
	}
	return in.AttrOr("value", "")
}

// TestFormHints: a small batch shows a hint for β-TCVAE and for no other model.
func TestFormHints(t *testing.T) {
	_, h := runSite(t)
	for query, says := range map[string]string{"model=betatcvae": "at most log(batch) = 3.5 nats", "model=betatcvae&batch=128": "", "model=hrr": ""} {
		hint := handlertest.Document(t, handlertest.Get(t, h, "/runs/new?"+query)).Find("[data-testid=hint-batch]").Text()
		if !strings.Contains(hint, says) || (hint == "") != (says == "") {
			t.Errorf("%s: %q", query, hint)
		}
	}
}

func TestFormDefaultsFollowThePreset(t *testing.T) {
	f, h := runSite(t)
	paper, _ := model.Default("hrr", "paper", "shapes3d-synthetic")
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/new?preset=paper&steps=7&seed=5&apply=defaults"))
	for name, want := range map[string]string{"widths": "64,128,256,512", "steps": strconv.Itoa(paper.Steps), "seed": "5"} {
		if got := valueOf(doc.Find("[data-field=" + name + "]")); got != want {
			t.Errorf("after “Apply defaults” %s is %q, want %q", name, got, want)
		}
	}
	f.Put("old", model.Finished, 10).Config.M = 4
	f.Runs["old"].Name = "Four slots"
	doc = handlertest.Document(t, handlertest.Get(t, h, "/runs/new?from=old"))
	if got := valueOf(doc.Find("[data-field=m]")); got != "4" {
		t.Errorf("a clone has m %q, want 4", got)
	}
	if got := doc.Find("#name").AttrOr("value", ""); got != "Four slots copy" {
		t.Errorf("a clone is named %q", got)
	}
	if got := doc.Find("[data-testid=estimate]").AttrOr("data-rate", ""); got != "321.400" {
		t.Errorf("the rate of the comparable run is %q", got)
	}
	for entry, text := range map[string]string{"model": "gan", "dataset": "moon"} {
		w := handlertest.Get(t, h, "/runs/new?"+entry+"="+text)
		if why := handlertest.Document(t, w).Find("[data-testid=" + entry + "-error]").Text(); w.Code != 422 || !strings.Contains(why, `"`+text+`"`) {
			t.Errorf("a form for the %s %s returns %d and says %q beside it", entry, text, w.Code, why)
		}
	}
	if w := handlertest.Get(t, h, "/runs/new?from=gone"); w.Code != 404 {
		t.Errorf("cloning an unknown run returns %d", w.Code)
	}
}

func TestCreateFromForm(t *testing.T) {
	f, h := runSite(t)
	w := handlertest.Post(t, h, "/runs", url.Values{"model": {"hrr"}, "preset": {"tiny"}, "dataset": {"shapes3d-synthetic"}, "steps": {"1,234"}, "no_denoiser": {"true"}, "name": {" Mine "}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/runs/run-1" {
		t.Fatalf("status %d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	run := f.Runs["run-1"]
	def, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	def.Steps, def.NoDenoiser = 1234, true
	if diff := cmp.Diff(def, run.Config); diff != "" {
		t.Errorf("the configuration differs: %s", diff)
	}
	if run.Name != "Mine" {
		t.Errorf("named %q", run.Name)
	}
	for _, kind := range []string{"multipart/form-data; boundary=x", "application/json", "text/plain"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/runs", strings.NewReader(`{"k": 4}`))
		r.Header.Set("Content-Type", kind)
		if h.ServeHTTP(w, r); w.Code != 422 || !strings.Contains(w.Body.String(), "Expected a form") {
			t.Errorf("%s instead of a form returns %d", kind, w.Code)
		}
	}
}

// Without scripts, the form still sends HRR's fields after another model is chosen; unknown fields are ignored. The API rejects them.
func TestCreateFromAnotherModelsForm(t *testing.T) {
	f, h := runSite(t)
	w := handlertest.Post(t, h, "/runs", url.Values{"model": {"betavae"}, "preset": {"tiny"}, "dataset": {"shapes3d-synthetic"}, "d": {"128"}, "k": {"128"},
		"inverse": {"involution"}, "no_denoiser": {"true"}, "m": {"5"}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	def, _ := model.Default("betavae", "tiny", "shapes3d-synthetic")
	def.M = 5
	if diff := cmp.Diff(def, f.Runs["run-1"].Config); diff != "" {
		t.Errorf("the configuration differs: %s", diff)
	}
	w = handlertest.Send(t, h, "POST", "/api/runs", `{"config": {"model": "betavae", "k": 128}}`)
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "is not a hyperparameter of betavae; it belongs to hrr, vqvae, qlae") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestEmptyFormStartsNothing: a form without hyperparameters shows the defaults instead of training with them; the API trains with them.
func TestEmptyFormStartsNothing(t *testing.T) {
	f, h := runSite(t)
	for _, form := range []url.Values{nil, {"name": {"Mine"}}, {"surprise": {"1"}}} {
		w := handlertest.Post(t, h, "/runs", form)
		doc := handlertest.Document(t, w)
		if w.Code != http.StatusUnprocessableEntity || len(f.Runs) != 0 || !strings.Contains(doc.Find("[data-testid=problems]").Text(), "The form has no hyperparameters") {
			t.Errorf("%v: %d, %d runs, %q", form, w.Code, len(f.Runs), doc.Find("[data-testid=problems]").Text())
		}
		if valueOf(doc.Find("[data-field=model]")) != "hrr" || valueOf(doc.Find("[data-field=steps]")) == "" || doc.Find("#name").AttrOr("value", "") != form.Get("name") {
			t.Errorf("%v: the form has no defaults", form)
		}
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs", `{"config": {}}`); w.Code != http.StatusCreated || len(f.Runs) != 1 {
		t.Errorf("the API returns %d with the defaults: %s", w.Code, w.Body)
	}
}

func TestFormKeepsWhatWasTyped(t *testing.T) {
	f, h := runSite(t)
	typed := url.Values{"model": {"hrr"}, "preset": {"tiny"}, "dataset": {"shapes3d-synthetic"}, "name": {"Kept"},
		"k": {"1"}, "m": {"0"}, "lr": {"fast"}, "batch": {"60000000"}, "widths": {"8,16"}, "engine": {"abacus"}, "steps": {"77"}, "learn_symbols": {"true"}}
	w := handlertest.Post(t, h, "/runs", typed)
	if w.Code != http.StatusUnprocessableEntity {
		t.Fatalf("status %d", w.Code)
	}
	doc := handlertest.Document(t, w)
	for _, name := range []string{"k", "m", "lr", "batch", "widths", "engine"} {
		field := doc.Find("[data-field=" + name + "]")
		in := field.Find("[aria-invalid=true]")
		if in.Length() != 1 || !strings.Contains(in.AttrOr("aria-describedby", ""), name+"-error") || field.Find("#"+name+"-error").Text() == "" {
			t.Errorf("%s has no linked error", name)
		}
		if got := valueOf(field); got != typed.Get(name) {
			t.Errorf("%s was entered as %q and shows %q", name, typed.Get(name), got)
		}
	}
	if got := valueOf(doc.Find("[data-field=learn_symbols]")); got != "true" {
		t.Error("a switch did not stay on")
	}
	if doc.Find("details[data-group=optimizer][open]").Length() != 1 {
		t.Error("the group with an error stays collapsed")
	}
	if doc.Find("#name").AttrOr("value", "") != "Kept" || doc.Find("[data-testid=problems]").Length() != 1 {
		t.Error("the name or the summary is lost")
	}
	if len(f.Runs) != 0 {
		t.Error("a run was created")
	}
	for _, broken := range []url.Values{{"preset": {"huge"}}, {"model": {"gan"}}, {"dataset": {"imagenet"}}} {
		if w := handlertest.Post(t, h, "/runs", broken); w.Code != 422 || handlertest.Document(t, w).Find(".error").Length() == 0 {
			t.Errorf("%v returns %d without an error message", broken, w.Code)
		}
	}
}

func TestRunPage(t *testing.T) {
	f, h := runSite(t)
	r := f.Put("a", model.Running, 700)
	r.Name, r.Notes = `<b>"bold"</b>`, "See λ."
	f.Draw("a", 100)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a"))
	if got := doc.Find("h1").Text(); got != r.Name {
		t.Errorf("the heading is %q", got)
	}
	if got := doc.Find("[data-testid=step]").Text(); got != "700" {
		t.Errorf("step shows %q", got)
	}
	visible := func(action string) bool {
		_, hidden := doc.Find("[data-action=" + action + "]").Attr("hidden")
		return !hidden
	}
	if !visible("stop") || visible("resume") || visible("force") {
		t.Error("a running run offers other actions than stop")
	}
	series := map[string]bool{}
	var data struct {
		Panels []struct{ Series []string }
	}
	if err := json.Unmarshal([]byte(doc.Find("#run-data").Text()), &data); err != nil {
		t.Fatal(err)
	}
	for _, p := range data.Panels {
		for _, s := range p.Series {
			series[s] = true
		}
	}
	for name := range handlertest.PointAt(r.Config, 1).Values {
		if !series[name] {
			t.Errorf("no chart draws %s", name)
		}
	}
	if doc.Find("[data-panel]").Length() != len(data.Panels) {
		t.Error("a chart has no container")
	}
	if doc.Find("[data-testid=notes]").Text() != "See λ." || doc.Find("[data-testid=samples] img").Length() != 2 {
		t.Error("notes or reconstructions are missing")
	}

	bad := f.Put("b", model.Failed, 20)
	bad.Reason = "The loss became NaN at step 20."
	doc = handlertest.Document(t, handlertest.Get(t, h, "/runs/b"))
	if !visible("resume") || visible("stop") || !strings.Contains(doc.Find("[data-testid=reason]").Text(), bad.Reason) {
		t.Error("a failed run shows no reason, or no button to resume")
	}
	damaged := f.Put("c", model.Interrupted, 0)
	damaged.Config, damaged.Reason = model.Config{}, "runs/c has no config.json"
	if w := handlertest.Get(t, h, "/runs/c"); w.Code != 200 || !strings.Contains(w.Body.String(), damaged.Reason) {
		t.Errorf("a damaged folder's page returns %d", w.Code)
	}
	if w := handlertest.Get(t, h, "/runs/gone"); w.Code != 404 || handlertest.Document(t, w).Find("[data-testid=problem]").Length() != 1 {
		t.Error("an unknown run does not return an error page")
	}
}

// TestVerdictOnThePage: the page judges the run against earlier runs of its configuration and lists the rules; the API agrees.
func TestVerdictOnThePage(t *testing.T) {
	f, h := runSite(t)
	earlier := func(id string, day int, change func(*model.Config)) {
		r := f.Put(id, model.Finished, 1200)
		r.Created = r.Created.AddDate(0, 0, -day)
		change(&r.Config)
		for i := range r.Points {
			if _, measured := r.Points[i].Values["psnr/eval"]; measured {
				r.Points[i].Values["psnr/eval"] -= float64(day)
			}
		}
	}
	earlier("seed-1", 1, func(c *model.Config) { c.Seed = 1 })
	earlier("seed-2", 2, func(c *model.Config) { c.Seed = 2 })
	earlier("other", 3, func(c *model.Config) { c.LR *= 2 })
	earlier("later", -1, func(c *model.Config) { c.Seed = 3 })
	f.Put("a", model.Running, 1100)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/a"))
	line := doc.Find("[data-testid=verdict]")
	if line.AttrOr("data-kind", "") != "healthy" || line.Find("strong").Text() != "Healthy" {
		t.Errorf("the verdict is %q", line.Find("p").Text())
	}
	facts := line.Find("[data-testid=verdict-facts]").Text()
	for _, want := range []string{"of 128 entries in use", "dB at step 1,000, above 2 of 2 earlier runs"} {
		if !strings.Contains(facts, want) {
			t.Errorf("the facts are %q and lack %q", facts, want)
		}
	}
	for _, r := range verdict.Rules() {
		if !strings.Contains(line.Find(".rules").Text(), r.When) {
			t.Errorf("the rule %s is not listed", r.Key)
		}
	}
	var v verdict.Verdict
	if err := json.Unmarshal(handlertest.Get(t, h, "/api/runs/a/verdict").Body.Bytes(), &v); err != nil || v.Rule != "healthy" || strings.Join(v.Facts, "; ") != facts {
		t.Errorf("the API returns %+v, %v", v, err)
	}
	f.Runs["a"].Points[1099].Values["total"] = math.NaN()
	part := handlertest.Document(t, handlertest.Get(t, h, "/runs/a/overview"))
	if text := part.Find("[data-testid=verdict] p").Text(); !strings.Contains(text, "Diverging") || !strings.Contains(text, "The total loss is NaN at step 1,100.") {
		t.Errorf("a NaN loss gives %q", text)
	}
	for _, path := range []string{"/runs/gone/overview", "/api/runs/gone/verdict"} {
		if w := handlertest.Get(t, h, path); w.Code != 404 {
			t.Errorf("%s returns %d", path, w.Code)
		}
	}
}

// TestQueueOnThePage: a queued run shows its position and what it is waiting for; a run on a cluster shows the cluster's reason instead.
func TestQueueOnThePage(t *testing.T) {
	f, h := runSite(t)
	now := time.Now()
	for i, id := range []string{"first", "second", "third"} {
		f.Put(id, model.Queued, 0).Updated = now.Add(time.Duration(i) * time.Second)
	}
	f.Put("cluster", model.Queued, 0).Reason = "SLURM job 7 waits: Resources."
	says := func(id string) string {
		return handlertest.Document(t, handlertest.Get(t, h, "/runs/"+id)).Find("[data-testid=queue]").Text()
	}
	if got := says("first"); got != "Next in the queue. Waiting for a free device." {
		t.Errorf("%q", got)
	}
	f.Put("busy", model.Running, 300).Name = "Busy one"
	if got := says("third"); !strings.HasPrefix(got, "Position 3 of 3 in the queue. Waiting for Busy one (") || !strings.HasSuffix(got, " left).") {
		t.Errorf("%q", got)
	}
	if got := says("cluster") + says("busy"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestEvaluationOnThePage: the run's page shows the state of its evaluation.
func TestEvaluationOnThePage(t *testing.T) {
	f := handlertest.NewRuns(t.TempDir())
	f.Put("a", model.Finished, 1000)
	for _, c := range []struct {
		state model.Evaluation
		want  string
	}{
		{model.Evaluation{}, "Not evaluated yet."},
		{model.Evaluation{State: model.Queued}, "Evaluation queued"},
		{model.Evaluation{State: model.Running, Started: time.Now(), Said: "noise 2 of 9"}, "Evaluating for 0 s: noise 2 of 9."},
		{model.Evaluation{State: model.Failed, Reason: "The disk is full."}, "The evaluation failed: The disk is full."},
		{model.Evaluation{State: model.Stopped, Ended: time.Now()}, "You cancelled the evaluation 0 s ago."},
		{model.Evaluation{State: model.Finished, Ended: time.Now()}, "Evaluated 0 s ago."},
	} {
		r := chi.NewRouter()
		runpage.Runs{Service: f, Datasets: handlertest.Data{}, Evaluations: stands{c.state}}.Routes(r)
		part := handlertest.Document(t, handlertest.Get(t, r, "/runs/a")).Find("[data-testid=evaluation]")
		if !strings.Contains(part.Text(), c.want) || part.Find("a[href='/runs/a/measure']").Length() != 1 {
			t.Errorf("%q is shown as %q", c.state.State, part.Text())
		}
	}
	_, h := runSite(t)
	if w := handlertest.Get(t, h, "/runs/a"); strings.Contains(w.Body.String(), "Not evaluated yet") {
		t.Error("a server without evaluations mentions them")
	}
}

// stands is a fake of evaluations with one state for all runs.
type stands struct{ state model.Evaluation }

func (s stands) Queue(context.Context, string, model.Evaluation) error { return nil }
func (s stands) Cancel(context.Context, string) error                  { return nil }
func (s stands) State(string) model.Evaluation                         { return s.state }

// TestRefusedStaysInItsDialog: a rejected action reopens its dialog with the error and the input.
func TestRefusedStaysInItsDialog(t *testing.T) {
	f, h := runSite(t)
	f.Put("a", model.Stopped, 600)
	refused := func(path string, form url.Values, status int, dialog, says string) *goquery.Document {
		t.Helper()
		w := handlertest.Post(t, h, path, form)
		doc := handlertest.Document(t, w)
		if why := doc.Find("#" + dialog + "[data-open] [data-testid=trouble]").Text(); w.Code != status || !strings.Contains(why, says) || doc.Find("[data-testid=run]").Length() != 1 {
			t.Errorf("%s returns %d and shows %q in its dialog", path, w.Code, why)
		}
		return doc
	}
	doc := refused("/runs/a/resume", url.Values{"steps": {"far"}}, 422, "resume", `"far"`)
	if got := doc.Find("#resume-steps").AttrOr("value", ""); got != "far" {
		t.Errorf("the field has %q", got)
	}
	doc = refused("/runs/a/edit", url.Values{"name": {strings.Repeat("x", 300)}, "notes": {"kept"}}, 422, "edit", "300 bytes")
	if doc.Find("#edit-notes").Text() != "kept" {
		t.Error("the notes are lost")
	}
	f.Runs["a"].State = model.Running
	refused("/runs/a/resume", nil, 409, "resume", "running")
	doc = refused("/runs/a/delete", nil, 409, "delete", "stop it before deleting it")
	if hidden := doc.Find("[data-testid=delete-form]").AttrOr("hidden", "no"); hidden == "no" || doc.Find("[data-testid=stop-first]").AttrOr("hidden", "no") != "no" || f.Runs["a"] == nil {
		t.Error("an active run can be deleted, or does not offer to stop it first")
	}
}

// TestFirstSheet: the page announces the first reconstructions for step 1.
func TestFirstSheet(t *testing.T) {
	f, h := runSite(t)
	f.Put("a", model.Running, 0)
	if text := handlertest.Document(t, handlertest.Get(t, h, "/runs/a")).Find("[data-part=no-samples]").Text(); !strings.Contains(text, "after step 1, then every 200 steps") {
		t.Errorf("%q", text)
	}
	f.Put("b", model.Running, 700)
	doc := handlertest.Document(t, handlertest.Get(t, h, "/runs/b"))
	if text := doc.Find("[data-testid=psnr-step]").Text(); !strings.HasPrefix(text, "at step ") {
		t.Errorf("the PSNR is %q", text)
	}
}

// TestMutualInformationHint: only pages of β-TCVAE explain the bound on its mutual information.
func TestMutualInformationHint(t *testing.T) {
	f, h := runSite(t)
	f.Put("hrr", model.Running, 10)
	f.Put("tc", model.Running, 10).Config = func() model.Config {
		c, _ := model.Default("betatcvae", "tiny", "shapes3d-synthetic")
		c.Batch = 32
		return c
	}()
	hint := func(id string) string {
		return handlertest.Document(t, handlertest.Get(t, h, "/runs/"+id)).Find("[data-testid=hint]").Text()
	}
	if got := hint("tc"); !strings.Contains(got, "cannot exceed log(batch) = log(32) = 3.47 nats") {
		t.Errorf("%q", got)
	}
	if got := hint("hrr"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestRunActions(t *testing.T) {
	f, h := runSite(t)
	f.Put("a", model.Running, 600)
	steps := []struct {
		name, path string
		form       url.Values
		status     int
		check      func(r *handlertest.Run) bool
	}{
		{"resume what runs", "/runs/a/resume", nil, 409, func(r *handlertest.Run) bool { return r.Attempt == 1 }},
		{"stop", "/runs/a/stop", nil, 303, func(r *handlertest.Run) bool { return r.State == model.Stopped && r.Checkpoint == 600 }},
		{"stop again", "/runs/a/stop", nil, 409, func(r *handlertest.Run) bool { return r.State == model.Stopped }},
		{"resume to nonsense", "/runs/a/resume", url.Values{"steps": {"far"}}, 422, func(r *handlertest.Run) bool { return r.State == model.Stopped }},
		{"resume further", "/runs/a/resume", url.Values{"steps": {"30,000"}}, 303, func(r *handlertest.Run) bool { return r.State == model.Running && r.Config.Steps == 30_000 }},
		{"rename and annotate", "/runs/a/edit", url.Values{"name": {"New"}, "notes": {"Seen."}}, 303, func(r *handlertest.Run) bool { return r.Name == "New" && r.Notes == "Seen." }},
		{"only the notes", "/runs/a/edit", url.Values{"notes": {""}}, 303, func(r *handlertest.Run) bool { return r.Name == "New" && r.Notes == "" }},
		{"a name too long", "/runs/a/edit", url.Values{"name": {strings.Repeat("x", 300)}}, 422, func(r *handlertest.Run) bool { return r.Name == "New" }},
	}
	for _, s := range steps {
		w := handlertest.Post(t, h, s.path, s.form)
		if w.Code != s.status || !s.check(f.Runs["a"]) {
			t.Errorf("%s: status %d, want %d; the run is %+v", s.name, w.Code, s.status, f.Runs["a"].Status)
		}
	}
	f.Runs["a"].State = model.Stopped
	if w := handlertest.Post(t, h, "/runs/a/delete", nil); w.Code != 303 || w.Header().Get("Location") != "/runs" || len(f.Runs) != 0 {
		t.Errorf("delete status %d", w.Code)
	}
}

func TestRunAPI(t *testing.T) {
	f, h := runSite(t)
	w := handlertest.Send(t, h, "POST", "/api/runs", `{"name":"By API","config":{"preset":"tiny","m":4,"widths":[8,8,8,8],"no_denoiser":true,"lr":0.01}}`)
	if w.Code != 201 || w.Header().Get("Location") != "/api/runs/run-1" {
		t.Fatalf("create status %d: %s", w.Code, w.Body)
	}
	if c := f.Runs["run-1"].Config; c.M != 4 || c.Widths != [4]int{8, 8, 8, 8} || !c.NoDenoiser || c.LR != 0.01 || c.Dataset != "shapes3d-synthetic" {
		t.Errorf("created with %+v", c)
	}
	failures := []struct {
		name, method, path, body string
		status                   int
		field                    string
	}{
		{"not JSON", "POST", "/api/runs", "hello", 422, ""},
		{"an array", "POST", "/api/runs", `[1]`, 422, ""},
		{"null", "POST", "/api/runs", `null`, 422, ""},
		{"fields of no model", "GET", "/api/fields?model=gan", "", 422, "model"},
		{"fields on no dataset", "GET", "/api/fields?dataset=moon", "", 422, "dataset"},
		{"a number for a name", "POST", "/api/runs", `{"name":1}`, 422, ""},
		{"an unknown preset", "POST", "/api/runs", `{"config":{"preset":"huge"}}`, 422, "preset"},
		{"an unknown key", "POST", "/api/runs", `{"conf":{}}`, 422, ""},
		{"an unknown hyperparameter", "POST", "/api/runs", `{"config":{"temperature":1}}`, 422, "temperature"},
		{"k too small", "POST", "/api/runs", `{"config":{"k":1}}`, 422, "k"},
		{"a negative rate", "POST", "/api/runs", `{"config":{"lr":-1}}`, 422, "lr"},
		{"an object for a number", "POST", "/api/runs", `{"config":{"lr":{"a":1}}}`, 422, "lr"},
		{"a list for a number", "POST", "/api/runs", `{"config":{"batch":[8]}}`, 422, "batch"},
		{"another model", "POST", "/api/runs", `{"config":{"model":"gan"}}`, 422, "model"},
		{"too large", "POST", "/api/runs", `{"name":"` + strings.Repeat("x", 300<<10) + `"}`, 413, ""},
		{"no such run", "GET", "/api/runs/gone", "", 404, ""},
		{"columns", "GET", "/api/runs/run-1/points?columns=many", "", 422, "columns"},
		{"smooth", "GET", "/api/runs/run-1/points?smooth=1", "", 422, "smooth"},
		{"log lines", "GET", "/api/runs/run-1/log?lines=-3", "", 422, "lines"},
		{"no such sample", "GET", "/api/runs/run-1/samples/12.png", "", 404, ""},
		{"a sample's step in words", "GET", "/api/runs/run-1/samples/ten.png", "", 404, ""},
		{"no such checkpoint", "GET", "/api/runs/run-1/checkpoints/12.safetensors", "", 404, ""},
		{"stop what has ended", "POST", "/api/runs/done/stop", "", 409, ""},
	}
	f.Put("done", model.Finished, 3)
	for _, tt := range failures {
		w := handlertest.Send(t, h, tt.method, tt.path, tt.body)
		var got struct {
			Error  string
			Fields map[string]string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status || got.Error == "" || (tt.field != "" && got.Fields[tt.field] == "") {
			t.Errorf("%s: status %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
		if strings.Contains(got.Error, "struct {") || len(got.Fields) > 1 {
			t.Errorf("%s: says %s", tt.name, w.Body)
		}
	}
	if w := handlertest.Send(t, h, "PATCH", "/api/runs/done", `{"notes":"n"}`); w.Code != 200 || f.Runs["done"].Notes != "n" {
		t.Errorf("patch status %d", w.Code)
	}
	if w := handlertest.Send(t, h, "POST", "/api/runs/done/resume", `{"steps":20}`); w.Code != 202 || f.Runs["done"].Config.Steps != 20 {
		t.Errorf("resume status %d: %s", w.Code, w.Body)
	}
	f.Runs["done"].State = model.Stopped
	if w := handlertest.Send(t, h, "DELETE", "/api/runs/done", ""); w.Code != 204 {
		t.Errorf("delete status %d", w.Code)
	}
	f.Broken = errors.New("disk on fire at /secret/path")
	if w := handlertest.Get(t, h, "/api/runs/a"); w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), handlers.Fault) {
		t.Errorf("an internal error returns %d %s", w.Code, w.Body)
	}
}

func TestPointsAndCSV(t *testing.T) {
	f, h := runSite(t)
	r := f.Put("a", model.Finished, 6000)
	r.Points[99].Values["total"] = math.NaN()
	var got struct {
		Head, Last int
		Series     map[string][]model.Sample
		Smoothed   map[string][]model.Sample
	}
	read := func(query string) {
		got.Series, got.Smoothed = nil, nil
		w := handlertest.Get(t, h, "/api/runs/a/points?"+query)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %v", query, w.Code, err)
		}
	}
	read("names=total")
	if got.Last != 5000 || got.Head != 6000 || len(got.Series["total"]) != 5000 {
		t.Errorf("a raw page ends at %d with %d points", got.Last, len(got.Series["total"]))
	}
	read("names=total&columns=50&smooth=0.9")
	m, weight := 0.0, 0.0
	want := map[int]float64{}
	for _, p := range r.Points { // by definition: m = α·m + (1−α)·x, y = m/(1−αⁿ), over every point
		if x := p.Values["total"]; !math.IsNaN(x) {
			m, weight = 0.9*m+0.1*x, 0.9*weight+0.1
		}
		want[p.Step] = m / weight
	}
	if n := len(got.Smoothed["total"]); n < 25 || n > 50 || len(got.Series["total"]) > 150 {
		t.Fatalf("%d averages for %d samples of 50 columns", n, len(got.Series["total"]))
	}
	for _, s := range got.Smoothed["total"] {
		if math.Abs(s.Value-want[s.Step]) > 1e-6*math.Abs(want[s.Step]) {
			t.Fatalf("at step %d the average is %v, want %v", s.Step, s.Value, want[s.Step])
		}
	}
	lines := strings.Split(strings.TrimSpace(handlertest.Get(t, h, "/api/runs/a/points.csv?names=total,psnr/eval").Body.String()), "\n")
	if len(lines) != 6001 || lines[0] != "step,total,psnr/eval" || lines[100] != "100,NaN," || !strings.HasPrefix(lines[6000], "6000,") {
		t.Errorf("the CSV has %d lines: %q, %q", len(lines), lines[0], lines[100])
	}
	if body, _ := io.ReadAll(handlertest.Get(t, h, "/api/runs/a/points.csv").Body); !strings.HasPrefix(string(body), "step,codebook,codebook/mean,") {
		t.Errorf("all series: %.60s", body)
	}
	r.Damaged = 28
	if body := handlertest.Get(t, h, "/api/runs/a/points.csv?names=total").Body.String(); !strings.HasPrefix(body, "# 28 damaged lines of points.jsonl are missing here\nstep,total\n") {
		t.Errorf("of damaged points: %.80s", body)
	}
	if body := handlertest.Get(t, h, "/runs/a").Body.String(); !strings.Contains(body, "28 measured steps are damaged") {
		t.Error("the page does not mention damaged points")
	}
}

// smallData is a user's dataset with fewer images than a batch.
type smallData struct{}

func (smallData) List(context.Context) []data.Info {
	return []data.Info{{Name: "mine", Title: "Mine", H: 64, W: 64, C: 3, Len: 24}}
}

// TestRunOnAFewImages: defaults do not exceed the number of images; larger values are rejected.
func TestRunOnAFewImages(t *testing.T) {
	f, h := handlertest.NewRuns(t.TempDir()), chi.NewRouter()
	runpage.Runs{Service: f, Datasets: smallData{}}.Routes(h)
	if w := handlertest.Send(t, h, "POST", "/api/runs", `{"config": {"dataset": "mine"}}`); w.Code != 201 {
		t.Fatalf("status %d, %s", w.Code, w.Body)
	}
	for _, run := range f.Runs {
		if c := run.Config; c.Batch != 24 || c.EvalImages != 24 {
			t.Errorf("a batch of %d, an evaluation of %d", c.Batch, c.EvalImages)
		}
	}
	for _, entry := range []string{"batch", "eval_images"} {
		w := handlertest.Send(t, h, "POST", "/api/runs", `{"config": {"dataset": "mine", "`+entry+`": 25}}`)
		if w.Code != 422 || !strings.Contains(w.Body.String(), "25 is more than the 24 images of mine") {
			t.Errorf("%s of 25: status %d, %s", entry, w.Code, w.Body)
		}
	}
}

// bundles returns one bundle, or not found.
type bundles struct{ asked []string }

func (b *bundles) Bundle(_ context.Context, name string) (bundle.Bundle, error) {
	b.asked = append(b.asked, name)
	if strings.HasPrefix(name, "none") {
		return bundle.Bundle{}, model.ErrNotFound
	}
	ones := func(shape ...int) checkpoint.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return checkpoint.Tensor{Shape: shape, Data: make([]float32, n)}
	}
	return bundle.Bundle{Name: name, File: checkpoint.File{Tensors: map[string]checkpoint.Tensor{"canvas": ones(1, 2, 4, 4), "out.weight": ones(3, 2, 3, 3)}}}, nil
}

func TestBundle(t *testing.T) {
	b := &bundles{}
	r := chi.NewRouter()
	runpage.Runs{Service: handlertest.NewRuns(t.TempDir()), Datasets: handlertest.Data{}, Bundles: b}.Routes(r)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/api/runs/run-1/bundle.zip?step=500", nil))
	archive, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
	if err != nil || w.Code != 200 || w.Header().Get("Content-Disposition") != `attachment; filename="run-1.zip"` {
		t.Fatalf("%d %v: %v", w.Code, w.Header(), err)
	}
	if f, err := archive.Open("run-1/SHA256SUMS"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	for path, code := range map[string]int{"/api/runs/none/bundle.zip": 404, "/api/runs/run-1/bundle.zip?step=x": 422} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != code {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, code, w.Body)
		}
	}
	if strings.Join(b.asked, " ") != "run-1@500 none" {
		t.Errorf("asked for %q", b.asked)
	}
}

// folders opens the folders of a data folder.
type folders string

func (d folders) Folder(_ context.Context, id string) (*folder.Folder, error) {
	return folder.Open(filepath.Join(string(d), id))
}

// The files of an evaluation and the points can be downloaded, but no other file of the folder.
func TestFilesOfARun(t *testing.T) {
	dir := t.TempDir()
	f, err := folder.Create(filepath.Join(dir, "run-1"), model.Config{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Append(model.Point{Step: 1, Values: map[string]float64{"total": 1}}), a.Close(), os.WriteFile(filepath.Join(dir, "run-1", "associations.json"), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	runpage.Runs{Service: handlertest.NewRuns(t.TempDir()), Datasets: handlertest.Data{}, Folders: folders(dir)}.Routes(r)
	for path, want := range map[string]struct {
		code int
		kind string
	}{
		"/api/runs/run-1/files/associations.json":  {200, "application/json"},
		"/api/runs/run-1/points.parquet":           {200, "application/vnd.apache.parquet"},
		"/api/runs/run-1/files/representation.npz": {404, ""},
		"/api/runs/run-1/files/config.json":        {404, ""},
		"/api/runs/run-1/files/..%2fconfig.json":   {404, ""},
		"/api/runs/run-2/files/associations.json":  {404, ""},
		"/api/runs/run-2/points.parquet":           {404, ""},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want.code || want.kind != "" && w.Header().Get("Content-Type") != want.kind {
			t.Errorf("%s: %d %s, want %+v", path, w.Code, w.Header().Get("Content-Type"), want)
		}
	}
}

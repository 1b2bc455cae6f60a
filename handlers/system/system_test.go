package system_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/system"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	ui "slotscope/views/system"
)

// The system page shows each GPU's reported state, the XLA plugin and the search path.
func TestSystemSaysWhatWasFound(t *testing.T) {
	report := compute.Report{Engine: "xla:cuda", Why: "A GPU and a plugin were found.", Driver: "580.65.06",
		GPUs: []gpu.GPU{{Index: 0, Name: "NVIDIA H200", Memory: 143771 << 20, Used: 21024 << 20, Utilization: 97, Temperature: 61, Power: 587.31},
			{Index: 1, Name: "NVIDIA GeForce GT 1030", Memory: 2048 << 20, Used: -1, Utilization: -1, Temperature: 34, Power: -1}},
		Plugin: gpu.Plugin{Path: "/site/jax_plugins/xla_cuda13/xla_cuda_plugin.so", Data: "/site/nvidia/cu13", Place: "JAX in a Python environment"},
		Tried:  []gpu.Place{{What: "$PJRT_PLUGIN_LIBRARY_PATH"}, {What: "JAX in a Python environment", Found: []string{"/site/jax_plugins/xla_cuda13/xla_cuda_plugin.so"}}}}
	r := chi.NewRouter()
	system.System{Engine: func(context.Context) system.EngineInfo { return system.EngineInfo{Report: report} }, DataDir: t.TempDir()}.Routes(r)
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, httptest.NewRequest("GET", "/system", nil))
	page, err := goquery.NewDocumentFromReader(answer.Body)
	if err != nil || answer.Code != 200 {
		t.Fatal(answer.Code, err)
	}
	var gpus []string
	page.Find("[data-testid=one-gpu]").Each(func(_ int, s *goquery.Selection) { gpus = append(gpus, strings.Join(strings.Fields(s.Text()), " ")) })
	want := []string{"NVIDIA H200 20.5 GiB of 140.4 GiB in use, 97 % busy, 61 °C, 587 W", "NVIDIA GeForce GT 1030 34 °C"}
	if strings.Join(gpus, "; ") != strings.Join(want, "; ") {
		t.Errorf("%q, want %q", gpus, want)
	}
	all := strings.Join(strings.Fields(page.Find("[data-testid=system]").Text()), " ")
	for _, part := range []string{"Enginexla:cuda", "WhyA GPU and a plugin were found.", "Driver580.65.06", "/site/jax_plugins/xla_cuda13/xla_cuda_plugin.so JAX in a Python environment",
		"CUDA libdevice/site/nvidia/cu13", "$PJRT_PLUGIN_LIBRARY_PATHnothing"} {
		if !strings.Contains(all, part) {
			t.Errorf("the page lacks %q: %s", part, all)
		}
	}
}

func TestSystem(t *testing.T) {
	dir := t.TempDir()
	r := chi.NewRouter()
	system.System{Engine: func(context.Context) system.EngineInfo {
		return system.EngineInfo{Slurm: "Runs go to SLURM.", Report: compute.Report{Engine: "cpu", Why: "No GPU.", Threads: 2, BF16: "AMX multiplies.", Driver: "535.1", Plugin: gpu.Plugin{Path: "/p.so", Place: "in JAX"},
			GPUs:  []gpu.GPU{{Name: "NVIDIA L40S", Memory: 48 << 30, Used: 3 << 29, Utilization: 97, Temperature: 61, Power: -1}},
			Tried: []gpu.Place{{What: "GoMLX's folders"}}}}
	}, DataDir: dir, Version: "v1", Started: time.Now()}.Routes(r)
	w := handlertest.Get(t, r, "/system")
	for _, want := range []string{"cpu", "No GPU.", "AMX multiplies.", dir, "v1", "iB of", "Runs go to SLURM.", "NVIDIA L40S", "1.5 GiB of 48.0 GiB", "97 %", "61 °C", "535.1", "/p.so", "in JAX", "GoMLX&#39;s folders"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	var got ui.SystemView
	w = handlertest.Get(t, r, "/api/system")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, err)
	}
	if got.Engine != "cpu" || got.BF16 != "AMX multiplies." || got.Free == 0 || got.Free > got.Disk || got.CPUs < 1 || len(got.GPU.GPUs) != 1 || got.GPU.GPUs[0].Power != -1 {
		t.Errorf("the API returns %+v", got)
	}
}

// told is a fake of Alerts; test is the error of TestAlert.
type told struct {
	plan model.AlertPlan
	all  []model.Alert
	test error
}

func (f told) AlertPlan() model.AlertPlan { return f.plan }
func (f told) Alerts(_ context.Context, q model.AlertQuery) ([]model.Alert, error) {
	return f.all[:min(len(f.all), max(1, q.Limit))], nil
}
func (f told) TestAlert(context.Context) error { return f.test }

func TestAlerts(t *testing.T) {
	f := told{plan: model.AlertPlan{Host: "hooks.example", Signed: true, Kinds: []model.AlertKind{model.AlertFailed}, Rules: []string{"infom/eval<0.3@5000"}},
		all: []model.Alert{{ID: 2, Run: "b", Text: "b failed", Time: time.Now(), Sending: model.Sending{State: model.SendQueued}}, {ID: 1, Run: "a", Text: "a ended", Time: time.Now()}}}
	site := func() http.Handler {
		r := chi.NewRouter()
		system.System{DataDir: t.TempDir(), Alerts: f}.Routes(r)
		return r
	}
	page := handlertest.Page(t, handlertest.Get(t, site(), "/system")).Find("[data-testid=alerts]").Text()
	for _, want := range []string{"hooks.example, signed", "failed", "infom/eval<0.3@5000", "b failed", "Sending to the webhook.", "a ended"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	w := handlertest.Get(t, site(), "/api/alerts?limit=1&after=0")
	var got struct {
		Plan   model.AlertPlan
		Alerts []model.Alert
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Plan.Host != "hooks.example" || len(got.Alerts) != 1 || got.Alerts[0].ID != 2 {
		t.Errorf("the API returns %s, %v", w.Body, err)
	}
	if w := handlertest.Get(t, site(), "/api/alerts?after=x&limit=-1"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("an invalid query returns %d", w.Code)
	}
	if w := handlertest.Post(t, site(), "/system/alerts/test", nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "accepted the test message") {
		t.Errorf("a delivered test message: %d", w.Code)
	}
	if w := handlertest.Post(t, site(), "/api/alerts/test", nil); w.Code != http.StatusNoContent {
		t.Errorf("a delivered test message: %d", w.Code)
	}
	f.test = fmt.Errorf("hooks.example answered 404 Not Found: %w", model.ErrConflict)
	doc := handlertest.Post(t, site(), "/system/alerts/test", nil)
	if text := handlertest.Document(t, doc).Find("[data-testid=tested]").Text(); doc.Code != http.StatusConflict || !strings.Contains(text, "answered 404") {
		t.Errorf("a test message that is not delivered: %d %q", doc.Code, text)
	}
	f = told{}
	if text := handlertest.Page(t, handlertest.Get(t, site(), "/system")).Find("[data-testid=alerts]").Text(); !strings.Contains(text, "start the server with --webhook") {
		t.Errorf("without a webhook: %s", text)
	}
}

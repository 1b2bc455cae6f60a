package system_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/system"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	ui "slotscope/views/system"
)

// The page of the system says of each GPU what it tells, what was found for XLA, and what was tried.
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
		t.Errorf("%q, not %q", gpus, want)
	}
	all := strings.Join(strings.Fields(page.Find("[data-testid=system]").Text()), " ")
	for _, part := range []string{"Enginexla:cuda", "WhyA GPU and a plugin were found.", "Driver580.65.06", "/site/jax_plugins/xla_cuda13/xla_cuda_plugin.so JAX in a Python environment",
		"CUDA's libdevice/site/nvidia/cu13", "$PJRT_PLUGIN_LIBRARY_PATHnothing"} {
		if !strings.Contains(all, part) {
			t.Errorf("the page does not say %q: %s", part, all)
		}
	}
}

func TestSystem(t *testing.T) {
	dir := t.TempDir()
	r := chi.NewRouter()
	system.System{Engine: func(context.Context) system.EngineInfo {
		return system.EngineInfo{Slurm: "Runs go to SLURM.", Report: compute.Report{Engine: "cpu", Why: "No GPU.", Threads: 2, Driver: "535.1", Plugin: gpu.Plugin{Path: "/p.so", Place: "in JAX"},
			GPUs:  []gpu.GPU{{Name: "NVIDIA L40S", Memory: 48 << 30, Used: 3 << 29, Utilization: 97, Temperature: 61, Power: -1}},
			Tried: []gpu.Place{{What: "GoMLX's folders"}}}}
	}, DataDir: dir, Version: "v1", Started: time.Now()}.Routes(r)
	w := handlertest.Get(t, r, "/system")
	for _, want := range []string{"cpu", "No GPU.", dir, "v1", "iB of", "Runs go to SLURM.", "NVIDIA L40S", "1.5 GiB of 48.0 GiB", "97 %", "61 °C", "535.1", "/p.so", "in JAX", "GoMLX&#39;s folders"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var got ui.SystemView
	w = handlertest.Get(t, r, "/api/system")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, err)
	}
	if got.Engine != "cpu" || got.Free == 0 || got.Free > got.Disk || got.CPUs < 1 || len(got.GPU.GPUs) != 1 || got.GPU.GPUs[0].Power != -1 {
		t.Errorf("the API answers %+v", got)
	}
}

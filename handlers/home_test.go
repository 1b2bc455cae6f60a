package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
	"slotscope/model/data"
	"slotscope/model/play"
	"slotscope/views"
)

func TestHome(t *testing.T) {
	f := newFakeRuns(t.TempDir())
	r := chi.NewRouter()
	(&handlers.Home{Runs: f, Datasets: fakeData{}}).Routes(r)
	doc := document(t, get(t, r, "/"))
	for _, way := range []string{"/play", "/runs/new", "/datasets"} {
		if doc.Find(".offer a[href='"+way+"']").Length() != 1 {
			t.Errorf("the page does not offer %s", way)
		}
	}
	if doc.Find("[data-testid=latest]").Length() != 0 {
		t.Error("latest runs are announced where there are none")
	}
	if w := get(t, r, "/home/swaps.png"); w.Code != 404 {
		t.Errorf("a picture of no checkpoint answers %d", w.Code)
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		f.put(id, model.Finished, 3)
	}
	f.draw("c", 200)
	doc = document(t, get(t, r, "/"))
	if n := doc.Find("[data-testid=latest] li").Length(); n != 5 {
		t.Errorf("%d latest runs are shown", n)
	}
	if src := doc.Find("[data-testid=offer-train] img").AttrOr("src", ""); !strings.HasPrefix(src, "/api/runs/c/samples/200.png") {
		t.Errorf("the newest reconstructions are %q", src)
	}
}

func TestHomeDrawsASwap(t *testing.T) {
	dir := t.TempDir()
	writePlayRun(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	r := chi.NewRouter()
	(&handlers.Home{Runs: newFakeRuns(dir), Datasets: fakeData{}, Library: library}).Routes(r)
	src := document(t, get(t, r, "/")).Find("[data-testid=offer-play] img").AttrOr("src", "")
	w := get(t, r, src)
	img, err := png.Decode(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%s answers %d: %v", src, w.Code, err)
	}
	if size := img.Bounds().Size(); size.X != 384 || size.Y != 128 {
		t.Errorf("the picture is %v, not three tiles of 128", size)
	}
}

func TestSystem(t *testing.T) {
	dir := t.TempDir()
	r := chi.NewRouter()
	handlers.System{Engine: func(context.Context) handlers.EngineInfo {
		return handlers.EngineInfo{Slurm: "Runs go to SLURM.", Report: compute.Report{Engine: "cpu", Why: "No GPU.", Threads: 2, Driver: "535.1", Plugin: gpu.Plugin{Path: "/p.so", Place: "in JAX"},
			GPUs:  []gpu.GPU{{Name: "NVIDIA L40S", Memory: 48 << 30, Used: 3 << 29, Utilization: 97, Temperature: 61, Power: -1}},
			Tried: []gpu.Place{{What: "GoMLX's folders"}}}}
	}, DataDir: dir, Version: "v1", Started: time.Now()}.Routes(r)
	w := get(t, r, "/system")
	for _, want := range []string{"cpu", "No GPU.", dir, "v1", "iB of", "Runs go to SLURM.", "NVIDIA L40S", "1.5 GiB of 48.0 GiB", "97 %", "61 °C", "535.1", "/p.so", "in JAX", "GoMLX&#39;s folders"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var got views.SystemView
	w = get(t, r, "/api/system")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, err)
	}
	if got.Engine != "cpu" || got.Free == 0 || got.Free > got.Disk || got.CPUs < 1 || len(got.GPU.GPUs) != 1 || got.GPU.GPUs[0].Power != -1 {
		t.Errorf("the API answers %+v", got)
	}
}

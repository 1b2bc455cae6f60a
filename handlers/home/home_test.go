package home_test

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/home"
	playpage "slotscope/handlers/play"
	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
	"slotscope/static"
)

func TestHome(t *testing.T) {
	f := handlertest.NewRuns(t.TempDir())
	r := chi.NewRouter()
	(&home.Home{Runs: f, Datasets: handlertest.Data{}}).Routes(r)
	doc := handlertest.Document(t, handlertest.Get(t, r, "/"))
	for _, way := range []string{"/play", "/runs/new", "/datasets"} {
		if doc.Find(".offer a[href='"+way+"']").Length() != 1 {
			t.Errorf("the page does not offer %s", way)
		}
	}
	if doc.Find("[data-testid=latest]").Length() != 0 {
		t.Error("the page shows latest runs although there are none")
	}
	if w := handlertest.Get(t, r, "/home/swaps.png"); w.Code != 404 {
		t.Errorf("the image without a checkpoint returns %d", w.Code)
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		f.Put(id, model.Finished, 3)
	}
	f.Draw("c", 200)
	doc = handlertest.Document(t, handlertest.Get(t, r, "/"))
	if n := doc.Find("[data-testid=latest] li").Length(); n != 5 {
		t.Errorf("%d latest runs are shown", n)
	}
	if src := doc.Find("[data-testid=offer-train] img").AttrOr("src", ""); !strings.HasPrefix(src, "/api/runs/c/samples/200.png") {
		t.Errorf("the newest reconstructions are %q", src)
	}
}

func TestHomeDrawsASwap(t *testing.T) {
	dir := t.TempDir()
	handlertest.WriteRun(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	r := chi.NewRouter()
	(&home.Home{Runs: handlertest.NewRuns(dir), Datasets: handlertest.Data{}, Library: library}).Routes(r)
	src := handlertest.Document(t, handlertest.Get(t, r, "/")).Find("[data-testid=offer-play] img").AttrOr("src", "")
	w := handlertest.Get(t, r, src)
	img, err := png.Decode(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%s returns %d: %v", src, w.Code, err)
	}
	if size := img.Bounds().Size(); size.X != 384 || size.Y != 128 {
		t.Errorf("the image is %v, want three tiles of 128", size)
	}
}

// The swap animation starts without a click and can be paused.
func TestHomeSwapsLive(t *testing.T) {
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	b := handlertest.Open(t, &home.Home{Runs: handlertest.NewRuns(dir), Datasets: handlertest.Data{}, Library: library}, &playpage.Play{Library: library, Static: static.Files(), Revision: "test"})
	src, err := library.Find("")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("checkpoints %s and %s; the page shows the first", src.Key, key)
	b.Open("/")
	b.Until("three pictures", `document.querySelectorAll('#swap .live img').length === 3`)
	b.Until("one swap", `/^A · A with B’s .+ · B$/.test(window.said = document.querySelector('#swap-said span').textContent)`)
	b.Until("another swap", `document.querySelector('#swap-said span').textContent !== window.said`)
	b.Click(`[data-testid=home-pause]`)
	b.Until("paused", `document.querySelector('[data-testid=home-pause]').textContent === 'Play' && location.pathname === '/'`)
	b.Until("the paper", `document.querySelector('[data-testid=paper]').href === 'https://arxiv.org/abs/2606.09725'`)
}

package run_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers/handlertest"
	runpage "slotscope/handlers/run"
	"slotscope/model"
	"slotscope/model/expect"
)

// decoder is a fake playground: images of swaps, and a matrix that is ready at the second request.
type decoder struct {
	mu    sync.Mutex
	asked map[string]int
	fails bool
}

func (d *decoder) Routes(r chi.Router) {
	r.Get("/api/play/{checkpoint}/sheet.png", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40"><rect width="200" height="40"/></svg>`)
	})
	r.Get("/api/play/{checkpoint}/usage", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		id := chi.URLParam(r, "checkpoint")
		d.asked[id]++
		w.Header().Set("Content-Type", "application/json")
		switch {
		case d.fails:
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"error":"The checkpoint is damaged."}`)
		case d.asked[id] == 1:
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"state":"counting","done":512,"of":4096}`)
		default:
			fmt.Fprint(w, `{"state":"ready","usage":{"images":4096,"factors":["shape"],"labels":[{},{}],"ownership":{"nmi":[[0.75,null]]}}}`)
		}
	})
}

// TestEvidenceByCheckpoint: loading, shown and failed; nothing is requested while collapsed.
func TestEvidenceByCheckpoint(t *testing.T) {
	expect.Long(t)
	f, d := handlertest.NewRuns(t.TempDir()), &decoder{asked: map[string]int{}}
	f.Put("a", model.Finished, 600)
	b := handlertest.Open(t, runpage.Runs{Service: f, Datasets: handlertest.Data{}}, d)
	open := func(id string) {
		b.Do(chromedp.Navigate(b.URL + "/runs/" + id))
		b.Until("the page is ready", `document.querySelector('[data-part=tools]')?.hidden === false`)
		b.Click("[data-testid=evidence] summary")
	}
	says := `document.querySelector('[data-part=evidence-says]').textContent`
	open("a")
	b.Until("progress is shown", says+`.includes('512 of 4,096')`)
	b.Until("the matrix is shown", `document.querySelector('.matrix tbody')?.textContent === 'shape0.750.00'`)
	b.Until("both pairs are shown", `[...document.querySelectorAll('[data-part=evidence-swaps] img')].filter((i) => i.naturalWidth === 200 && /@\d+\/sheet.png\?a=(0&b=240000|160000&b=479999)$/.test(i.src)).length === 2`)
	b.Until("the step is shown", `/^step /.test(document.querySelector('[data-part=evidence-step]').textContent)`)
	d.mu.Lock()
	d.fails = true
	d.mu.Unlock()
	open("a")
	b.Until("a failure is shown", says+` === 'The checkpoint is damaged.'`)
}

// TestNoEvidenceYet: a run without a checkpoint shows a message.
func TestNoEvidenceYet(t *testing.T) {
	b := openRuns(t)
	b.Runs.Put("fresh", model.Running, 3)
	b.Open("/runs/fresh?open=swaps-and-factors")
	b.Wait(text("[data-part=evidence-says]"), "No checkpoint yet.")
}

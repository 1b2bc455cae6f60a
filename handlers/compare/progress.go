package compare

import (
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/report"
)

const (
	mostWritings = 256         // downloads whose progress is kept at a time
	writtenKept  = time.Minute // how long progress is kept after the end, for late requests
)

// writing is the progress of a report download.
type writing struct {
	report.Progress
	Ended  bool   `json:"ended"`
	Failed bool   `json:"failed"`
	Name   string `json:"name"` // of the downloaded file
}

// writings holds the progress of downloads by the name given in the request. The zero value is empty and ready to use.
type writings struct {
	mu    sync.Mutex
	named map[string]writing
}

var progressName = regexp.MustCompile(`^[0-9A-Za-z-]{8,64}$`)

// follow records the progress of a report while it writes a file; the caller reports the outcome to end. Nothing is recorded if
// name is empty.
func (w *writings) follow(name, file string, rep *report.Report) (end func(error), err error) {
	if name == "" {
		return func(error) {}, nil
	}
	if !progressName.MatchString(name) {
		return nil, model.Invalid{"progress": fmt.Sprintf("%.80q is not valid; use 8 to 64 letters, digits and hyphens", name)}
	}
	now := writing{Name: file}
	if !w.set(name, now) {
		return nil, fmt.Errorf("progress %q is in use, or too many reports are being written: %w", name, model.ErrConflict)
	}
	rep.Told = func(p report.Progress) {
		now.Progress = p
		w.renew(name, now)
	}
	return func(err error) {
		now.Ended, now.Failed = true, err != nil
		w.renew(name, now)
		time.AfterFunc(writtenKept, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.named, name)
		})
	}, nil
}

func (w *writings) set(name string, now writing) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, used := w.named[name]; used || len(w.named) >= mostWritings {
		return false
	}
	if w.named == nil {
		w.named = map[string]writing{}
	}
	w.named[name] = now
	return true
}

func (w *writings) renew(name string, now writing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named[name] = now
}

// answer writes the progress of a download as JSON.
func (w *writings) answer(out http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	w.mu.Lock()
	now, known := w.named[name]
	w.mu.Unlock()
	if !known {
		return fmt.Errorf("progress %.80q: no report download has this name: %w", name, model.ErrNotFound)
	}
	out.Header().Set("Cache-Control", "no-store")
	return handlers.JSON(out, http.StatusOK, now)
}

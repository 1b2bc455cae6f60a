package run

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/whole"
)

// Bundler builds the export bundle of a checkpoint; bundle.Source implements it.
type Bundler interface {
	Bundle(ctx context.Context, name string) (bundle.Bundle, error)
}

// bundle sends the bundle of a run's newest checkpoint as a zip archive, or with ?step= of an earlier one.
func (h Runs) bundle(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if h.Bundles == nil || !model.ValidID(id) {
		return fmt.Errorf("a bundle of run %q: %w", id, model.ErrNotFound)
	}
	name := id
	if step := r.URL.Query().Get("step"); step != "" {
		n, err := handlers.StepsOf(step)
		if err != nil {
			return model.Invalid{"step": err.Error()}
		}
		name = fmt.Sprintf("%s@%d", id, n)
	}
	b, err := h.Bundles.Bundle(r.Context(), name)
	if err != nil {
		return err
	}
	b.License = r.URL.Query().Get("license")
	dir, remove, err := whole.Temp() // so that a failure gives an error response, not a truncated archive
	if err != nil {
		return err
	}
	defer remove()
	file, err := os.Create(filepath.Join(dir, id+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := b.WriteZip(file, id); err != nil {
		return err
	}
	handlers.AsFile(w, id+".zip")
	return handlers.SendFile(w, r, file.Name(), "application/zip")
}

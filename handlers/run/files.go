package run

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/exchange"
	"slotscope/model/folder"
	"slotscope/model/whole"
)

// Folders opens run folders; the error wraps model.ErrNotFound if the run is unknown.
type Folders interface {
	Folder(ctx context.Context, id string) (*folder.Folder, error)
}

// folderOf opens the folder of the run in the URL.
func (h Runs) folderOf(r *http.Request) (*folder.Folder, error) {
	id := chi.URLParam(r, "id")
	if h.Folders == nil || !model.ValidID(id) {
		return nil, fmt.Errorf("there is no run %q: %w", id, model.ErrNotFound)
	}
	return h.Folders.Folder(r.Context(), id)
}

// evaluationFile sends a file that an evaluation wrote in addition to its scores.
func (h Runs) evaluationFile(w http.ResponseWriter, r *http.Request) error {
	f, err := h.folderOf(r)
	if err != nil {
		return err
	}
	defer f.Close()
	name := chi.URLParam(r, "name")
	path, err := f.EvaluationFile(name)
	if err != nil {
		return err
	}
	if name != folder.NoiseFile {
		handlers.AsFile(w, f.ID()+"-"+name)
	}
	return handlers.SendFile(w, r, path, folder.EvaluationFiles()[name])
}

// parquet sends every point as a Parquet file.
func (h Runs) parquet(w http.ResponseWriter, r *http.Request) error {
	f, err := h.folderOf(r)
	if err != nil {
		return err
	}
	defer f.Close()
	dir, remove, err := whole.Temp()
	if err != nil {
		return err
	}
	defer remove()
	path := filepath.Join(dir, "points.parquet")
	if err := exchange.Parquet(f, path); err != nil {
		return err
	}
	handlers.AsFile(w, f.ID()+".parquet")
	return handlers.SendFile(w, r, path, "application/vnd.apache.parquet")
}

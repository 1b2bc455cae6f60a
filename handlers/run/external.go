package run

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/exchange"
)

// Logs stores runs that other programs log; exchange.Store implements it.
type Logs interface {
	Begin(name string, hparams map[string]any) (model.Run, error)
}

// seenWithin is the maximum wait for a new folder to be indexed.
const seenWithin = 5 * time.Second

// beginExternal creates a run of another program and returns it once it is indexed.
func (h Runs) beginExternal(w http.ResponseWriter, r *http.Request, name string, hparams map[string]any, configured bool) error {
	if configured {
		return model.Invalid{"config": "set the hyperparameters of an external run in external, not in config"}
	}
	if h.Logs == nil {
		return model.ErrNotFound
	}
	run, err := h.Logs.Begin(strings.TrimSpace(name), hparams)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(seenWithin); time.Now().Before(deadline); {
		if _, err := h.Service.Get(r.Context(), run.ID); !errors.Is(err, model.ErrNotFound) {
			break
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.Header().Set("Location", "/api/runs/"+run.ID)
	return handlers.JSON(w, http.StatusCreated, run)
}

// pointsBody is the maximum size of a batch of points, in bytes.
const pointsBody = 16 << 20

// logPoints appends a batch of points to an external run.
func (h Runs) logPoints(w http.ResponseWriter, r *http.Request) error {
	f, err := h.folderOf(r)
	if err != nil {
		return err
	}
	defer f.Close()
	var in struct {
		Points []model.Point `json:"points"`
	}
	if err := handlers.ReadJSON(w, r, pointsBody, &in); err != nil {
		return err
	}
	logged, err := exchange.Log(f, in.Points)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, logged)
}

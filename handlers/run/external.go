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

// Logs keeps runs that other programs log; exchange.Store is one.
type Logs interface {
	Begin(name string, hparams map[string]any) (model.Run, error)
}

// seenWithin is how long a new folder may take until the index has it.
const seenWithin = 5 * time.Second

// beginExternal makes a run of another program and answers it once the index has it.
func (h Runs) beginExternal(w http.ResponseWriter, r *http.Request, name string, hparams map[string]any, configured bool) error {
	if configured {
		return model.Invalid{"config": "a run of another program takes its hyperparameters in external"}
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

// pointsBody is the most bytes of one batch of points.
const pointsBody = 16 << 20

// logPoints appends a batch to a run of another program.
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

package workbench

import (
	"context"
	"net/http"

	"slotscope/handlers"
)

// socket says {"type":"changed"} whenever something about any run is new, wherever it was started; the page then asks for the list again.
func (h Workbench) socket(w http.ResponseWriter, r *http.Request) {
	open := false
	handlers.SendNews(w, r, h.Runs.Watch, func(context.Context) any {
		if !open { // the page has just been drawn
			open = true
			return nil
		}
		return map[string]string{"type": "changed"}
	})
}

package workbench

import (
	"context"
	"net/http"

	"slotscope/handlers"
)

// socket sends {"type":"changed"} after every change of any run; the page then reloads the list.
func (h Workbench) socket(w http.ResponseWriter, r *http.Request) {
	open := false
	handlers.SendNews(w, r, h.Runs.Watch, func(context.Context) any {
		if !open { // the page was just rendered
			open = true
			return nil
		}
		return map[string]string{"type": "changed"}
	})
}

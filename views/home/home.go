// Package home renders the home page.
package home

import (
	"fmt"

	"slotscope/model"
	"slotscope/views"
)

// HomeView is the view of the home page.
type HomeView struct {
	Runs       []model.Run // newest first, a few
	Total      int         // number of runs
	Checkpoint string      // key of the checkpoint to demonstrate; empty if none
	Trained    string      // describes how it was trained
	Dataset    string      // name of the first dataset; empty if none
	Images     int         // number of its images
	Factors    int         // number of its factors
	Sheet      string      // URL of the newest reconstructions; empty if none
}

// TrainedSaid describes how a checkpoint was trained.
func TrainedSaid(c model.Config, step int) string {
	return fmt.Sprintf("%s %s, %s steps on %s", model.ModelTitle(c.Model), c.Preset, views.Count(step), c.Dataset)
}

// Package home renders the home page.
package home

import "slotscope/model"

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

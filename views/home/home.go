// Package home draws the first page.
package home

import "slotscope/model"

// HomeView is the first page.
type HomeView struct {
	Runs       []model.Run // newest first, a few
	Total      int         // runs that there are
	Checkpoint string      // key of the one to play with; empty for none
	Trained    string      // how it came to be
	Dataset    string      // the first dataset's name; empty for none
	Images     int         // in it
	Factors    int         // that it varies
	Sheet      string      // address of the newest reconstructions; empty for none
}

package views

import (
	"slotscope/model"
)

// RunName is what a run is called: its name, or where it has none its model, preset and seed.
func RunName(run model.Run) string {
	if run.Name != "" {
		return run.Name
	}
	return model.ModelTitle(run.Config.Model) + " " + run.Config.Preset + ", seed " + Count(int(run.Config.Seed))
}

// TimeLeft writes how long a running run will take, or a dash.
func TimeLeft(run model.Run) string {
	if run.State != model.Running || run.SecondsLeft <= 0 {
		return "–"
	}
	return Duration(run.SecondsLeft)
}

// RunRate writes the images per second of a run, or a dash.
func RunRate(run model.Run) string {
	if !run.State.Live() && run.ImagesPerSecond <= 0 {
		return "–"
	}
	return Rate(run.ImagesPerSecond)
}

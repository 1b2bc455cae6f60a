package views

import (
	"slotscope/model"
)

// RunName returns a run's name, or its model, preset and seed if it has none.
func RunName(run model.Run) string {
	if run.Name != "" {
		return run.Name
	}
	return model.ModelTitle(run.Config.Model) + " " + run.Config.Preset + ", seed " + Count(int(run.Config.Seed))
}

// TimeLeft formats the remaining time of a running run, or a dash.
func TimeLeft(run model.Run) string {
	if run.State != model.Running || run.SecondsLeft <= 0 {
		return "–"
	}
	return Duration(run.SecondsLeft)
}

// RunRate formats a run's images per second, or a dash.
func RunRate(run model.Run) string {
	if !run.State.Live() && run.ImagesPerSecond <= 0 {
		return "–"
	}
	return Rate(run.ImagesPerSecond)
}

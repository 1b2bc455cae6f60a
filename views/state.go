package views

import (
	"slotscope/model"
)

// RunName is what a run is called: its name, or where it has none its model, preset and seed.
func RunName(run model.Run) string {
	if run.Name != "" {
		return run.Name
	}
	return model.ModelTitle(run.Config.Model) + " " + run.Config.Preset + ", seed " + count(int(run.Config.Seed))
}

func timeLeft(run model.Run) string {
	if run.State != model.Running || run.SecondsLeft <= 0 {
		return "–"
	}
	return duration(run.SecondsLeft)
}

func runRate(run model.Run) string {
	if !run.State.Live() && run.ImagesPerSecond <= 0 {
		return "–"
	}
	return rate(run.ImagesPerSecond)
}

package handlers

// maxSmooth is the strongest smoothing offered; 1 would never move.
const maxSmooth = 0.999

// Limits of one answer of points: columns per series, and steps where no columns are asked for.
const (
	maxColumns = 10_000
	rawSteps   = 5_000
)

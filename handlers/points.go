package handlers

import "slotscope/model"

// MaxSmooth is the strongest smoothing offered; 1 would never move.
const MaxSmooth = 0.999

// Limits of one answer of points: columns per series, and steps where no columns are asked for.
const (
	MaxColumns = model.MostColumns
	RawSteps   = 5_000
)

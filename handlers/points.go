package handlers

import "slotscope/model"

// MaxSmooth is the maximum smoothing weight; 1 would give a constant.
const MaxSmooth = 0.999

// Limits of a points response: columns per series, and steps if no columns are requested.
const (
	MaxColumns = model.MostColumns
	RawSteps   = 5_000
)

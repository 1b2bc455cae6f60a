package model

// TruthTolerance is what a swap may lose against the reconstruction that it starts from and still be a hit, in dB.
const TruthTolerance = 3

// LeakFrom is the share of pairs from which on a factor that a swap should leave alone is named as its leak.
const LeakFrom = 0.05

// SwapTruth holds swaps against the pictures that they should give, which exist where a dataset holds every combination of its factors. A and B
// are random images that differ in every factor; the slots that stand for factor f are put from B into A; T is the dataset's image of A's factors
// with f from B. metric.SwapHit says when that is a hit.
type SwapTruth struct {
	Pairs     int     `json:"pairs"`
	Tolerance float64 `json:"tolerance"` // dB

	// Single and Group are shares of hits over all pairs and owned slots, and over all pairs and groups with an owned slot, with 95% intervals
	// over pairs. They are 0 where no factor owns a slot.
	Single   Interval `json:"single"`
	Group    Interval `json:"group"`
	Coverage Score    `json:"coverage"` // share of factors that own a slot

	Slots  []TruthShare `json:"slots"`  // [m]
	Groups []TruthShare `json:"groups"` // as in Ownership

	Baseline Score `json:"baseline_psnr"` // dB, mean PSNR of A's reconstructions against A
}

// TruthShare is the swaps of one slot, or of one group of slots.
type TruthShare struct {
	Factor int      `json:"factor"` // that should change; −1 of a slot that no factor owns, which has no hits
	Slots  []int    `json:"slots"`
	Owned  bool     `json:"owned"`
	Hits   Interval `json:"hits"` // share of pairs
	PSNR   Score    `json:"psnr"` // dB, mean over pairs, of the decoded swap against T

	Unchanged Score   `json:"unchanged"`      // share of pairs whose decoded swap is nearer to A than to T: the factor did not change
	Leak      []Score `json:"leak,omitempty"` // [F] share of pairs in which a probe reads a factor otherwise than from A's reconstruction; nil without probe
	LeaksMost int     `json:"leaks_most"`     // the other factor of the largest Leak, −1 where none reaches LeakFrom
}

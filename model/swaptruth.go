package model

// TruthTolerance is the PSNR loss, in dB, relative to the reconstruction of A, up to which a swap is a hit.
const TruthTolerance = 3

// LeakFrom is the share of pairs from which a factor that a swap should not change is reported as its leak.
const LeakFrom = 0.05

// SwapTruth compares swaps with the true images that they should produce, which exist if a dataset has every combination of its factors.
// A and B are random images that differ in every factor; the slots of factor f are copied from B into A; T is the dataset's image with
// A's factors and f from B. metric.SwapHit decides whether a swap is a hit.
type SwapTruth struct {
	Pairs     int     `json:"pairs"`
	Tolerance float64 `json:"tolerance"` // dB

	// Single and Group are the shares of hits over all pairs and owned slots, and over all pairs and groups with an owned slot, with 95%
	// intervals over pairs. They are 0 if no factor owns a slot.
	Single   Interval `json:"single"`
	Group    Interval `json:"group"`
	Coverage Score    `json:"coverage"` // share of factors that own a slot

	Slots  []TruthShare `json:"slots"`  // [m]
	Groups []TruthShare `json:"groups"` // as in Ownership

	Baseline Score `json:"baseline_psnr"` // dB, mean PSNR of A's reconstructions against A
}

// TruthShare holds the swap results of one slot or one group of slots.
type TruthShare struct {
	Factor int      `json:"factor"` // factor that should change; −1 for a slot that no factor owns, which has no hits
	Slots  []int    `json:"slots"`
	Owned  bool     `json:"owned"`
	Hits   Interval `json:"hits"` // share of pairs
	PSNR   Score    `json:"psnr"` // dB, mean over pairs, of the decoded swap against T

	Unchanged Score   `json:"unchanged"`      // share of pairs whose decoded swap is nearer to A than to T: the factor did not change
	Leak      []Score `json:"leak,omitempty"` // [F] share of pairs in which a probe reads a factor differently than from A's reconstruction; nil without a probe
	LeaksMost int     `json:"leaks_most"`     // other factor with the largest Leak, −1 if none reaches LeakFrom
}

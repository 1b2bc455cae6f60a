package model

// Recombination measures whether codes of training images decode to factor combinations absent from training. T is an image; A and B
// are training images: A has T's factors except one, B shares that one with T and differs from A in every other varying factor.
// The factor's slots are copied from B into A and decoded, and the result is compared with T by metric.SwapHit.
type Recombination struct {
	Tolerance float64 `json:"tolerance"` // dB

	Unseen Recombined `json:"unseen"` // T is a held-out image
	Seen   Recombined `json:"seen"`   // T is a training image: the cost of recombination alone
}

// Recombined holds the results for targets T of one kind. Intervals are 95%, over targets.
type Recombined struct {
	Targets int `json:"targets"` // each with one factor, drawn at random among those that have A and B
	Owned   int `json:"owned"`   // targets whose factor owns slots

	Hits           Interval `json:"hits"`            // share of all targets; a target whose factor owns no slots is a miss
	PSNR           Interval `json:"psnr"`            // dB, of the decoded recombination against T, over targets whose factor owns slots
	Reconstruction Interval `json:"reconstruction"`  // dB, of the model's own reconstruction of T, over all targets
	Unchanged      Score    `json:"unchanged_share"` // share of targets whose factor owns slots: the decoded image is at least as near to A as to T
}

package model

// Recombination says whether codes of images that training showed decode to combinations of factors that it did not. T is an image, A and B
// are images of the training set: A has T's factors but for one, B has that one from T and differs from A in every other factor that varies.
// The slots of the factor are put from B into A and decoded, and that picture is held against T by metric.SwapHit.
type Recombination struct {
	Tolerance float64 `json:"tolerance"` // dB

	Unseen Recombined `json:"unseen"` // T is an image that training left out
	Seen   Recombined `json:"seen"`   // T is an image of the training set: what recombining costs alone
}

// Recombined is what targets T of one kind say. Intervals are 95%, over targets.
type Recombined struct {
	Targets int `json:"targets"` // each with one factor, drawn at random among those for which there are A and B
	Owned   int `json:"owned"`   // whose factor owns slots

	Hits           Interval `json:"hits"`            // share of all targets; one whose factor owns no slots is a miss
	PSNR           Interval `json:"psnr"`            // dB, of the decoded recombination against T, over targets whose factor owns slots
	Reconstruction Interval `json:"reconstruction"`  // dB, of the model's own reconstruction of T, over all targets
	Unchanged      Score    `json:"unchanged_share"` // of targets whose factor owns slots: the picture is at least as near to A as to T
}

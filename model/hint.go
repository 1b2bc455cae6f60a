package model

import (
	"fmt"
	"math"
)

// publishedBatch is the batch that the paper trains every model with.
const publishedBatch = 128

// Hints are what a valid configuration implies that may surprise, a sentence by field; nil for nothing.
func (c Config) Hints() map[string]string {
	if c.Model == "tripod" && c.Precision == "" {
		return map[string]string{"precision": "On a GPU tf32 rounds away most of Tripod's second differences; choose float32."}
	}
	if c.Model != "betatcvae" || c.Batch < 1 || c.Batch >= publishedBatch {
		return nil
	}
	return map[string]string{"batch": fmt.Sprintf("β-TCVAE estimates mutual information within a batch, so its estimate is at most log(batch) = %.1f nats here; choose %d or more, as published.",
		math.Log(float64(c.Batch)), publishedBatch)}
}

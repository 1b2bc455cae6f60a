package model

import (
	"fmt"
	"math"
)

// publishedBatch is the paper's batch size for every model.
const publishedBatch = 128

// Hints returns warnings about a valid configuration, one sentence per field; nil if none.
func (c Config) Hints() map[string]string {
	if c.Model == "tripod" && c.Precision == "" {
		return map[string]string{"precision": "On a GPU, tf32 rounds away most of Tripod's second differences; choose float32."}
	}
	if c.Model != "betatcvae" || c.Batch < 1 || c.Batch >= publishedBatch {
		return nil
	}
	return map[string]string{"batch": fmt.Sprintf("β-TCVAE estimates mutual information within a batch, so its estimate is at most log(batch) = %.1f nats; choose a batch of %d or more, as in the paper.",
		math.Log(float64(c.Batch)), publishedBatch)}
}

// Package metric measures representations and reconstructions: one implementation of each score, in plain Go.
package metric

import "math"

// Perplexity is the number of codebook entries in effective use: the exponential of the entropy of the entry frequencies.
//
//	exp(−Σ_j p_j ln p_j),  p_j = counts_j / Σ counts        1 for a single entry, k for even use of k entries
//
// It is 0 if nothing was counted.
func Perplexity(counts []int) float64 {
	for _, c := range counts {
		if c > 0 {
			return math.Exp(Entropy(counts))
		}
	}
	return 0
}

// Usage counts which of k entries the last batches used. It covers a window because a single batch underestimates usage.
type Usage struct {
	window   [][]int32 // ring buffer of the codes of the last batches
	next     int
	counts   []int // over the window
	batch    []int // of the last batch
	distinct int   // entries with a count in the window
}

// NewUsage counts codes 0 … k−1 over a window of the given number of batches.
func NewUsage(k, batches int) *Usage {
	return &Usage{window: make([][]int32, batches), counts: make([]int, k), batch: make([]int, k)}
}

// Add counts one batch of codes and drops the batch that leaves the window.
func (u *Usage) Add(codes []int32) {
	for _, c := range u.window[u.next] {
		if u.counts[c]--; u.counts[c] == 0 {
			u.distinct--
		}
	}
	clear(u.batch)
	for _, c := range codes {
		u.batch[c]++
		if u.counts[c]++; u.counts[c] == 1 {
			u.distinct++
		}
	}
	u.window[u.next] = append(u.window[u.next][:0], codes...)
	u.next = (u.next + 1) % len(u.window)
}

// Batch is the perplexity of the last batch alone.
func (u *Usage) Batch() float64 { return Perplexity(u.batch) }

// Window is the perplexity over the window.
func (u *Usage) Window() float64 { return Perplexity(u.counts) }

// Used is the number of entries used at least once within the window.
func (u *Usage) Used() int { return u.distinct }

package db

import "fmt"

// A blob's key contains, from its highest bits down, the run's key, the level, the series' key and the blob's number n in its
// series. Blobs of a series are therefore adjacent, and so are the series of a level.
const (
	numberBits = 25 // blobs per series and level
	seriesBits = 16 // series names of all runs
	levelBits  = 2
	runBits    = 20

	seriesAt = numberBits
	levelAt  = seriesAt + seriesBits
	runAt    = levelAt + levelBits
)

// blobKey returns the key of blob n of a series at a level; level 0 is the samples.
func blobKey(run int64, level int, series int64, n int) int64 {
	return run<<runAt | int64(level)<<levelAt | series<<seriesAt | int64(n)
}

// numberOf returns the blob's number in a key.
func numberOf(key int64) int { return int(key & (1<<numberBits - 1)) }

// fits returns an error unless keys have room for a run and a series with blobs up to step last.
func fits(run, series int64, last int) error {
	switch {
	case run >= 1<<runBits:
		return fmt.Errorf("the index is limited to %d runs; delete it and the server rebuilds it from the run folders", 1<<runBits-1)
	case series >= 1<<seriesBits:
		return fmt.Errorf("the index is limited to %d series names; delete it and the server rebuilds it from the run folders", 1<<seriesBits-1)
	case last/blockSteps >= 1<<numberBits:
		return fmt.Errorf("step %d exceeds %d, the largest the index can store", last, blockSteps<<numberBits-1)
	}
	return nil
}

package train

import (
	"time"

	"slotscope/model/host"
)

// watched measures this process's CPU and memory use, at most every watchEvery.
type watched struct {
	at   time.Time
	used time.Duration // processor time at that moment
}

// take returns the process's series: process/cpu, the average number of busy processors since the last call, and process/memory, the
// resident memory in GiB. It returns nil if it is not due, and omits values that the system does not provide.
func (w *watched) take(now time.Time) map[string]float64 {
	if !w.at.IsZero() && now.Sub(w.at) < watchEvery {
		return nil
	}
	used, held := host.CPU(), host.Resident()
	values := map[string]float64{}
	if !w.at.IsZero() && used > 0 {
		values["process/cpu"] = (used - w.used).Seconds() / now.Sub(w.at).Seconds()
	}
	if held > 0 {
		values["process/memory"] = float64(held) / (1 << 30)
	}
	w.at, w.used = now, used
	return values
}

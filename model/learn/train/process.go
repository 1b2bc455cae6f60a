package train

import (
	"time"

	"slotscope/model/host"
)

// watched measures what this process takes of the machine, at most every watchEvery.
type watched struct {
	at   time.Time
	used time.Duration // processor time at that moment
}

// take returns what a point tells of the process since the last call: process/cpu, the processors that it kept busy on average, and
// process/memory, the memory that it holds in GiB; nil where it is not due, and what the system does not tell is left out.
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

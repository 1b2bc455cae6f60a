package train

import "time"

// rate measures steps per second over the last rateOver interval.
type rate struct{ marks []mark }

type mark struct {
	at   time.Time
	step int
}

func (r *rate) restart(now time.Time, step int) { r.marks = []mark{{now, step}} }

// add records that step was reached and returns the steps per second since the oldest mark in the interval; 0 if no step was added.
func (r *rate) add(now time.Time, step int) float64 {
	if step > r.marks[len(r.marks)-1].step {
		r.marks = append(r.marks, mark{now, step})
	}
	for len(r.marks) > 2 && now.Sub(r.marks[1].at) >= rateOver {
		r.marks = r.marks[1:]
	}
	oldest := r.marks[0]
	if seconds := now.Sub(oldest.at).Seconds(); seconds > 0 && step > oldest.step {
		return float64(step-oldest.step) / seconds
	}
	return 0
}

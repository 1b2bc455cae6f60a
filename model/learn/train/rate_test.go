package train

import (
	"testing"
	"time"
)

// TestRate checks that the speed covers the last interval only, and nothing before a restart, such as compiling.
func TestRate(t *testing.T) {
	var r rate
	began := time.Unix(0, 0)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	r.restart(at(25), 4) // four steps whose call took 25 s to compile
	for _, c := range []struct {
		seconds float64
		step    int
		want    float64
	}{
		{25, 1, 0}, {25.1, 4, 0}, // steps of that call, recorded during the next one
		{26, 8, 4}, {27, 12, 4}, {27, 12, 4}, {30, 44, 8},
		{40, 444, 40}, {41, 484, 40},
	} {
		if got := r.add(at(c.seconds), c.step); got != c.want {
			t.Errorf("after %g s, at step %d: %g steps/s, want %g", c.seconds, c.step, got, c.want)
		}
	}
}

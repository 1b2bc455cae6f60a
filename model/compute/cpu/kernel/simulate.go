//go:build cgo

package kernel

import "slices"

// simulation is the state of a pool whose threads are simulated.
type simulation struct {
	free   []int64 // when each thread finishes its work so far, within a call, in nanoseconds
	inside bool    // a call is running, so nested calls are part of a range
	times  Imagined
}

// Imagined has the times of calls on a pool of simulated threads, in nanoseconds.
type Imagined struct {
	Caller int64 // processor time of the caller in them, including the clock
	Ranges int64 // processor time of their ranges
	Span   int64 // time that would have passed with one core per thread
}

// Minus returns the times added since an earlier reading.
func (t Imagined) Minus(u Imagined) Imagined {
	return Imagined{t.Caller - u.Caller, t.Ranges - u.Ranges, t.Span - u.Span}
}

// Simulated returns a pool of that many threads, all of which are simulated on the caller. Ranges are the same as for real threads, but
// are computed one after another and timed. Imagined returns the time the calls would have taken if every thread had its own core and took
// the next range when it is free, like the threads of a real pool. The simulation ignores the time to wake threads, and memory is as fast
// for all threads as for one. Only one goroutine at a time may use the pool.
func Simulated(threads int) *Pool {
	p := &Pool{threads: max(threads, 1)}
	p.simulation = &simulation{free: make([]int64, p.threads)}
	return p
}

// Imagined returns the times of all calls so far; ok is false if threads are real.
func (p *Pool) Imagined() (t Imagined, ok bool) {
	if p.simulation == nil {
		return t, false
	}
	return p.simulation.times, true
}

// run computes the ranges of a call.
func (s *simulation) run(r ranges, t task) {
	if s.inside {
		for i := range r.chunks {
			t.do(r.at(i), r.at(i+1))
		}
		return
	}
	s.inside = true
	defer func() { s.inside = false }()
	clear(s.free)
	s.times.Caller += measured(func() {
		for i := range r.chunks {
			took := measured(func() { t.do(r.at(i), r.at(i+1)) })
			next := slices.Index(s.free, slices.Min(s.free))
			s.free[next] += took
			s.times.Ranges += took
		}
	})
	s.times.Span += slices.Max(s.free)
}

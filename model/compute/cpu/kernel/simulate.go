//go:build cgo

package kernel

import "slices"

// simulation is what a pool knows whose threads are imagined.
type simulation struct {
	free   []int64 // when each thread ends what it took so far, within a call, in nanoseconds
	inside bool    // a call, so that calls inside it are part of a range
	times  Imagined
}

// Imagined is what calls on a pool of imagined threads took, in nanoseconds.
type Imagined struct {
	Caller int64 // processor time of the caller in them, the clock's included
	Ranges int64 // processor time of their ranges
	Span   int64 // what would have passed on that many cores
}

// Minus is what was added since an earlier reading.
func (t Imagined) Minus(u Imagined) Imagined {
	return Imagined{t.Caller - u.Caller, t.Ranges - u.Ranges, t.Span - u.Span}
}

// Simulated makes a pool of that many threads, all but the caller's imagined: ranges are those of so many threads, but computed one after
// another, and each is timed. Imagined says how long the calls would have taken if every thread had a core of its own and took the next
// range when it is free, as those of a pool do. To wake threads takes no time there, and memory is as fast for all as it is for one. One
// goroutine at a time uses it.
func Simulated(threads int) *Pool {
	p := &Pool{threads: max(threads, 1)}
	p.simulation = &simulation{free: make([]int64, p.threads)}
	return p
}

// Imagined is what all calls took so far; ok is false where threads are real.
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

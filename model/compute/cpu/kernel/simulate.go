//go:build cgo

package kernel

import (
	"math"
	"runtime"
	"slices"
)

// simulation is the state of a pool whose threads are simulated. Thread 0 is the caller.
type simulation struct {
	alone  []int64 // when each thread finishes its ranges of a call if nothing else is computed, in nanoseconds
	free   []int64 // when each thread is free, since the beginning
	read   int64   // processor time of the caller that the clock includes
	inside bool    // a call is running, so nested calls are part of a range
	jobs   []*late // that have not ended, in order
	begun  *late   // the job that is being recorded
	times  Imagined
	part   part               // the last call's
	past   map[part][][]int64 // last times of a call's ranges
}

// part is the place of a call in a computation that is repeated, see Repeat: part at, and the number of the call there. of is nil if it has none.
type part struct {
	of       any
	at, call int
}

// late is a job of a simulated pool: it has been computed and timed, but simulated threads that are free compute it later.
type late struct {
	calls [][]int64 // times of the ranges that are left of its calls; what the job itself computes between them is a call of one range
	after []*late   // jobs that have to end before it begins
	ready int64     // when the ranges of the current call can begin
	ends  int64     // when those that have begun end
}

// Imagined has the times of calls on a pool of simulated threads, in nanoseconds.
type Imagined struct {
	Serial int64 // processor time of the caller between them
	Ranges int64 // processor time of their ranges
	Span   int64 // time that would have passed with one core per thread, if nothing else were computed meanwhile
	Clock  int64 // time that would have passed since the beginning, with jobs in the background
}

// Minus returns the times added since an earlier reading.
func (t Imagined) Minus(u Imagined) Imagined {
	return Imagined{t.Serial - u.Serial, t.Ranges - u.Ranges, t.Span - u.Span, t.Clock - u.Clock}
}

// Simulated returns a pool of that many threads, all of which are simulated on the caller. Ranges are the same as for real threads, but
// are computed one after another and timed. Imagined returns the time the calls would have taken if every thread had its own core and took
// the next range when it is free, like the threads of a real pool: of a job if there is no other. The simulation ignores the time to wake
// threads, and memory is as fast for all threads as for one. Only one goroutine at a time may use the pool.
func Simulated(threads int) *Pool {
	p := newPool(max(threads, 1), callTickets, &scratches{})
	p.simulation = &simulation{alone: make([]int64, p.threads), free: make([]int64, p.threads), past: map[part][][]int64{}}
	return p
}

// Imagined returns the times of all calls so far, and of the caller between them; ok is false if threads are real.
func (p *Pool) Imagined() (t Imagined, ok bool) {
	if p.simulation == nil {
		return t, false
	}
	p.simulation.advance()
	return p.simulation.times, true
}

// Resume stops the clock of simulated threads from the last call or reading until now.
func (p *Pool) Resume() {
	if p.simulation != nil {
		p.simulation.read = threadTime()
	}
}

// Repeat announces the calls of part at of a computation, which must be comparable and makes the same calls each time; nil ends that. On simulated threads,
// each of their ranges takes the median of its last times: a call takes as long as its slowest range, so what slows down one of many would slow down all.
func (p *Pool) Repeat(of any, at int) {
	if p.simulation != nil {
		p.simulation.part = part{of: of, at: at}
	}
}

// remembered is the number of last times of which simulated threads take the median.
const remembered = 9

// usual returns the usual times of a call's ranges, given the last ones.
func (s *simulation) usual(took []int64) []int64 {
	if s.part.of == nil {
		return took
	}
	s.part.call++
	past := append(s.past[s.part], took)
	if len(past[0]) != len(took) {
		past = past[len(past)-1:]
	}
	past = past[max(0, len(past)-remembered):]
	s.past[s.part] = past
	usual, times := make([]int64, len(took)), make([]int64, len(past))
	for i := range usual {
		for k, took := range past {
			times[k] = took[i]
		}
		slices.Sort(times)
		usual[i] = times[len(times)/2]
	}
	return usual
}

// run computes the ranges of a call. Its clock stands still while the caller gives way, which on one thread takes longer, and happens more often, than on many.
func (s *simulation) run(r ranges, t task, caller *turn) {
	if !s.inside && caller.over() {
		s.advance()
		runtime.Gosched()
		s.read = threadTime()
	}
	if s.inside {
		for i := range r.chunks {
			t.do(r.at(i))
		}
		return
	}
	s.inside = true
	defer func() { s.inside = false }()
	clear(s.alone)
	s.advance()
	began, ends := s.times.Clock, s.times.Clock
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := s.usual(measure(r, t))
	for _, d := range took {
		s.alone[first(s.alone)] += d
		s.times.Ranges += d
		if s.begun != nil {
			continue
		}
		for j := range s.free {
			s.free[j] = max(s.free[j], began)
		}
		j := first(s.free)
		s.free[j] += d
		ends = max(ends, s.free[j])
	}
	s.times.Span += slices.Max(s.alone)
	if s.begun != nil {
		s.begun.calls = append(s.begun.calls, took)
	}
	s.read, s.times.Clock = threadTime(), ends
}

// measure computes the ranges of a call, each lane's after each other as a thread does, and returns their times.
func measure(r ranges, t task) []int64 {
	took := make([]int64, r.chunks)
	for lane := range min(r.threads, r.chunks) {
		for i := lane; i < r.chunks; i += r.threads {
			took[i] = measured(func() { t.do(r.at(i)) })
		}
	}
	return took
}

// first returns the thread that is free first.
func first(free []int64) int { return slices.Index(free, slices.Min(free)) }

// advance adds the caller's time since the last call to the clock, or to the job that is being recorded, and lets the other threads compute jobs meanwhile.
func (s *simulation) advance() {
	passed := since(s.read)
	s.read = threadTime()
	s.times.Serial += passed
	if s.begun != nil {
		s.begun.calls = append(s.begun.calls, []int64{passed})
		return
	}
	s.times.Clock += passed
	for len(s.free) > 1 && len(s.jobs) > 0 && s.compute(s.jobs, s.free[1:], s.times.Clock) {
	}
	s.free[0] = s.times.Clock
}

// begins returns when the job's next ranges can begin, if that is known: the jobs before it have begun all their ranges.
func (l *late) begins() int64 {
	at := l.ready
	for _, k := range l.after {
		if len(k.calls) > 0 {
			return math.MaxInt64
		}
		at = max(at, k.ends)
	}
	return at
}

// compute lets the thread that is free first compute the next range of the first job that can go on then, or else of the one that can go on first, if it can
// begin before a time. It returns false if not.
func (s *simulation) compute(jobs []*late, free []int64, before int64) bool {
	j := first(free)
	var l *late
	at := int64(math.MaxInt64)
	for _, k := range jobs {
		if t := max(free[j], k.begins()); t < at {
			l, at = k, t
		}
	}
	if at >= before {
		return false
	}
	free[j] = at + l.calls[0][0]
	l.ends = max(l.ends, free[j])
	if l.calls[0] = l.calls[0][1:]; len(l.calls[0]) == 0 {
		l.calls, l.ready = l.calls[1:], l.ends
	}
	if len(l.calls) == 0 {
		s.jobs = slices.DeleteFunc(s.jobs, func(k *late) bool { return k == l })
	}
	return true
}

// start computes a job and records its ranges.
func (s *simulation) start(j *Job) *late {
	s.advance()
	l := &late{ready: s.times.Clock}
	for _, k := range j.after {
		if k.late != nil {
			l.after = append(l.after, k.late)
		}
	}
	s.begun = l
	defer func() { s.begun = nil }()
	clock := s.times.Clock
	j.run(j.pool)
	s.advance()
	s.times.Clock = clock
	s.jobs = append(s.jobs, l)
	return l
}

// join lets all threads compute a job to its end.
func (s *simulation) join(l *late) {
	s.advance()
	for slices.Contains(s.jobs, l) {
		s.compute(append([]*late{l}, s.jobs...), s.free, math.MaxInt64)
	}
	s.times.Clock = max(s.times.Clock, l.ends)
	s.free[0] = s.times.Clock
}

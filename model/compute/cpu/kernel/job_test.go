//go:build cgo

package kernel

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// TestJobs starts jobs over and over while other calls run, and checks that each range is computed once.
func TestJobs(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, threads := range []int{1, 2, 5} {
		p := NewPool(threads)
		var counts [3]atomic.Int64
		var jobs [3]*Job
		for k := range jobs {
			jobs[k] = NewJob(func(p *Pool) {
				p.Run(40, 1, func(lo, hi int) {
					p.Run(hi-lo, 1, func(lo, hi int) { counts[k].Add(int64(hi - lo)) })
				})
			})
		}
		for round := range 300 {
			for k := range jobs {
				p.Start(jobs[k])
			}
			var n atomic.Int64
			p.Run(50, 1, func(lo, hi int) { n.Add(int64(hi - lo)) })
			for k := range jobs {
				jobs[(k+round)%3].Join()
			}
			for k := range counts {
				if got := counts[k].Load(); got != int64(40*(round+1)) || n.Load() != 50 {
					t.Fatalf("%d threads, round %d: %d of job %d, %d of 50", threads, round, got, k, n.Load())
				}
			}
		}
		p.Close()
		p.Start(jobs[0]) // nobody is left to help
		jobs[0].Join()
		if got := counts[0].Load(); got != 40*301 {
			t.Errorf("%d threads: %d after Close", threads, got)
		}
	}
}

// TestJobsAfter starts jobs of random graphs over and over, and checks that each begins when those before it have ended.
func TestJobsAfter(t *testing.T) {
	pools := []*Pool{NewPool(1), NewPool(2), NewPool(5), Simulated(4)}
	for _, p := range pools[:3] {
		defer p.Close()
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(pools).Draw(t, "pool")
		var jobs []*Job
		var ended []atomic.Bool
		var early atomic.Int64
		n := rapid.IntRange(1, 20).Draw(t, "jobs")
		ended = make([]atomic.Bool, n)
		for k := range n {
			before := rapid.SliceOfNDistinct(rapid.IntRange(0, max(k-1, 0)), 0, min(k, 3), rapid.ID).Draw(t, "before")
			var after []*Job
			for _, b := range before {
				after = append(after, jobs[b])
			}
			jobs = append(jobs, NewJob(func(p *Pool) {
				for _, b := range before {
					if !ended[b].Load() {
						early.Add(1)
					}
				}
				p.Run(7, 1, func(int, int) {})
				ended[k].Store(true)
			}, after...))
		}
		for range 3 {
			for k, j := range jobs {
				p.Start(j)
				p.Run(k%3, 1, func(int, int) {})
			}
			for k, j := range jobs {
				if j.Join(); !ended[k].Load() {
					t.Fatalf("job %d has not ended", k)
				}
			}
			if n := early.Load(); n > 0 {
				t.Fatalf("%d jobs began early", n)
			}
			for k := range ended {
				ended[k].Store(false)
			}
		}
	})
}

// TestJobBehind checks that a worker takes a waiting call before a waiting job.
func TestJobBehind(t *testing.T) {
	p := newPool(2, callTickets, &scratches{}) // without workers
	p.behind = newPool(2, jobTickets, p.scratch)
	p.seats = make([]seat, 1)
	var order []string
	job := NewJob(func(*Pool) { order = append(order, "job") })
	p.Start(job)
	w := p.work(ranges{1, 1, 1, 2}, funcTask(func(int, int) { order = append(order, "call") }), 1)
	p.invite(w, 1)
	var own turn
	p.assist(p.next(1), &own)
	p.assist(p.next(1), &own)
	job.Join()
	if len(order) != 2 || order[0] != "call" || order[1] != "job" {
		t.Errorf("%v", order)
	}
}

// TestFailingJob checks that Join panics if the job did, and that both can be used again.
func TestFailingJob(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	cause := errors.New("on purpose")
	fails := true
	job := NewJob(func(p *Pool) {
		p.Run(10, 1, func(lo, hi int) {
			if fails && hi == 10 {
				panic(cause)
			}
		})
	})
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, cause) {
				t.Errorf("panicked with %v", err)
			}
		}()
		p.Start(job)
		job.Join()
	}()
	fails = false
	p.Start(job)
	job.Join()
}

// spin uses the processor for so long.
func spin(d time.Duration) {
	for end := threadTime() + int64(d); threadTime() < end; {
	}
}

// TestImaginedJobs checks that simulated threads compute a job while they have nothing else to do, and all of them once it is waited for.
func TestImaginedJobs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const ms = time.Millisecond
	ranges := func(p *Pool) { p.Run(12, 4, func(lo, hi int) { spin(time.Duration(hi-lo) * ms) }) }
	once, twice := func(p *Pool) { ranges(p) }, func(p *Pool) { ranges(p); ranges(p) }
	clock := func(p *Pool, f func()) time.Duration {
		p.Resume()
		began, _ := p.Imagined()
		p.Resume()
		f()
		ended, _ := p.Imagined()
		return time.Duration(ended.Minus(began).Clock)
	}
	for _, c := range []struct {
		run      func(*Pool)
		threads  int
		serial   time.Duration
		min, max time.Duration
	}{
		{twice, 7, 0, 8 * ms, 9 * ms}, // the second call begins after the first one
		{twice, 7, 9 * ms, 9 * ms, 10 * ms},
		{once, 1, 10 * ms, 22 * ms, 25 * ms},
		{once, 2, 20 * ms, 20 * ms, 21 * ms}, // the other thread computes the 12 ms meanwhile
		{once, 2, 0, 6 * ms, 9 * ms},
		{once, 3, 9 * ms, 9 * ms, 10 * ms},
		{once, 5, 0, 4 * ms, 5 * ms},
	} {
		best := time.Hour // other programs can only lengthen it
		for range 5 {
			p := Simulated(c.threads)
			took := clock(p, func() {
				job := NewJob(c.run)
				p.Start(job)
				spin(c.serial)
				p.Run(c.threads, 1, func(lo, hi int) {})
				job.Join()
			})
			best = min(best, took)
		}
		if best < c.min || best > c.max {
			t.Errorf("%d threads, ranges of 4 ms in the background of %v: %v, want %v to %v", c.threads, c.serial, best, c.min, c.max)
		}
	}
}

// TestImaginedJobsAfter checks that simulated threads compute a job after another one only if it has to wait for it.
func TestImaginedJobsAfter(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	run := func(p *Pool) { p.Run(12, 4, func(lo, hi int) { spin(time.Duration(hi-lo) * time.Millisecond) }) }
	for _, c := range []struct {
		waits    bool
		min, max time.Duration
	}{{false, 4 * time.Millisecond, 6 * time.Millisecond}, {true, 8 * time.Millisecond, 10 * time.Millisecond}} {
		best := time.Hour // other programs can only lengthen it
		for range 5 {
			p := Simulated(7)
			first := NewJob(run)
			second := NewJob(run)
			if c.waits {
				second = NewJob(run, first)
			}
			p.Resume()
			began, _ := p.Imagined()
			p.Start(first)
			p.Start(second)
			first.Join()
			second.Join()
			ended, _ := p.Imagined()
			best = min(best, time.Duration(ended.Minus(began).Clock))
		}
		if best < c.min || best > c.max {
			t.Errorf("waits: %v; %v, want %v to %v", c.waits, best, c.min, c.max)
		}
	}
}

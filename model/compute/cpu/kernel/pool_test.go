//go:build cgo

package kernel

import (
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestRunCoversEveryIndexOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := NewPool(3)
	defer p.Close()
	for _, n := range []int{0, 1, 2, 7, 100, 1001} {
		for _, grain := range []int{0, 1, 3, 50, 5000} {
			counts := make([]int32, n)
			p.Run(n, grain, func(lo, hi int) {
				if hi <= lo || hi-lo < min(grain, n) {
					t.Errorf("n %d, grain %d: range [%d, %d)", n, grain, lo, hi)
				}
				for i := lo; i < hi; i++ {
					atomic.AddInt32(&counts[i], 1)
				}
			})
			for i, c := range counts {
				if c != 1 {
					t.Fatalf("n %d, grain %d: index %d was visited %d times", n, grain, i, c)
				}
			}
		}
	}
}

// TestRanges checks that lanes and their ranges follow each other without a gap, none is smaller than the grain, and they get smaller in rounds if they are
// large enough.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pool{threads: rapid.IntRange(1, 80).Draw(t, "threads")}
		n, grain := rapid.IntRange(1, 5000).Draw(t, "n"), rapid.IntRange(0, 200).Draw(t, "grain")
		r := ranges{n, p.Chunks(n, grain), grain, p.threads}
		if r.chunks > r.threads && r.chunks%r.threads != 0 {
			t.Fatalf("%+v", r)
		}
		if rapid.Bool().Draw(t, "any number") {
			r.chunks, r.grain = rapid.IntRange(1, n).Draw(t, "chunks"), 1
		}
		next, smallest := 0, n
		for lane := range min(r.threads, r.chunks) {
			before := n
			for i := lane; i < r.chunks; i += r.threads {
				lo, hi := r.at(i)
				if lo != next || hi-lo > before+1 {
					t.Fatalf("%+v: range %d is [%d, %d), the one before it ends at %d and has %d indices", r, i, lo, hi, next, before)
				}
				next, before, smallest = hi, hi-lo, min(smallest, hi-lo)
			}
		}
		rounds := r.rounds()
		lo, hi := r.at(0)
		from, to := r.at((rounds - 1) * r.threads) // the last range of the same lane
		if r.threads*rounds*(rounds+1)/2*max(r.grain, 1) <= n && hi-lo < rounds*(to-from-1) {
			t.Fatalf("%+v: the first range has %d indices, the last of its lane %d", r, hi-lo, to-from)
		}
		if next != n || smallest < min(max(r.grain, 1), n) {
			t.Fatalf("%+v covers [0, %d), and the smallest range has %d indices", r, next, smallest)
		}
	})
}

// TestTakingRanges checks that threads that take turns keep to their lanes, and that one takes a range of another lane before its own next, smaller one.
func TestTakingRanges(t *testing.T) {
	p := newPool(3, callTickets, &scratches{}) // without workers
	var took []int
	help := func(w *work, lane, most int) {
		round := 0
		for range most {
			if i, ok := w.take(&round, lane); ok {
				took = append(took, i)
			}
		}
	}
	w := p.work(ranges{120, 8, 1, 3}, nil, 0)
	for range 2 {
		for lane := range 3 {
			help(w, lane, 1)
		}
	}
	help(w, 2, 9)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(took, want) {
		t.Errorf("three threads in turn took %v, want %v", took, want)
	}
	took = nil
	w = p.work(ranges{120, 8, 1, 3}, nil, 0)
	help(w, 1, 4)
	help(w, 2, 1)
	help(w, 0, 9)
	if want := []int{1, 2, 0, 4, 5, 3, 6, 7}; !slices.Equal(took, want) {
		t.Errorf("one thread before two others took %v, want %v", took, want)
	}
}

// TestOffers checks that a call is offered to a worker that waits, without a ticket, and by a ticket to one that does not.
func TestOffers(t *testing.T) {
	p := newPool(3, callTickets, &scratches{}) // without workers
	p.seats = make([]seat, 2)
	p.seats[1].work.Store(vacant)
	first, second := p.work(ranges{9, 3, 1, 3}, nil, 2), p.work(ranges{9, 3, 1, 3}, nil, 1)
	p.invite(first, 2)
	if at := p.seats[1].work.Load(); at != first || len(p.tickets) != 1 {
		t.Errorf("the seat has %p, want %p; there are %d tickets, want 1", at, first, len(p.tickets))
	}
	if p.invite(second, 1); p.seats[1].work.Load() != first || len(p.tickets) != 2 || first.state != 3*oneRange+3 || second.state != 3*oneRange+2 {
		t.Errorf("a second call: %d tickets, states %x and %x", len(p.tickets), first.state, second.state)
	}
}

// TestSleepingCallers lets a caller sleep, until the last range ends or other work comes, at about the same time, and checks that it is woken once.
func TestSleepingCallers(t *testing.T) {
	p := newPool(2, callTickets, &scratches{}) // without workers
	within(t, time.Minute, func() {
		for i := range 3000 {
			w, other, others := p.work(ranges{2, 2, 1, 2}, nil, 1), new(work), make(chan *work, 1)
			var both sync.WaitGroup
			both.Go(func() {
				if i%3 > 0 {
					time.Sleep(time.Duration(i%100) * time.Microsecond)
				}
				if i%3 == 1 {
					others <- other
				}
				p.leave(w, 1, 1)
			})
			both.Go(func() {
				if i%6 == 0 {
					others <- other
				}
			})
			p.leave(w, 1, 0)
			for !w.ended() {
				if got := w.sleep(others); got != nil && got != other {
					t.Error("the caller got work that nobody has sent")
				}
			}
			if both.Wait(); len(w.finished) > 0 || w.state != 1 {
				t.Fatalf("after the call, it has been woken %d times too often, and its state is %x", len(w.finished), w.state)
			}
		}
		w := p.work(ranges{2, 2, 1, 2}, nil, 1)
		go func() { time.Sleep(5 * patience); p.leave(w, 1, 1) }()
		if w.wait(1); !w.ended() || len(w.finished) > 0 {
			t.Error("the caller has not waited, or is woken again")
		}
	})
}

// TestEvenDivisions checks that panels are divided into groups whose sizes differ by at most one, and that no number of groups from half to
// twice the wanted one finishes sooner.
func TestEvenDivisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, panels, threads := rapid.IntRange(1, 300).Draw(t, "units"), rapid.IntRange(1, 60).Draw(t, "panels"), rapid.IntRange(2, 40).Draw(t, "threads")
		want := threads * chunksPerThread
		ends := func(g int) int { return (units*g + threads - 1) / threads * ((panels + g - 1) / g) }
		g, about := evenGroups(units, panels, want, threads), min(max(want/units, 1), panels)
		if g < 1 || g > panels || ends(g) > ends(about) {
			t.Fatalf("%d units of %d panels on %d threads: %d groups end after %d, %d after %d", units, panels, threads, g, ends(g), about, ends(about))
		}
		ms, ns := evenParts(panels, units, min(panels, threads), 1, threads)
		if ms < 1 || ms > panels || ns < 1 || ns > units {
			t.Fatalf("%d × %d panels fall into %d × %d parts", panels, units, ms, ns)
		}
	})
}

func TestRunsAtOnceAndNested(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var callers sync.WaitGroup
	var total atomic.Int64
	for range 8 {
		callers.Go(func() {
			for range 50 {
				p.Run(40, 1, func(lo, hi int) {
					p.Run(hi-lo, 1, func(lo, hi int) { total.Add(int64(hi - lo)) })
				})
			}
		})
	}
	callers.Wait()
	if got := total.Load(); got != 8*50*40 {
		t.Errorf("%d indices were visited, want %d", got, 8*50*40)
	}
}

func TestRunRangesAreTheSameEachTime(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	ranges := func() map[[2]int]bool {
		var mu sync.Mutex
		out := map[[2]int]bool{}
		p.Run(1003, 10, func(lo, hi int) {
			mu.Lock()
			out[[2]int{lo, hi}] = true
			mu.Unlock()
		})
		return out
	}
	want := ranges()
	for range 20 {
		got := ranges()
		if len(got) != len(want) {
			t.Fatalf("%d ranges, then %d", len(want), len(got))
		}
		for r := range got {
			if !want[r] {
				t.Fatalf("range %v is new", r)
			}
		}
	}
}

func TestRunRaisesPanics(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	boom := errors.New("boom")
	func() {
		defer func() {
			failure, ok := recover().(*Panic)
			if !ok || !errors.Is(failure, boom) || !strings.Contains(string(failure.Stack), "TestRunRaisesPanics") {
				t.Errorf("recovered %v", failure)
			}
		}()
		p.Run(100, 1, func(lo, hi int) {
			if lo == 0 {
				panic(boom)
			}
		})
		t.Error("Run returned")
	}()
	var n atomic.Int64
	p.Run(100, 1, func(lo, hi int) { n.Add(int64(hi - lo)) })
	if n.Load() != 100 {
		t.Errorf("after a panic the pool visits %d of 100 indices", n.Load())
	}
}

// TestRunSurvivesGoexit checks that a range that ends its goroutine fails the call, whichever thread it ran on, and that the pool keeps its workers.
func TestRunSurvivesGoexit(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := NewPool(3)
	defer p.Close()
	for range 20 {
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			p.Run(64, 1, func(lo, hi int) { runtime.Goexit() })
		}()
		<-ended
	}
	for len(p.tickets) > 0 { // tickets of calls that ended early
		time.Sleep(time.Millisecond)
	}
	var here sync.WaitGroup
	here.Add(3)
	all := make(chan struct{})
	go func() { here.Wait(); close(all) }()
	p.Run(3, 1, func(lo, hi int) {
		here.Done()
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			t.Error("fewer than three threads are left")
		}
	})
}

// TestRunNeverHangs checks concurrent and nested calls, on two pools, with panics and while a pool closes: every call returns and visits all indices.
func TestRunNeverHangs(t *testing.T) {
	pools := []*Pool{NewPool(2), NewPool(5)}
	within(t, 30*time.Second, func() {
		var callers sync.WaitGroup
		deadline := time.Now().Add(500 * time.Millisecond)
		for seed := range uint64(6) {
			callers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for time.Now().Before(deadline) {
					stress(t, pools, rng.Uint64(), 2)
				}
			})
		}
		time.Sleep(250 * time.Millisecond)
		pools[0].Close()
		callers.Wait()
	})
	pools[1].Close()
}

// stress runs on one of the pools, with nested calls on others up to some depth; one range in 200 panics.
func stress(t *testing.T, pools []*Pool, seed uint64, depth int) {
	n, visited, failed := 1+int(seed%97), atomic.Int64{}, atomic.Bool{}
	defer func() {
		if v := recover(); v == nil && int(visited.Load()) != n || v != nil && !failed.Load() {
			t.Errorf("%d of %d indices were visited, recovered %v", visited.Load(), n, v)
		}
	}()
	pools[seed>>8%2].Run(n, 1, func(lo, hi int) {
		rng := rand.New(rand.NewPCG(seed, uint64(lo)))
		if depth > 0 && rng.IntN(4) == 0 {
			stress(t, pools, rng.Uint64(), depth-1)
		}
		if rng.IntN(200) == 0 {
			failed.Store(true)
			panic("on purpose")
		}
		visited.Add(int64(hi - lo))
	})
}

// within fails with the stacks of all goroutines if fn takes longer than limit.
func within(t *testing.T, limit time.Duration, fn func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { defer close(ended); fn() }()
	select {
	case <-ended:
	case <-time.After(limit):
		stacks := make([]byte, 1<<20)
		t.Fatalf("still running after %s:\n%s", limit, stacks[:runtime.Stack(stacks, true)])
	}
}

func TestSharedPools(t *testing.T) {
	if first, again := Shared(2), Shared(2); first != again || first == Shared(3) || Shared(0).Threads() < 1 {
		t.Error("want one shared pool per number of threads")
	}
}

func BenchmarkRunOverhead(b *testing.B) {
	p := benchPool()
	fn := func(lo, hi int) {}
	for b.Loop() {
		p.Run(8, 1, fn)
	}
}

var benchThreads = flag.Int("threads", 2, "threads of the pool that benchmarks use")

func benchPool() *Pool { return Shared(*benchThreads) }

// TestComputingGivesWay has one processor for two goroutines: the computing one lets the other run after a slice.
func TestComputingGivesWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(1)
	defer p.Close()
	var ran atomic.Bool
	p.caller.at.Store(int64(time.Since(start) - slice))
	go ran.Store(true)
	p.Run(1, 1, func(int, int) {
		if !ran.Load() {
			t.Error("after a slice, the computation started another part before a ready goroutine ran")
		}
	})
}

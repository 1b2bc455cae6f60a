//go:build cgo

package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// Pool is a fixed number of compute threads. Several goroutines may use it concurrently: a call uses the workers
// that are free and computes the rest itself, so a nested call never waits for a thread that its own caller holds.
type Pool struct {
	threads int
	seats   []seat // of the workers
	tickets chan *work
	closed  chan struct{}
	ended   atomic.Bool // closed, for workers that are not sleeping
	works   sync.Pool   // of *work
	scratch *scratches
	meter   atomic.Pointer[Meter]
	caller  turn  // of the goroutine that calls Run
	behind  *Pool // whose calls the same workers help with if there is nothing else to do

	simulation *simulation // nil if threads are real
}

// seat is where a worker waits for calls without sleeping. It holds vacant while the worker waits, and then the call that has been offered. It is a cache
// line of its own, so that an offer is one exchange of data between two cores.
type seat struct {
	work atomic.Pointer[work]
	_    cpu.CacheLinePad
}

// vacant is what a seat holds while its worker waits.
var vacant = new(work)

// chunksPerThread is the number of ranges per thread: more of them compensate for a slow core, fewer have less overhead.
const chunksPerThread = 4

// patience is how long a thread checks for work, or for the end of a call, before it sleeps: longer than a step of a program that only one thread computes.
// Waking a sleeping thread takes up to 0.1 ms on a virtual machine, as long as many steps.
const patience = 600 * time.Microsecond

// spins counts how often a thread has checked for work.
type spins struct {
	n     int
	began time.Time
}

// enough reports whether the thread has run out of patience. It rarely reads the clock, and is short enough to be inlined.
func (s *spins) enough() bool {
	if s.n++; s.n%1024 != 0 {
		return false
	}
	return s.late()
}

func (s *spins) late() bool {
	now := time.Now()
	if s.began.IsZero() {
		s.began = now
	}
	return now.Sub(s.began) >= patience
}

// callTickets and jobTickets are how many invitations per thread to calls, and to jobs and their calls, can wait for workers that are busy or asleep. Without one, the
// caller computes the call by itself, and a job begins when it is joined.
const callTickets, jobTickets = 4, 64

var cores = runtime.GOMAXPROCS(0)

// Cores returns the number of cores that Go could use when the program started, according to the environment or a cgroup.
func Cores() int { return cores }

// Spare gives Go one more processor than there are cores, but no thread to compute on it. A program that computes calls it once at
// startup. If all of Go's processors are busy, Go takes away that of a thread that has been in C for 20 µs; when the thread returns from
// C, it must wait for another one.
func Spare() { runtime.GOMAXPROCS(cores + 1) }

// turn is the state of a computing goroutine.
type turn struct {
	at   atomic.Int64 // when it last yielded, as time since the program started
	lane int          // whose ranges it prefers
}

// slice is how long a goroutine computes before it yields. After 10 ms, Go's scheduler would preempt it, and again every 20 µs while it is
// in C: with a signal and by taking away its processor, using time of the compute cores. This took a tenth of the training time.
const slice = 4 * time.Millisecond

var start = time.Now()

// giveWay lets other goroutines run if the slice is over.
func (t *turn) giveWay() {
	if t.over() {
		runtime.Gosched()
	}
}

// over reports whether the slice is over, and begins the next one if so.
func (t *turn) over() bool {
	now := time.Since(start)
	over := now-time.Duration(t.at.Load()) >= slice
	if over {
		t.at.Store(int64(now))
	}
	return over
}

// NewPool returns a pool with the given number of threads, including the calling goroutine; if threads is less than one, it has one for
// each core that Go may use.
func NewPool(threads int) *Pool {
	if threads < 1 {
		threads = cores
	}
	p := newPool(threads, callTickets, &scratches{})
	p.behind = newPool(threads, jobTickets, p.scratch)
	p.seats = make([]seat, threads-1)
	for i := range threads - 1 {
		go p.help(i + 1)
	}
	return p
}

// newPool returns a pool without workers, whose calls can wait for them with so many tickets per thread.
func newPool(threads, tickets int, s *scratches) *Pool {
	p := &Pool{threads: threads, tickets: make(chan *work, tickets*threads), closed: make(chan struct{}), scratch: s}
	p.works.New = func() any { return &work{finished: make(chan struct{}, 1)} }
	return p
}

var shared struct {
	sync.Mutex
	pools map[int]*Pool
}

// Shared returns the process's pool with that many threads (one per core if less than one), and creates it on first use.
func Shared(threads int) *Pool {
	if threads < 1 {
		threads = cores
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.pools == nil {
		shared.pools = map[int]*Pool{}
	}
	p := shared.pools[threads]
	if p == nil {
		p = NewPool(threads)
		shared.pools[threads] = p
	}
	return p
}

// Threads returns the number of compute threads, including the caller.
func (p *Pool) Threads() int { return p.threads }

// Close ends the workers. Calls to Run during and after it compute on the caller only. Close must be called only once.
func (p *Pool) Close() {
	p.ended.Store(true)
	close(p.closed)
}

// Run calls fn on contiguous ranges that cover [0, n) without overlap, in parallel, and returns when all are done. The
// ranges depend only on n, grain and the number of threads; each has at least grain indices if n does. If fn panics, Run panics
// once every range has ended.
func (p *Pool) Run(n, grain int, fn func(lo, hi int)) { p.run(n, grain, funcTask(fn)) }

// task is work that a pool divides; it is a pointer to a reused struct, so that a step allocates nothing.
type task interface{ do(lo, hi int) }

type funcTask func(lo, hi int)

func (f funcTask) do(lo, hi int) { f(lo, hi) }

// work is one call of run: its task and its progress.
type work struct {
	task     task
	ranges   ranges
	taken    []atomic.Bool // which ranges a thread has taken
	failure  atomic.Pointer[failure]
	finished chan struct{}

	_ cpu.CacheLinePad
	// state has the number of ranges that have not ended, as far as their threads have reported it, in its upper half, and that of goroutines and tickets
	// that still point here in its lower one. Threads change both at once.
	state int64
	_     cpu.CacheLinePad
}

const (
	oneRange = 1 << 32
	asleep   = 1 << 31 // in a work's state while its caller sleeps until it receives from finished
)

// failure is the first panic of a work.
type failure struct {
	value any
	stack []byte
}

// Panic is the panic value of Run if one of several ranges panicked: the original value, and the stack of the panic.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the value and the stack of the panic.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the panic's value if it is an error.
func (p *Panic) Unwrap() error { err, _ := p.Value.(error); return err }

// Chunks returns the number of ranges into which Run divides [0, n).
func (p *Pool) Chunks(n, grain int) int { return p.chunks(n, grain, chunksPerThread) }

// chunks returns the number of ranges into which [0, n) is divided if there should be so many per thread.
func (p *Pool) chunks(n, grain, perThread int) int {
	if n <= 0 {
		return 0
	}
	chunks := min(max(n/max(grain, 1), 1), p.threads*perThread)
	switch {
	case p.threads == 1:
		return 1
	case chunks > p.threads:
		return chunks - chunks%p.threads
	}
	return chunks
}

// ranges divides [0, n) into lanes, one for each thread, and lanes into ranges that get smaller in rounds. Threads take ranges in order of rounds, so that
// those that start at different times, or compute at different speeds, end almost together; in each round they prefer their own lane, since its indices are
// likely to be in their core's caches: of steps on the same arrays, or of those that read each other's results. Range i is of lane i modulo threads. If the
// smallest ranges would have fewer than grain indices, all are equal.
type ranges struct{ n, chunks, grain, threads int }

// rounds returns the number of rounds: the last may have fewer ranges than there are lanes.
func (r ranges) rounds() int { return (r.chunks + r.threads - 1) / r.threads }

// at returns the start and the end of range i.
func (r ranges) at(i int) (lo, hi int) {
	rounds, lanes := r.rounds(), min(r.threads, r.chunks)
	last := r.chunks - (rounds-1)*r.threads                            // lanes that have a range of the last round, whose weight is 1
	sum := func(k int) int { return k*rounds - k*(k-1)/2 }             // weight of a lane's first k ranges
	until := func(l int) int { return l*sum(rounds) - max(l-last, 0) } // weight of the first l lanes
	if r.n < until(lanes)*max(r.grain, 1) {
		sum = func(k int) int { return k }
	}
	lane, round, all := i%r.threads, i/r.threads, until(lanes)
	return r.n * (until(lane) + sum(round)) / all, r.n * (until(lane) + sum(round+1)) / all
}

// rounds returns the assumed time of a call of equal ranges, in that of one range. Threads do not progress equally, so it is a part of a range longer.
func rounds(ranges, threads int) float64 {
	if threads == 1 {
		return float64(ranges)
	}
	return float64((ranges+threads-1)/threads) + 0.25
}

func (p *Pool) run(n, grain int, t task) {
	if n > 0 {
		p.runRanges(ranges{n, p.Chunks(n, grain), grain, p.threads}, t)
	}
}

// runChunks divides [0, n) into exactly that many ranges.
func (p *Pool) runChunks(n, chunks int, t task) { p.runRanges(ranges{n, chunks, 1, p.threads}, t) }

func (p *Pool) runRanges(r ranges, t task) {
	if p.simulation != nil {
		p.simulation.run(r, t, &p.caller)
		return
	}
	p.caller.giveWay()
	if r.chunks == 1 {
		t.do(0, r.n)
		return
	}
	helpers, done := min(p.threads, r.chunks)-1, 0
	w := p.work(r, t, helpers)
	p.invite(w, helpers)
	w.help(&p.caller, nil, &done)
	if m := p.meter.Load(); m != nil {
		began := time.Now()
		w.wait(done)
		m.Waited.Add(int64(time.Since(began)))
	} else {
		w.wait(done)
	}
	p.end(w)
}

// work returns a new work, which the caller holds and will offer to so many helpers. Its fields need no atomic writes until it does.
func (p *Pool) work(r ranges, t task, helpers int) *work {
	w := p.works.Get().(*work)
	w.task, w.ranges = t, r
	w.taken = slices.Grow(w.taken[:0], r.chunks)[:r.chunks]
	clear(w.taken)
	w.state = int64(r.chunks)*oneRange + 1 + int64(helpers)
	return w
}

// end releases a work that has ended, and panics if one of its ranges did.
func (p *Pool) end(w *work) {
	f := w.failure.Load()
	p.leave(w, 0, 1)
	if f != nil {
		panic(&Panic{f.value, f.stack})
	}
}

// invite offers the work to so many helpers, which its state includes, without waiting for any: first to workers that wait, which take it at once.
func (p *Pool) invite(w *work, helpers int) {
	for i := 0; i < len(p.seats) && helpers > 0; i++ {
		if s := &p.seats[i].work; s.Load() == vacant && s.CompareAndSwap(vacant, w) {
			helpers--
		}
	}
	for ; helpers > 0; helpers-- {
		select {
		case p.tickets <- w:
		default:
			p.leave(w, 0, helpers)
			return
		}
	}
}

// leave reports that so many ranges have ended, and gives up so many references. If these ranges are the last ones and the caller sleeps, it wakes it.
func (p *Pool) leave(w *work, ranges, references int) {
	switch state := atomic.AddInt64(&w.state, -int64(ranges)*oneRange-int64(references)); {
	case state == 0:
		w.task = nil
		w.failure.Store(nil)
		p.works.Put(w)
	case ranges > 0 && state < oneRange && state&asleep != 0:
		w.finished <- struct{}{}
	}
}

// help is the loop of a worker: get work and compute ranges of it until none is left.
func (p *Pool) help(lane int) {
	closed := false
	defer func() {
		if !closed { // a task ended this goroutine
			go p.help(lane)
		}
	}()
	t := turn{lane: lane}
	for w := p.next(lane); w != nil; w = p.next(lane) {
		p.assist(w, &t)
	}
	closed = true
}

func (p *Pool) assist(w *work, t *turn) {
	done := 0
	defer func() { p.leave(w, done, 1) }() // also if a range ends the goroutine
	w.help(t, p.meter.Load(), &done)
}

// next waits for work, at first without sleeping, because within a step the next call comes soon. Work in the background comes last. It returns nil once
// the pool is closed.
func (p *Pool) next(lane int) *work {
	if w := p.sit(&p.seats[lane-1].work); w != nil {
		return w
	}
	select {
	case w := <-p.tickets:
		return w
	case w := <-p.behind.tickets:
		return w
	case <-p.closed:
		return nil
	}
}

// sit waits in a seat until a call is offered there or there is a ticket, and returns its work, or nil after a while or if the pool has been closed. To check
// the length of a channel takes a third of the time of a non-blocking receive.
func (p *Pool) sit(seat *atomic.Pointer[work]) *work {
	seat.Store(vacant)
	for s := (spins{}); !s.enough() && !p.ended.Load(); {
		if w := seat.Load(); w != vacant {
			return w
		}
		from := p.tickets
		if len(from) == 0 {
			from = p.behind.tickets
		}
		if len(from) == 0 {
			continue
		}
		if !seat.CompareAndSwap(vacant, nil) {
			return seat.Load()
		}
		select {
		case w := <-from:
			return w
		default:
			seat.Store(vacant)
		}
	}
	if !seat.CompareAndSwap(vacant, nil) {
		return seat.Load()
	}
	return nil
}

// help computes ranges until all are taken, yields between them, and adds their number to *done. A meter counts the time up to the end of each range before the
// thread reports it, so that it is attributed to the step that it belongs to.
func (w *work) help(t *turn, m *Meter, done *int) {
	var since time.Time
	if m != nil {
		since = time.Now()
	}
	for round := 0; ; {
		i, ok := w.take(&round, t.lane)
		if !ok {
			return
		}
		lo, hi := w.ranges.at(i)
		w.chunk(lo, hi, m, &since, done)
		t.giveWay()
	}
}

// take returns a range of the first round that has one which no thread has taken: that of the lane if possible. No range of a round before *round is left,
// which take advances.
func (w *work) take(round *int, lane int) (i int, ok bool) {
	for ; *round < w.ranges.rounds(); *round++ {
		first := *round * w.ranges.threads
		n := min(w.ranges.threads, w.ranges.chunks-first)
		for k := range n {
			i := first + (lane+k)%n
			if !w.taken[i].Load() && w.taken[i].CompareAndSwap(false, true) {
				return i, true
			}
		}
	}
	return 0, false
}

// errExit is the failure of a task that ended its goroutine, as FailNow of package testing does.
var errExit = errors.New("a range of Pool.Run called runtime.Goexit")

// chunk computes a range and counts it. Even if it panics, the range counts as done. since is when the thread ended the one before.
func (w *work) chunk(lo, hi int, m *Meter, since *time.Time, done *int) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			w.fail(v)
		} else if !returned {
			w.fail(errExit)
		}
		*done++
	}()
	w.task.do(lo, hi)
	if m != nil {
		now := time.Now()
		m.Helped.Add(int64(now.Sub(*since)))
		*since = now
	}
	returned = true
}

func (w *work) fail(v any) {
	stack := make([]byte, 1<<14)
	stack = stack[:runtime.Stack(stack, false)]
	w.failure.CompareAndSwap(nil, &failure{v, stack})
}

// ended reports whether all ranges have ended.
func (w *work) ended() bool { return atomic.LoadInt64(&w.state) < oneRange }

// wait reports the caller's ranges and returns when the last one has ended.
func (w *work) wait(ranges int) {
	if atomic.AddInt64(&w.state, -int64(ranges)*oneRange) < oneRange {
		return
	}
	for s := (spins{}); !s.enough(); {
		if w.ended() {
			return
		}
	}
	w.sleep(nil)
}

// sleep returns when the last range has ended, or with work from a channel.
func (w *work) sleep(others <-chan *work) (other *work) {
	running := atomic.AddInt64(&w.state, asleep) >= oneRange
	if running {
		select {
		case <-w.finished:
			running = false
		case other = <-others:
		}
	}
	if state := atomic.AddInt64(&w.state, -asleep); running && state < oneRange {
		<-w.finished // the last range has ended meanwhile
	}
	return other
}

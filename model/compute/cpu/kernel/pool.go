//go:build cgo

package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pool is a fixed number of threads that compute. It may be used by several goroutines at once: a call takes the workers
// that are free and computes the rest itself, so a call inside a call never waits for a thread that it holds.
type Pool struct {
	threads int
	tickets chan *work
	closed  chan struct{}
	ended   atomic.Bool // closed, for those who do not sleep
	works   sync.Pool   // of *work
	scratch scratches
	meter   atomic.Pointer[Meter]
	caller  turn // of whoever calls Run

	simulation *simulation // nil where threads are real
}

// chunksPerThread is how many ranges a thread gets on average: more of them even out a slow core, fewer cost less.
const chunksPerThread = 4

// idleSpins is how often an idle worker looks for work before it sleeps: some 0.6 ms, longer than what a step of a program
// that one thread computes. It looks at the length of a channel, which costs a third of what receiving nothing does. To wake a
// thread that sleeps takes up to 0.1 ms on a virtual machine, as long as many a step.
const idleSpins = 100_000

var cores = runtime.GOMAXPROCS(0)

// Cores is how many cores Go might use when the program started, as the environment or a cgroup says.
func Cores() int { return cores }

// Spare gives Go one more processor than cores, without a thread to compute on it. A program that computes calls it once, before all
// else. Where all of Go's processors are busy, Go takes that of a thread which has been in C for 20 µs; coming back from C then means to
// wait for another.
func Spare() { runtime.GOMAXPROCS(cores + 1) }

// turn is when a goroutine that computes last gave way to others, in time since the program started.
type turn struct{ at atomic.Int64 }

// slice is how long a goroutine computes before it gives way. After 10 ms Go's scheduler would make it, every 20 µs anew while it is in C:
// by a signal, and by taking its processor, on the very core that it computes on. That took a tenth of a training's time.
const slice = 4 * time.Millisecond

var start = time.Now()

// giveWay lets other goroutines run once a slice is over.
func (t *turn) giveWay() {
	if now := time.Since(start); now-time.Duration(t.at.Load()) >= slice {
		t.at.Store(int64(now))
		runtime.Gosched()
	}
}

// NewPool makes a pool of the given number of threads, the calling goroutine counted; fewer than one means one for each
// core that Go may use.
func NewPool(threads int) *Pool {
	if threads < 1 {
		threads = cores
	}
	p := &Pool{threads: threads, tickets: make(chan *work, 4*threads), closed: make(chan struct{})}
	p.works.New = func() any { return &work{finished: make(chan struct{}, 1)} }
	for range threads - 1 {
		go p.help()
	}
	return p
}

var shared struct {
	sync.Mutex
	pools map[int]*Pool
}

// Shared returns the process's pool of that many threads (fewer than one: one for each core), and makes it on first use.
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

// Threads is how many threads compute, the caller's counted.
func (p *Pool) Threads() int { return p.threads }

// Close ends the workers. Calls to Run, during it and after, compute on the caller alone. It is called once.
func (p *Pool) Close() {
	p.ended.Store(true)
	close(p.closed)
}

// Run calls fn on contiguous ranges that cover [0, n) without overlap, in parallel, and returns when all are done. The
// ranges depend only on n, grain and the number of threads; each holds at least grain indices where n does. A panic in fn
// is raised again here, once every range has ended.
func (p *Pool) Run(n, grain int, fn func(lo, hi int)) { p.run(n, grain, funcTask(fn)) }

// task is what a pool shares out; a pointer to a kept struct, so that a step allocates nothing.
type task interface{ do(lo, hi int) }

type funcTask func(lo, hi int)

func (f funcTask) do(lo, hi int) { f(lo, hi) }

// work is one call of run: its task, and how far it is.
type work struct {
	task     task
	ranges   ranges
	next     atomic.Int64 // the first chunk that nobody took
	done     atomic.Int64 // chunks that ended
	holders  atomic.Int64 // goroutines and tickets that still point here
	failure  atomic.Pointer[failure]
	finished chan struct{}
}

// failure is the first panic of a work.
type failure struct {
	value any
	stack []byte
}

// Panic is what Run raises when a range panicked on another goroutine: the value, and the stack where it happened.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what the range panicked with, and where.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap is the panic's value where that is an error.
func (p *Panic) Unwrap() error { err, _ := p.Value.(error); return err }

// Chunks is how many ranges Run makes of [0, n).
func (p *Pool) Chunks(n, grain int) int {
	if n <= 0 {
		return 0
	}
	chunks := min(max(n/max(grain, 1), 1), p.threads*chunksPerThread)
	switch {
	case p.threads == 1:
		return 1
	case chunks > p.threads:
		return chunks - chunks%p.threads
	}
	return chunks
}

// ranges divide [0, n). They get smaller by rounds of as many ranges as there are threads, so that threads that began at different times, or
// compute at different speeds, end nearly together; where the last would hold fewer than grain indices, all are equal.
type ranges struct{ n, chunks, grain, threads int }

// at is where range i begins.
func (r ranges) at(i int) int {
	all := r.weight(r.chunks)
	if r.n < all*max(r.grain, 1) {
		return r.n * i / r.chunks
	}
	return r.n * r.weight(i) / all
}

// weight is that of the first i ranges: those of the last round weigh 1, those of the round before 2.
func (r ranges) weight(i int) int {
	rounds, full := (r.chunks+r.threads-1)/r.threads, i/r.threads
	return r.threads*full*(2*rounds-full+1)/2 + i%r.threads*(rounds-full)
}

func (p *Pool) run(n, grain int, t task) {
	if n > 0 {
		p.runRanges(ranges{n, p.Chunks(n, grain), grain, p.threads}, t)
	}
}

// runChunks shares [0, n) out in as many ranges.
func (p *Pool) runChunks(n, chunks int, t task) { p.runRanges(ranges{n, chunks, 1, p.threads}, t) }

func (p *Pool) runRanges(r ranges, t task) {
	p.caller.giveWay()
	if r.chunks == 1 {
		t.do(0, r.n)
		return
	}
	if p.simulation != nil {
		p.simulation.run(r, t)
		return
	}
	w := p.works.Get().(*work)
	w.task, w.ranges = t, r
	w.next.Store(0)
	w.done.Store(0)
	w.holders.Store(1)
	p.invite(w, min(p.threads, r.chunks)-1)
	w.help(&p.caller, nil)
	if m := p.meter.Load(); m != nil {
		m.Waited.Add(measured(w.wait))
	} else {
		w.wait()
	}
	f := w.failure.Load()
	p.release(w)
	if f != nil {
		panic(&Panic{f.value, f.stack})
	}
}

// invite offers the work to as many helpers, without waiting for any.
func (p *Pool) invite(w *work, helpers int) {
	for range helpers {
		w.holders.Add(1)
		select {
		case p.tickets <- w:
		default:
			w.holders.Add(-1)
			return
		}
	}
}

func (p *Pool) release(w *work) {
	if w.holders.Add(-1) > 0 {
		return
	}
	w.task = nil
	w.failure.Store(nil)
	p.works.Put(w)
}

// help is a worker's life: take a ticket, compute chunks of it until none is left.
func (p *Pool) help() {
	closed := false
	defer func() {
		if !closed { // a task ended this goroutine
			go p.help()
		}
	}()
	var t turn
	for w := p.ticket(); w != nil; w = p.ticket() {
		p.assist(w, &t)
	}
	closed = true
}

func (p *Pool) assist(w *work, t *turn) {
	defer p.release(w)
	w.help(t, p.meter.Load())
}

// ticket waits for work, at first without sleeping: within a step the next call comes soon.
func (p *Pool) ticket() *work {
	for spin := 0; spin < idleSpins && !p.ended.Load(); spin++ {
		if len(p.tickets) == 0 {
			continue
		}
		select {
		case w := <-p.tickets:
			return w
		default:
		}
	}
	select {
	case w := <-p.tickets:
		return w
	case <-p.closed:
		return nil
	}
}

// help computes chunks until all are taken, and yields between them. A meter counts each chunk before the chunk counts as done, so
// that its time belongs to the step that it is part of.
func (w *work) help(t *turn, m *Meter) {
	for {
		i := int(w.next.Add(1)) - 1
		if i >= w.ranges.chunks {
			return
		}
		w.chunk(w.ranges.at(i), w.ranges.at(i+1), m)
		t.giveWay()
	}
}

// errExit is the failure of a task that ended its goroutine, as testing's FailNow does.
var errExit = errors.New("a range of Pool.Run called runtime.Goexit")

// chunk computes a range; however that ends, it counts, and the last one wakes the caller.
func (w *work) chunk(lo, hi int, m *Meter) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			w.fail(v)
		} else if !returned {
			w.fail(errExit)
		}
		if int(w.done.Add(1)) == w.ranges.chunks {
			w.finished <- struct{}{}
		}
	}()
	if m != nil {
		m.Helped.Add(measured(func() { w.task.do(lo, hi) }))
	} else {
		w.task.do(lo, hi)
	}
	returned = true
}

func (w *work) fail(v any) {
	stack := make([]byte, 1<<14)
	stack = stack[:runtime.Stack(stack, false)]
	w.failure.CompareAndSwap(nil, &failure{v, stack})
}

// wait returns when the last chunk has ended.
func (w *work) wait() {
	for range idleSpins {
		if len(w.finished) == 0 {
			continue
		}
		select {
		case <-w.finished:
			return
		default:
		}
	}
	<-w.finished
}

package play

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Urgency orders decoding: all that is Held goes before any Strip, and so on. An image asked for twice takes the higher one.
type Urgency int

const (
	Held       Urgency = iota // under somebody's pointer
	Strip                     // swaps and the interpolation strip
	Palette                   // entries on offer
	Background                // nobody waits
	urgencies
)

// errClosed is what waiters get when the checkpoint they wait for is closed under them.
var errClosed = errors.New("the checkpoint was closed")

// queue gathers tuples from all callers into batches for one worker. A tuple that several callers want is decoded once; one
// that nobody wants any more is not decoded.
type queue struct {
	work func(tuples [][]int) ([][]byte, error)

	mu      sync.Mutex
	wake    *sync.Cond
	jobs    map[string]*job // waiting or in work
	waiting [urgencies][]*job
	closed  bool
	done    chan struct{}
}

type job struct {
	key     string
	tuple   []int
	urgency Urgency
	wanted  int  // callers that wait for it
	taken   bool // in work
	ready   chan struct{}
	image   []byte
	err     error
}

func newQueue(work func([][]int) ([][]byte, error)) *queue {
	q := &queue{work: work, jobs: map[string]*job{}, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// wait returns the images of tuples when all are there; where ctx ends first it withdraws them.
func (q *queue) wait(ctx context.Context, urgency Urgency, tuples [][]int) ([][]byte, error) {
	jobs, err := q.join(urgency, tuples)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(jobs))
	for i, j := range jobs {
		select {
		case <-j.ready:
		case <-ctx.Done():
			q.leave(jobs)
			return nil, ctx.Err()
		}
		if j.err != nil {
			q.leave(jobs)
			return nil, j.err
		}
		out[i] = j.image
	}
	q.leave(jobs)
	return out, nil
}

func (q *queue) join(urgency Urgency, tuples [][]int) ([]*job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, errClosed
	}
	jobs := make([]*job, len(tuples))
	for i, t := range tuples {
		key := FormatCodes(t)
		j, ok := q.jobs[key]
		if !ok {
			j = &job{key: key, tuple: t, urgency: urgency, ready: make(chan struct{})}
			q.jobs[key] = j
			q.waiting[urgency] = append(q.waiting[urgency], j)
		} else if urgency < j.urgency {
			j.urgency = urgency
			q.waiting[urgency] = append(q.waiting[urgency], j) // its older place is passed over by take
		}
		j.wanted++
		jobs[i] = j
	}
	q.wake.Signal()
	return jobs, nil
}

func (q *queue) leave(jobs []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if j.wanted--; j.wanted == 0 && !j.taken && q.jobs[j.key] == j {
			delete(q.jobs, j.key)
		}
	}
}

func (q *queue) run() {
	defer close(q.done)
	for {
		batch := q.take()
		if batch == nil {
			return
		}
		q.finish(batch)
	}
}

// take blocks until there is work and returns the most urgent batch, or nil once the queue is closed. A batch holds one urgency
// alone, so that what is held never waits for what is not.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return nil
		}
		for u := range q.waiting {
			if batch := q.takeFrom(Urgency(u)); len(batch) > 0 {
				return batch
			}
		}
		q.wake.Wait()
	}
}

func (q *queue) takeFrom(u Urgency) []*job {
	var batch []*job
	line := q.waiting[u]
	for len(line) > 0 && len(batch) < batchLimit[u] {
		j := line[0]
		line = line[1:]
		if j.wanted == 0 || j.taken || j.urgency != u {
			continue
		}
		j.taken = true
		batch = append(batch, j)
	}
	q.waiting[u] = line
	return batch
}

// batchLimit keeps one batch short enough that something held never waits long behind it.
var batchLimit = [urgencies]int{Held: 4, Strip: 16, Palette: 16, Background: 16}

func (q *queue) finish(batch []*job) {
	tuples := make([][]int, len(batch))
	for i, j := range batch {
		tuples[i] = j.tuple
	}
	images, err := q.try(tuples)
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, j := range batch {
		if j.err = err; err == nil {
			j.image = images[i]
		}
		delete(q.jobs, j.key)
		close(j.ready)
	}
}

// try turns a panic of the engine into an error of these tuples: graph code panics on what it does not support.
func (q *queue) try(tuples [][]int) (images [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return q.work(tuples)
}

// close ends the worker after the batch in work and fails what waits.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	for _, j := range q.jobs {
		if !j.taken {
			j.err = errClosed
			delete(q.jobs, j.key)
			close(j.ready)
		}
	}
	q.wake.Broadcast()
	q.mu.Unlock()
	<-q.done
}

package play

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Urgency is the priority of decoding: all Held images come before any Strip image, and so on. An image requested twice gets the higher
// priority.
type Urgency int

const (
	Held       Urgency = iota // being dragged or previewed
	Strip                     // swaps and the interpolation strip
	Palette                   // palette entries
	Background                // no user is waiting
	urgencies
)

// errClosed is returned to callers that wait for a checkpoint when it is closed.
var errClosed = errors.New("the checkpoint was closed")

// queue passes the tuples of all callers to one worker, one by one, the most urgent first. A tuple requested by several callers is decoded
// once; one that all its callers have withdrawn is not decoded.
type queue struct {
	work func(tuple []int) ([]byte, error)

	mu      sync.Mutex
	wake    *sync.Cond
	jobs    map[string]*job // waiting or running
	waiting [urgencies][]*job
	closed  bool
	done    chan struct{}
}

type job struct {
	key     string
	tuple   []int
	urgency Urgency
	wanted  int  // number of waiting callers
	taken   bool // running
	ready   chan struct{}
	image   []byte
	err     error
}

func newQueue(work func([]int) ([]byte, error)) *queue {
	q := &queue{work: work, jobs: map[string]*job{}, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// wait returns the images of tuples once all are decoded, or withdraws them when ctx is done.
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
			q.waiting[urgency] = append(q.waiting[urgency], j) // takeFrom skips its older position
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
		j := q.take()
		if j == nil {
			return
		}
		q.finish(j)
	}
}

// take blocks until there is a job and returns the most urgent one, or nil once the queue is closed.
func (q *queue) take() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		for u := range q.waiting {
			if j := q.takeFrom(Urgency(u)); j != nil {
				return j
			}
		}
		q.wake.Wait()
	}
	return nil
}

// takeFrom returns the next job of one urgency, skipping jobs that have been withdrawn or moved to a higher urgency; nil if none.
func (q *queue) takeFrom(u Urgency) *job {
	for len(q.waiting[u]) > 0 {
		j := q.waiting[u][0]
		q.waiting[u] = q.waiting[u][1:]
		if j.wanted > 0 && !j.taken && j.urgency == u {
			j.taken = true
			return j
		}
	}
	return nil
}

func (q *queue) finish(j *job) {
	image, err := q.try(j.tuple)
	q.mu.Lock()
	defer q.mu.Unlock()
	j.image, j.err = image, err
	delete(q.jobs, j.key)
	close(j.ready)
}

// try converts a panic into an error of this tuple, because graph code panics on unsupported operations.
func (q *queue) try(tuple []int) (image []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return q.work(tuple)
}

// close stops the worker after the running job and fails all waiting jobs.
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

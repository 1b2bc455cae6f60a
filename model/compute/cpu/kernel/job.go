//go:build cgo

package kernel

import "sync/atomic"

// Job is a computation in the background: of threads that the calls of others leave idle. It may be started again once it has been joined.
type Job struct {
	run   func(*Pool)
	after []*Job       // that have to end before it begins
	next  []*Job       // that may begin when it and others have ended
	left  atomic.Int32 // of those that have to end, and its start
	pool  *Pool
	work  *work // nil unless it has been started and not joined
	late  *late // the same on a simulated pool
}

// NewJob returns a job that calls run with a pool for its own calls, once the jobs after which it comes have ended. Whenever it is started or joined, they
// must have been before.
func NewJob(run func(*Pool), after ...*Job) *Job {
	j := &Job{run: run, after: after}
	for _, k := range after {
		k.next = append(k.next, j)
	}
	j.left.Store(int32(1 + len(after)))
	return j
}

func (j *Job) do(int, int) {
	defer func() { // also if it fails, since others wait for those that follow
		for _, k := range j.next {
			k.advance()
		}
	}()
	j.run(j.pool.behind)
}

// advance offers the job to threads if this was the last thing that it had to wait for.
func (j *Job) advance() {
	if j.left.Add(-1) == 0 {
		atomic.AddInt64(&j.work.state, 1)
		j.pool.behind.invite(j.work, 1)
	}
}

// Start begins a job as soon as those before it have ended, or computes it at once if the pool has only one thread.
func (p *Pool) Start(j *Job) {
	j.pool = p
	switch {
	case p.simulation != nil:
		j.late = p.simulation.start(j)
		return
	case p.threads == 1:
		j.run(p)
		return
	}
	j.work = p.work(ranges{1, 1, 1, p.threads}, j, 0)
	j.advance()
}

// Join returns when the job has ended, and computes parts of it, or of other jobs, meanwhile. It panics if the job did.
func (j *Job) Join() {
	p, w := j.pool, j.work
	if j.late != nil {
		p.simulation.join(j.late)
		j.late = nil
	}
	if w == nil {
		return
	}
	done := 0
	w.help(&p.caller, nil, &done) // unless a thread has begun it
	p.leave(w, done, 0)
	for s := (spins{}); !w.ended(); {
		var other *work
		if len(p.behind.tickets) > 0 {
			select {
			case other = <-p.behind.tickets:
			default:
			}
		} else if s.enough() {
			other = w.sleep(p.behind.tickets)
		}
		if other != nil {
			p.assist(other, &p.caller)
			s = spins{}
		}
	}
	j.work = nil
	j.left.Store(int32(1 + len(j.after)))
	p.end(w)
}

//go:build cgo

package kernel

// Job is a computation in the background: of threads that the calls of others leave idle, on the pool that Run receives. It may be started again
// once it has been joined.
type Job struct {
	Run  func(*Pool)
	pool *Pool
	work *work // nil unless it has been started and not joined
	late *late // the same on a simulated pool
}

func (j *Job) do(int, int) { j.Run(j.pool.behind) }

// Start begins a job, or computes it at once if the pool has only one thread.
func (p *Pool) Start(j *Job) {
	j.pool = p
	switch {
	case p.simulation != nil:
		j.late = p.simulation.start(j)
		return
	case p.threads == 1:
		j.Run(p)
		return
	}
	w := p.work(ranges{1, 1, 1, p.threads}, j)
	j.work = w
	p.behind.invite(w, 1)
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
	j.work = nil
	w.help(&p.caller, nil) // unless a thread has begun it
	for spin := 0; len(w.finished) == 0; spin++ {
		if len(p.behind.tickets) == 0 && spin < idleSpins {
			continue
		}
		select {
		case v := <-p.behind.tickets:
			p.assist(v, &p.caller)
			spin = 0
		case <-w.finished:
			w.finished <- struct{}{}
		}
	}
	<-w.finished
	p.end(w)
}

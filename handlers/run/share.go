package run

import (
	"context"
	"sync"
	"time"
)

// share answers once what many sockets ask at the same moment. Sockets look for news at the same instants, multiples of frameEvery, so
// that those which have the same points ask the same.
type share struct {
	mu      sync.Mutex
	answers map[question]*answer
}

// question is what a socket lacks.
type question struct {
	run, kind string
	since     int64 // last step, or ID of the last alert, that the socket has
	attempt   int
}

type answer struct {
	begun time.Time
	ready chan struct{} // closed when what follows is set
	value any
	err   error
}

// keepAnswer is how long an answer waits for further sockets.
const keepAnswer = 5 * frameEvery

// ask returns what work answered to q, here or for another socket, at or after the time since: whatever had changed by then is in it.
func ask[T any](ctx context.Context, s *share, q question, since time.Time, work func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	a := s.answers[q]
	mine := a == nil || a.begun.Before(since)
	if mine {
		a = &answer{begun: time.Now(), ready: make(chan struct{})}
		if s.answers == nil {
			s.answers = map[question]*answer{}
		}
		s.answers[q] = a
	}
	s.mu.Unlock()
	if mine {
		func() {
			defer s.forget(q, a)
			defer close(a.ready)
			a.value, a.err = work(context.WithoutCancel(ctx)) // the socket that asked may leave, those that wait stay
		}()
	}
	<-a.ready
	v, _ := a.value.(T)
	return v, a.err
}

// forget drops an answer after a while.
func (s *share) forget(q question, a *answer) {
	time.AfterFunc(keepAnswer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.answers[q] == a {
			delete(s.answers, q)
		}
	})
}

// untilFrame is how long it is until sockets next look for news.
func untilFrame(now time.Time) time.Duration {
	return now.Truncate(frameEvery).Add(frameEvery).Sub(now)
}

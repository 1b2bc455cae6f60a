package run

import (
	"context"
	"sync"
	"time"
)

// share computes an answer once for all sockets that need it at the same time. Sockets check for news at multiples of frameEvery, so sockets
// with the same points have the same question.
type share struct {
	mu      sync.Mutex
	answers map[question]*answer
}

// question identifies the data that a socket needs.
type question struct {
	run, kind string
	since     int64 // last step, or ID of the last alert, that the socket has
	attempt   int
}

type answer struct {
	begun time.Time
	ready chan struct{} // closed when value and err are set
	value any
	err   error
}

// keepAnswer is how long an answer is kept for other sockets.
const keepAnswer = 5 * frameEvery

// ask returns the result of work for q, started at or after since by this or another socket, so that it includes all changes up to then.
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
			a.value, a.err = work(context.WithoutCancel(ctx)) // other sockets may wait for the result after this one closes
		}()
	}
	<-a.ready
	v, _ := a.value.(T)
	return v, a.err
}

// forget drops an answer after keepAnswer.
func (s *share) forget(q question, a *answer) {
	time.AfterFunc(keepAnswer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.answers[q] == a {
			delete(s.answers, q)
		}
	})
}

// untilFrame returns the time until sockets next check for news.
func untilFrame(now time.Time) time.Duration {
	return now.Truncate(frameEvery).Add(frameEvery).Sub(now)
}

package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAskedOnce: sockets with the same question share an answer, but never one started before a change they know of.
func TestAskedOnce(t *testing.T) {
	var s share
	var times atomic.Int64
	work := func(context.Context) (int64, error) { return times.Add(1), nil }
	q := question{run: "a", kind: "points", since: 7}
	get := func(q question, since time.Time) int64 {
		t.Helper()
		v, err := ask(t.Context(), &s, q, since, work)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	heard := time.Now()
	if first, second := get(q, heard), get(q, heard); first != 1 || second != 1 {
		t.Errorf("the same question gives %d, then %d", first, second)
	}
	if v := get(question{run: "a", kind: "points", since: 8}, heard); v != 2 {
		t.Errorf("another question gives %d", v)
	}
	time.Sleep(time.Millisecond)
	if v := get(q, time.Now()); v != 3 {
		t.Errorf("after a change, the answer is the old one, %d", v)
	}
	if v := get(q, heard); v != 3 {
		t.Errorf("the newer answer is not used for an older since: %d", v)
	}
}

// TestAskedTogether: sockets that ask while an answer is computed wait for it and share its error; one that leaves does not cancel it.
func TestAskedTogether(t *testing.T) {
	t.Parallel()
	var s share
	var times atomic.Int64
	broken, working := errors.New("no"), make(chan struct{})
	since := time.Now()
	leaving, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	one := func(ctx context.Context) {
		_, err := ask(ctx, &s, question{run: "a"}, since, func(ctx context.Context) (string, error) {
			if times.Add(1) == 1 {
				close(working)
			}
			time.Sleep(20 * time.Millisecond)
			return "", errors.Join(broken, ctx.Err())
		})
		if !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	all.Go(func() { one(leaving) })
	<-working
	for range 50 {
		all.Go(func() { one(t.Context()) })
	}
	leave()
	all.Wait()
	if times.Load() != 1 {
		t.Errorf("asked %d times", times.Load())
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(keepAnswer / 4) {
		s.mu.Lock()
		left := len(s.answers)
		s.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d answers are never dropped", left)
		}
	}
}

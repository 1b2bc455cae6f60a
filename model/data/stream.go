package data

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ahead reads a block of images while yield processes the previous one. read fills dst, [n, each], with the images from first on and
// runs in one goroutine at a time.
func ahead(ctx context.Context, first, length, block, each int, read func(dst []byte, first int) error,
	yield func(first int, images []byte) error) error {
	type part struct {
		first  int
		images []byte
		err    error
	}
	ctx, stop := context.WithCancel(ctx)
	parts, free := make(chan part), make(chan []byte, 2)
	free <- make([]byte, block*each)
	free <- make([]byte, block*each)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	reading.Go(func() {
		defer close(parts)
		for at := first; at < length; at += block {
			var buffer []byte
			select {
			case <-ctx.Done():
				return
			case buffer = <-free:
			}
			p := part{at, buffer[:min(block, length-at)*each], nil}
			p.err = safely(func() error { return read(p.images, at) })
			select {
			case <-ctx.Done():
				return
			case parts <- p:
			}
			if p.err != nil {
				return
			}
		}
	})
	for p := range parts {
		if p.err != nil {
			return p.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := yield(p.first, p.images); err != nil {
			return err
		}
		free <- p.images[:cap(p.images)]
	}
	return ctx.Err()
}

// safely turns a panic, which an unexpected file may cause, into an error.
func safely(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged in an unexpected way: %v", r)
		}
	}()
	return do()
}

// onAllCores runs the tasks 0 … n−1 on all cores. Tasks that run at the same time have different workers. It returns the first error of
// every worker.
func onAllCores(n int, do func(worker, task int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	errs := make([]error, workers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			errs[worker] = safely(func() error {
				for {
					task := int(next.Add(1)) - 1
					if task >= n {
						return nil
					}
					if err := do(worker, task); err != nil {
						next.Store(int64(n)) // stop all workers
						return err
					}
				}
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

package data

import (
	"context"
	"fmt"
	"sync"
)

// gatheredSource is a small dataset whose files hold the images in an order other than that of its grid. It reads and scales all images
// into memory and then yields them in order.
type gatheredSource struct {
	info Info
	// load fills images, [Len, H, W, C], and reports the number done to tell.
	load func(ctx context.Context, images []byte, tell func(done int)) error

	mu     sync.Mutex
	images []byte // nil before loading
}

func (s *gatheredSource) Info() Info     { return s.info.clone() }
func (*gatheredSource) Labels() []uint16 { return nil }

func (s *gatheredSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images = nil
	return nil
}

// prepare loads the images.
func (s *gatheredSource) prepare(ctx context.Context, tell func(done int)) error {
	_, err := s.all(ctx, tell)
	return err
}

// all returns the images, which it loads once.
func (s *gatheredSource) all(ctx context.Context, tell func(done int)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.images != nil {
		return s.images, nil
	}
	images := make([]byte, s.info.Len*s.info.H*s.info.W*s.info.C)
	if err := safely(func() error { return s.load(ctx, images, tell) }); err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.info.Title, err)
	}
	s.images = images
	return images, nil
}

func (s *gatheredSource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	images, err := s.all(ctx, func(int) {})
	if err != nil {
		return err
	}
	each := s.info.H * s.info.W * s.info.C
	for ; first < s.info.Len; first += picturesAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := yield(first, images[first*each:min(first+picturesAtOnce, s.info.Len)*each]); err != nil {
			return err
		}
	}
	return nil
}

//go:build cgo

package kernel

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestImaginedThreadsComputeTheSame checks that simulated threads give bit-identical results, in no less time than all cores together would take.
func TestImaginedThreadsComputeTheSame(t *testing.T) {
	for _, threads := range []int{2, 5, 16} {
		real, imagined := NewPool(threads), Simulated(threads)
		for _, spec := range []ConvSpec{nhwc(16, 16, 8, 20, 4, 2, 1), kernelGradient(nhwc(16, 16, 8, 20, 4, 2, 1)), nhwc(2, 8, 40, 80, 3, 1, 1)} {
			c, err := PlanConv(spec)
			if err != nil {
				t.Fatal(err)
			}
			x, w := random(1, c.reach[0]), random(2, c.reach[1])
			want, got := make([]float32, c.reach[2]), make([]float32, c.reach[2])
			c.Run(real, x, w, want)
			c.Run(imagined, x, w, got)
			if !slices.Equal(got, want) {
				t.Errorf("%d threads, %d to %d channels: values differ", threads, spec.InChannels, spec.OutChannels)
			}
		}
		real.Close()
		times, ok := imagined.Imagined()
		if !ok || times.Span <= 0 || times.Span > times.Ranges || times.Span*int64(threads) < times.Ranges || times.Serial <= 0 {
			t.Errorf("%d threads: %+v (%v)", threads, times, ok)
		}
	}
	if _, ok := Shared(2).Imagined(); ok {
		t.Error("real threads have simulated times")
	}
}

// TestImaginedThreadsNestAndPanic checks that nested calls are part of a range, and that a range that panics leaves the pool usable.
func TestImaginedThreadsNestAndPanic(t *testing.T) {
	p := Simulated(3)
	func() {
		defer func() { recover() }()
		p.Run(30, 1, func(lo, hi int) {
			if lo > 0 {
				panic("on purpose")
			}
		})
		t.Error("Run returned")
	}()
	n := 0
	p.Run(12, 1, func(lo, hi int) { p.Run(hi-lo, 1, func(lo, hi int) { n += hi - lo }) })
	if n != 12 {
		t.Errorf("%d of 12 indices were visited", n)
	}
}

// TestRepeatedCalls checks that ranges of calls that are repeated take their usual time: one slow range in each repetition does not count, if it is another
// one each time, and calls of a part are told apart.
func TestRepeatedCalls(t *testing.T) {
	const ranges, slow = 8, 2 * time.Millisecond
	p := Simulated(ranges)
	repeat := func(of any, odd int) time.Duration {
		p.Repeat(of, 3)
		began, _ := p.Imagined()
		p.Run(ranges, 1, func(lo, _ int) {
			if lo == odd {
				spin(slow)
			}
		})
		p.Run(ranges, 1, func(lo, _ int) {
			if lo == 0 {
				spin(3 * slow)
			}
		})
		p.Run(ranges, 1, func(_, _ int) {})
		ended, _ := p.Imagined()
		return time.Duration(ended.Minus(began).Span)
	}
	for odd := range ranges {
		if span := repeat(nil, odd); span < 4*slow {
			t.Errorf("calls of no part take %v with a range of %v and one of %v", span, slow, 3*slow)
		}
	}
	var span time.Duration
	for odd := range ranges {
		span = repeat("computation", odd)
	}
	if span < 3*slow || span >= 4*slow {
		t.Errorf("repeated calls with a range that always takes %v, and one that once took %v, take %v", 3*slow, slow, span)
	}
}

// TestMeasuredWithoutTheClock checks that reading the clock is no part of a measured time: nothing takes less than two readings of the same moment are apart.
func TestMeasuredWithoutTheClock(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nothing, apart := int64(math.MaxInt64), int64(math.MaxInt64)
	for range 1000 {
		nothing = min(nothing, measured(func() {}))
		began := threadTime()
		apart = min(apart, threadTime()-began)
	}
	if nothing >= apart {
		t.Errorf("nothing takes %d ns, and two readings are %d ns apart", nothing, apart)
	}
}

package data

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func sampler(t testing.TB, seed int64, batch, length int) Sampler {
	t.Helper()
	s, err := NewSampler(seed, batch, length)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOrderIsFixed checks the order itself: newer versions of the program must resume runs in the same order.
func TestOrderIsFixed(t *testing.T) {
	if got, want := sampler(t, 1, 5, 480_000).Batch(1), []int{191335, 302240, 83878, 110384, 137028}; !slices.Equal(got, want) {
		t.Errorf("first batch is %v, want %v", got, want)
	}
	if got, want := sampler(t, 1, 5, 480_000).Batch(100_001), []int{458160, 464778, 424709, 39988, 473237}; !slices.Equal(got, want) {
		t.Errorf("a batch of the second epoch is %v, want %v", got, want)
	}
	draw, err := Draw(1, 5, 480_000)
	if want := []int{368582, 28573, 167698, 176109, 449830}; err != nil || !slices.Equal(draw, want) {
		t.Errorf("draw is %v (%v), want %v", draw, err, want)
	}
}

// TestEpochHoldsEverything: for any length and batch, each epoch is a permutation, and epochs differ.
func TestEpochHoldsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, 600).Draw(t, "length")
		batch := rapid.IntRange(1, length).Draw(t, "batch")
		s, err := NewSampler(rapid.Int64().Draw(t, "seed"), batch, length)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for step := 1; len(order) < 2*length; step++ {
			order = append(order, s.Batch(step)...)
		}
		for epoch := range 2 {
			sorted := slices.Sorted(slices.Values(order[epoch*length : (epoch+1)*length]))
			for i := range sorted {
				if sorted[i] != i {
					t.Fatalf("epoch %d of %d lacks image %d", epoch, length, i)
				}
			}
		}
		if length > 20 && slices.Equal(order[:length], order[length:2*length]) {
			t.Fatal("two epochs have one order")
		}
	})
}

// TestBatchNeedsNoState: a new sampler returns the same batch for step 777 as one that ran all steps before.
func TestBatchNeedsNoState(t *testing.T) {
	first := sampler(t, 42, 64, 480_000)
	for step := 1; step < 777; step++ {
		first.Batch(step)
	}
	if got, want := sampler(t, 42, 64, 480_000).Batch(777), first.Batch(777); !slices.Equal(got, want) {
		t.Errorf("a new sampler returns %v, want %v", got, want)
	}
	if slices.Equal(first.Batch(1), sampler(t, 43, 64, 480_000).Batch(1)) {
		t.Error("two seeds have one order")
	}
}

func TestSamplerRefuses(t *testing.T) {
	_, err := NewSampler(1, 11, 10)
	invalid(t, err, "batch", "11", "10 images")
	_, err = NewSampler(1, 0, 10)
	invalid(t, err, "batch", "0")
	_, err = NewSampler(1, 1, 0)
	invalid(t, err, "dataset", "no images")
}

func TestDraw(t *testing.T) {
	const n, length = 10_000, 480_000
	index, err := Draw(7, n, length)
	if err != nil {
		t.Fatal(err)
	}
	sorted := slices.Sorted(slices.Values(index))
	if len(slices.Compact(sorted)) != n || sorted[0] < 0 || sorted[n-1] >= length {
		t.Error("the draw repeats itself or leaves the set")
	}
	shorter, _ := Draw(7, 100, length)
	if !slices.Equal(shorter, index[:100]) {
		t.Error("a shorter draw is not the beginning of a longer one")
	}
	if slices.Equal(shorter, sampler(t, 7, 100, length).Batch(1)) {
		t.Error("the evaluation set equals the first training batch")
	}
	_, err = Draw(7, 11, 10)
	invalid(t, err, "eval_images", "11", "10")
	if none, err := Draw(7, 0, 10); err != nil || len(none) != 0 {
		t.Errorf("a draw of nothing is %v (%v)", none, err)
	}
}

// TestDrawIsEven counts the draw in 60 equal parts of the set and by class of a factor: χ² stays below its 0.1 % point.
func TestDrawIsEven(t *testing.T) {
	const n, length = 12_000, 480_000
	for _, seed := range []int64{0, 1, 2, 3, -1, math.MaxInt64} {
		index, err := Draw(seed, n, length)
		if err != nil {
			t.Fatal(err)
		}
		parts, orientation := make([]int, 60), make([]int, 15)
		for _, i := range index {
			parts[i/(length/60)]++
			orientation[i%15]++
		}
		if x := chiSquare(parts, n); x > 98.3 { // 59 degrees of freedom
			t.Errorf("seed %d: χ² over parts is %.1f", seed, x)
		}
		if x := chiSquare(orientation, n); x > 36.2 { // 14 degrees of freedom
			t.Errorf("seed %d: χ² over orientations is %.1f", seed, x)
		}
	}
}

func chiSquare(counts []int, n int) (x float64) {
	expected := float64(n) / float64(len(counts))
	for _, c := range counts {
		x += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	return x
}

func TestEpoch(t *testing.T) {
	if got := sampler(t, 1, 64, 480_000).Epoch(7500); got != 1 {
		t.Errorf("after 480,000 images, Epoch is %g", got)
	}
}

func BenchmarkBatch(b *testing.B) {
	s := sampler(b, 1, 128, 480_000)
	for step := 1; b.Loop(); step++ {
		s.Batch(step)
	}
}

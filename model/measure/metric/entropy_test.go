package metric_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slotscope/model/measure/metric"
)

// Two slots over four images: (0,0), (0,0), (1,0), (1,1). H(c₁) = ln 2, H(c₂) = ln 4 − ¾ ln 3, joint = 1.5 ln 2.
func TestJointEntropyByHand(t *testing.T) {
	j := metric.JointEntropy([]int32{0, 0, 0, 0, 1, 0, 1, 1}, 2)
	h1, h2, joint := math.Ln2, math.Log(4)-0.75*math.Log(3), 1.5*math.Ln2
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"joint", j.Nats, joint}, {"slot 0", j.Slots[0], h1}, {"slot 1", j.Slots[1], h2}, {"redundancy", j.Redundancy, h1 + h2 - joint},
		{"ceiling", j.Ceiling, math.Log(4)}, {"coverage", j.Coverage, 0.5},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
	if j.Images != 4 || j.Tuples != 3 || !j.LowerBound {
		t.Errorf("%+v", j)
	}
	if metric.JointEntropy(nil, 3) != nil || metric.JointEntropy([]int32{1}, 0) != nil {
		t.Error("got a joint entropy without images or slots")
	}
}

// TestJointEntropyWorlds: copies of one slot only add redundancy, independent slots have none, unique tuples saturate the estimate.
func TestJointEntropyWorlds(t *testing.T) {
	var copies, grid, own []int32
	for i := range int32(1000) {
		copies = append(copies, i%10, i%10, i%10)
		grid = append(grid, i%10, i/10%10)
		own = append(own, i, i)
	}
	ln10 := math.Log(10)
	if j := metric.JointEntropy(copies, 3); math.Abs(j.Nats-ln10) > 1e-12 || math.Abs(j.Redundancy-2*ln10) > 1e-12 || j.LowerBound || j.Coverage != 1 {
		t.Errorf("three copies: %+v", j)
	}
	if j := metric.JointEntropy(grid, 2); math.Abs(j.Nats-2*ln10) > 1e-12 || j.Redundancy > 1e-12 || j.LowerBound {
		t.Errorf("independent slots: %+v", j)
	}
	if j := metric.JointEntropy(own, 2); math.Abs(j.Nats-j.Ceiling) > 1e-12 || !j.LowerBound || j.Coverage != 0 {
		t.Errorf("unique tuple for every image: %+v", j)
	}
}

// TestJointEntropyBounds: max H(cᵢ) ≤ H ≤ min(Σ H(cᵢ), ln n), and the result does not depend on code names or the order of images.
func TestJointEntropyBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 5).Draw(t, "m")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 6), m, m), 1, 80).Draw(t, "rows")
		j := metric.JointEntropy(slices.Concat(rows...), m)
		sum := 0.0
		for _, h := range j.Slots {
			sum += h
			if h > j.Nats+1e-9 {
				t.Fatalf("entropy %v of a slot exceeds the joint entropy %v", h, j.Nats)
			}
		}
		if j.Nats > min(sum, j.Ceiling)+1e-9 || math.Abs(max(0, sum-j.Nats)-j.Redundancy) > 1e-9 || j.Coverage < 0 || j.Coverage > 1 {
			t.Fatalf("%+v", j)
		}
		slices.Reverse(rows)
		var renamed []int32
		for _, row := range rows {
			for _, c := range row {
				renamed = append(renamed, 1000-c)
			}
		}
		if other := metric.JointEntropy(renamed, m); other.Nats != j.Nats || other.Tuples != j.Tuples || other.Coverage != j.Coverage {
			t.Fatalf("%+v, but with renamed codes and reordered images %+v", j, other)
		}
	})
}

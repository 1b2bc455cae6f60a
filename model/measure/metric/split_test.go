package metric

import (
	"slices"
	"testing"
)

// TestReferenceSplit: the held-out rows are NumPy's, in the same order.
func TestReferenceSplit(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		train, test := referenceSplit(len(g.Factors))
		if !slices.Equal(test, g.Expected.Test) {
			t.Errorf("held out: %v …, want %v …", test[:5], g.Expected.Test[:5])
		}
		all := slices.Sorted(slices.Values(slices.Concat(train, test)))
		for i, row := range all {
			if i != row {
				t.Fatalf("row %d of the union is %d", i, row)
			}
		}
	})
}

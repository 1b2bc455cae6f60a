package metric

import (
	"fmt"
	"math"
	"testing"

	"slotscope/model"
)

// TestCodeNames: two slots by hand. Slot 0 tells of factor 1: code 7 is value 2 in two of three rows. Slot 1 tells of nothing.
func TestCodeNames(t *testing.T) {
	table := Table{
		Codes:   [][]int{{7, 7, 7, 4, 9, 9}, {1, 1, 1, 1, 1, 1}},
		Factors: [][]int{{0, 1, 0, 1, 0, 1}, {2, 2, 0, 1, 1, 0}},
	}
	nmi := [][]model.Score{{0.2, 0}, {0.9, model.Score(math.NaN())}}
	got := CodeNames(table, nmi)
	want := "[{1 [{7 3 2 0.6666666666666666} {9 2 0 0.5} {4 1 1 1}]} {-1 []}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, not %s", got, want)
	}
	if f := OwnFactor(nmi, 5); f != -1 {
		t.Errorf("a latent that is not there tells of factor %d", f)
	}
}

package metric

import (
	"fmt"
	"testing"

	"slotscope/model"
)

// TestCodeNames checks two slots by hand. Slot 0 is named after factor 1: code 7 is value 2 in two of three rows. Slot 1 is mixed.
func TestCodeNames(t *testing.T) {
	table := Table{
		Codes:   [][]int{{7, 7, 7, 4, 9, 9}, {1, 1, 1, 1, 1, 1}},
		Factors: [][]int{{0, 1, 0, 1, 0, 1}, {2, 2, 0, 1, 1, 0}},
	}
	got := CodeNames(table, []model.Owner{{Kind: model.Owned, First: 1, Factors: []int{1}}, {Kind: model.Mixed, First: 1}})
	want := "[{1 [{7 3 2 0.6666666666666666} {9 2 0 0.5} {4 1 1 1}]} {-1 []}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

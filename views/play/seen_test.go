package play

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLabelsBeginWithWhatIsSeen: before any script runs, a code's accessible name starts with the visible text of its cell, for named and
// unnamed codes.
func TestLabelsBeginWithWhatIsSeen(t *testing.T) {
	v := PlayView{M: 2, K: 8, Text: strconv.Itoa, H: 64, W: 64, Groups: []PlayGroup{{Slots: []int{0, 1}}}, Swaps: make([]PlayCell, 2),
		Slots: []PlaySlot{{Index: 0, Codes: []PlayCode{{Code: 3, Name: "0.6"}}}, {Index: 1}}}
	var b strings.Builder
	if err := playRow(v, "a", "A", []int{3, 5}).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	cells := regexp.MustCompile(`(?s)aria-label="([^"]*)"\s*>.*?<span class="name">(.*?)</a>`).FindAllStringSubmatch(b.String(), -1)
	if len(cells) != 2 {
		t.Fatalf("%d cells in %s", len(cells), b.String())
	}
	for i, c := range cells {
		seen := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(c[2], " ")), " ")
		if want := []string{"0.6 3", "5"}[i]; seen != want || !strings.HasPrefix(c[1], seen+": A, slot ") {
			t.Errorf("cell %d shows %q, but its label is %q", i, seen, c[1])
		}
	}
}

package play

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLabelsBeginWithWhatIsSeen: a code's accessible name begins with what its cell shows, before any script has run, whether the code stands
// for a value or goes by its number.
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
			t.Errorf("cell %d shows %q, and is called %q", i, seen, c[1])
		}
	}
}

package expect

import "testing"

// A long test is skipped unless all tests are requested.
func TestLong(t *testing.T) {
	for _, asked := range []string{"", "some", "all"} {
		t.Setenv("SLOTSCOPE_TESTS", asked)
		went := false
		t.Run("long", func(t *testing.T) {
			Long(t)
			went = true
		})
		if want := asked == "all" && !testing.Short(); went != want {
			t.Errorf("SLOTSCOPE_TESTS=%s: it ran: %v", asked, went)
		}
	}
}

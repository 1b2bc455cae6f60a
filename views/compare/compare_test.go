package compare

import "testing"

func TestNoWinner(t *testing.T) {
	few, close := "a row has 1 seed", "the intervals overlap"
	for _, c := range []struct {
		name string
		rows []Verdict
		want string
	}{
		{"nothing compared", nil, ""},
		{"one metric", []Verdict{{Why: few}}, ""},
		{"one reason", []Verdict{{Why: few}, {Why: few}}, few},
		{"two reasons", []Verdict{{Why: few}, {Why: close}}, ""},
		{"a winner", []Verdict{{Why: few}, {Winner: "HRR", Why: few}}, ""},
	} {
		if got := (ScoreTable{Verdicts: c.rows}).NoWinner(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

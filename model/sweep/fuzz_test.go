package sweep

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"slotscope/model"
)

// FuzzPlan: a plan file is read completely or rejected with an error; a plan that was read is written and read again as the same sweep.
func FuzzPlan(f *testing.F) {
	f.Add(small().JSON())
	for _, text := range []string{"", "null", "{}", `{"name":"x","preset":"tiny","parts":[{}]}`, `{"name":"x","preset":"tiny","parts":[{"name":"p","models":["hrr"],"datasets":["shapes3d-synthetic"],"seeds":[0],"vary":[{"field":"d","values":["64","NaN"]}]}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Read(bytes.NewReader(text))
		if err != nil {
			var bad model.Invalid
			if !errors.As(err, &bad) || len(bad) == 0 {
				t.Fatalf("rejected without a problem by field: %v", err)
			}
			for field, why := range bad {
				if strings.TrimSpace(why) == "" {
					t.Fatalf("empty problem for %q", field)
				}
			}
			return
		}
		again, err := Read(bytes.NewReader(p.JSON()))
		if err != nil || again.ID() != p.ID() {
			t.Fatalf("written and read again: %v, %s for %s", err, again.ID(), p.ID())
		}
		if b := p.Look(func(string) (Found, bool) { return Found{}, false }); b.Count(Planned) != len(b.Items) {
			t.Fatal("an item is done although nothing has run")
		}
	})
}

// A plan with more settings than fit in memory is counted and rejected, not expanded.
func TestPlanOfTooManySettings(t *testing.T) {
	p := small()
	for range 8 {
		p.Parts[0].Vary = append(p.Parts[0].Vary, Axis{Field: "d", Values: strings.Split(strings.Repeat("64,", 99)+"64", ",")})
	}
	var bad model.Invalid
	if err := p.Validate(); !errors.As(err, &bad) || !strings.Contains(bad["parts"], "the limit is 5000") {
		t.Errorf("%v", err)
	}
}

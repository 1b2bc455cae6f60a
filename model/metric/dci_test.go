package metric

import (
	"encoding/json"
	"testing"

	"slotscope/model"
)

func TestDCIGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		m, err := Measure(t.Context(), g.table(), Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]model.DCIScore{"rf_onehot": m.DCI.OneHot, "rf_onehot_slotsum": m.DCI.SlotSum, "rf_slots": m.DCI.Slots} {
			want, there := g.Expected.DCI[name]
			if !there {
				if got.D.Defined() || got.I.Defined() || got.C.Defined() {
					t.Errorf("%s of numbers is %v", name, got)
				}
				continue
			}
			for letter, score := range map[string]model.Score{"D": got.D, "I": got.I, "C": got.C} {
				var spread struct{ Mean model.Score }
				if err := json.Unmarshal(want[letter], &spread); err != nil {
					t.Fatal(err)
				}
				tol := g.Tolerance.DCI[name][letter]
				t.Logf("%s %s %.4f want %.4f ± %.4f", name, letter, float64(score), float64(spread.Mean), tol)
				closeTo(t, name+" "+letter, score, spread.Mean, tol)
			}
		}
	})
}

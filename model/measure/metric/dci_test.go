package metric

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
)

// TestMeasureGolden checks the scores that Measure adds to InfoM and InfoC: InfoE, and every view of DCI.
func TestMeasureGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		if slices.Contains([]string{"01_perfect", "02_permuted_dead", "03_entangled", "05_noise", "06_codebook512"}, g.Name) {
			expect.Long(t) // 04 has codes, 07 numbers; TestInfo covers all but the forests
		}
		m, err := Measure(t.Context(), g.table(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "InfoE", m.InfoE, g.Expected.InfoE.Score, g.Tolerance.InfoE)
		for n, i := range m.KeptFactors {
			closeTo(t, fmt.Sprintf("InfoE of factor %d", i), m.InfoEFactors[i], g.Expected.InfoE.Factors[n], g.Tolerance.Factor)
		}
		for name, got := range map[string]model.DCIScore{"rf_onehot": m.DCI.OneHot, "rf_onehot_slotsum": m.DCI.SlotSum, "rf_slots": m.DCI.Slots} {
			want, there := g.Expected.DCI[name]
			if !there {
				if got.D.Defined() || got.I.Defined() || got.C.Defined() {
					t.Errorf("%s for numbers is %v", name, got)
				}
				continue
			}
			for letter, score := range map[string]model.Score{"D": got.D, "I": got.I, "C": got.C} {
				var spread struct{ Mean model.Score }
				if err := json.Unmarshal(want[letter], &spread); err != nil {
					t.Fatal(err)
				}
				closeTo(t, name+" "+letter, score, spread.Mean, g.Tolerance.DCI[name][letter])
			}
		}
	})
}

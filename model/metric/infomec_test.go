package metric

import (
	"fmt"
	"slices"
	"testing"

	"slotscope/model"
)

func TestInfoMCGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		table := g.table()
		r := relate(table, labelAll(table.Factors), 1)
		want := g.Expected
		if !slices.Equal(r.kept, want.Kept) || !slices.Equal(r.active, want.Active) {
			t.Errorf("kept %v, active %v; want %v, %v", r.kept, r.active, want.Kept, want.Active)
		}
		for i, row := range want.NMI {
			for j, v := range row {
				closeTo(t, fmt.Sprintf("NMI of factor %d and latent %d", i, j), r.nmi[i][j], v, g.Tolerance.NMI)
			}
		}
		closeTo(t, "InfoM", r.infoM(), want.InfoM, g.Tolerance.InfoM)
		closeTo(t, "InfoC", r.infoC(), want.InfoC, g.Tolerance.InfoC)
	})
}

func TestInfoEGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		table := g.table()
		x, factors := designOf(table), labelAll(table.Factors)
		var scores []model.Score
		for n, i := range kept(factors) {
			e, err := explicitness(t.Context(), x, factors[i])
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, fmt.Sprintf("InfoE of factor %d", i), e, g.Expected.InfoE.Factors[n], g.Tolerance.Factor)
			scores = append(scores, e)
		}
		all := make([]int, len(scores))
		for i := range all {
			all[i] = i
		}
		mean := meanScore(scores, all)
		t.Logf("InfoE %v, difference %.1e", float64(mean), float64(mean-g.Expected.InfoE.Score))
		closeTo(t, "InfoE", mean, g.Expected.InfoE.Score, g.Tolerance.InfoE)
	})
}

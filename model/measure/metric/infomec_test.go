package metric

import (
	"fmt"
	"slices"
	"testing"
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

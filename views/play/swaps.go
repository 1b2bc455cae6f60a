package play

import (
	"cmp"
	"fmt"
	"image"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

// SwapSheet is the paper's swap figure: one row per pair, with A, B and A with each group of B.
type SwapSheet struct {
	Of      Origin
	Dataset string   // title
	Groups  []string // names
	Rows    []SwapRow
	Seed    uint64 // of the pairs after the first
}

// SwapRow is the images of a pair: A, B, then a swap of each group, with the comparison of each swap with the true image.
type SwapRow struct {
	Images []image.Image
	Hits   []SwapHit
}

// SwapHit compares a swap with the true image.
type SwapHit struct {
	Measured bool
	PSNR     float64 // dB
	Hit      bool
}

// Draw draws the sheet.
func (s SwapSheet) Draw() figure.Figure {
	grid := figure.ImageGrid{
		Name: "swaps", Title: "Swaps of groups of slots: " + Named(s.Of.Title, s.Of.Step), Scale: 1, Columns: append([]string{"A", "B"}, s.Groups...),
		Note: fmt.Sprintf("%s on %s. A and B are reconstructions; every other image is A with B’s codes for the group.", model.ModelTitle(s.Of.Config.Model), s.Dataset),
	}
	hits, measured := 0, 0
	for at, row := range s.Rows {
		captions := []string{"", ""}
		for _, h := range row.Hits {
			captions = append(captions, h.caption())
			if h.Measured {
				measured++
			}
			if h.Hit {
				hits++
			}
		}
		grid.Images, grid.Captions, grid.Rows = append(grid.Images, row.Images), append(grid.Captions, captions), append(grid.Rows, fmt.Sprintf("pair %d", at+1))
	}
	if measured > 0 {
		grid.Note += fmt.Sprintf(" PSNR in dB against the true image, A with that factor from B; %d of %d are hits: at most %d dB below A’s reconstruction and closer to the true image than A was.", hits, measured, model.TruthTolerance)
	}
	grid.Note += fmt.Sprintf(" Pairs after the first: random, seed %d.", s.Seed)
	return grid.Draw()
}

// caption returns the PSNR and whether it is a hit, such as "33.1 hit".
func (h SwapHit) caption() string {
	switch {
	case !h.Measured:
		return ""
	case h.Hit:
		return fmt.Sprintf("%.1f hit", h.PSNR)
	}
	return fmt.Sprintf("%.1f miss", h.PSNR)
}

// StepCaption is the caption of a frame of the interpolation from a to b, after a slot of b.
func StepCaption(a, b string, slot PlaySlot) string {
	return strings.TrimSpace(fmt.Sprintf("%s + %s's slot %d %s", a, b, slot.Index, cmp.Or(slot.Called, slot.Name)))
}

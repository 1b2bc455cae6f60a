package data

import "slotscope/model/data/dsprites"

// dspritesDrawnInfo describes the built-in dataset: the factors of dSprites in their order, without color, which has one value.
var dspritesDrawnInfo = Info{
	Name: "dsprites-synthetic", Title: "dSprites, synthetic",
	H: dsprites.Side, W: dsprites.Side, C: 1,
	Len: dspritesGrid.Len(),
	Factors: []Factor{
		{"shape", []string{"square", "ellipse", "heart"}},
		{"scale", named(dsprites.Scales, "%.1f", dsprites.Scale)},
		{"orientation", named(dsprites.Orientations, "%.0f°", dsprites.Orientation)},
		{"posX", named(dsprites.Positions, "%.3f", dsprites.Position)},
		{"posY", named(dsprites.Positions, "%.3f", dsprites.Position)},
	},
	Complete: true,
	About: "A white square, ellipse or heart on black, drawn by Slotscope to resemble dSprites: the same factors, cardinalities and order " +
		"of images, without antialiasing. Sizes were fitted to frames published by the authors of dSprites. The curve of their heart is not " +
		"published; the one here was fitted to its width and area. Every combination of values occurs once.",
	Note: "These are not the images of dSprites: scores on them are not comparable with published dSprites scores. The square repeats every " +
		"90° and the ellipse every 180°. Orientations are 9° apart, so all 40 differ; in dSprites, 0° and 360° give the same image.",
	Licence:  "The licence of Slotscope, which draws the images. dSprites itself is Apache-2.0.",
	Citation: "After: " + dspritesInfo.Citation,
}

var dspritesGrid = Grid{dsprites.Shapes, dsprites.Scales, dsprites.Orientations, dsprites.Positions, dsprites.Positions}

func openDSpritesDrawn() Set {
	return drawnGrid{&dspritesDrawnInfo, dspritesGrid, func(dst []byte, c []int) {
		dsprites.Draw(dst, dsprites.Image{Shape: c[0], Scale: c[1], Orientation: c[2], X: c[3], Y: c[4]})
	}}
}

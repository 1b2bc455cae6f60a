package data

import (
	"context"
	"fmt"
	"sync"

	"slotscope/model/data/shapes3d"
)

// shapes3dInfo describes the built-in dataset, whose factors have the order, names and values of those of Shapes3D.
var shapes3dInfo = Info{
	Name: "shapes3d-synthetic", Title: "Shapes3D, synthetic",
	H: shapes3d.Side, W: shapes3d.Side, C: 3,
	Len: shapes3dGrid.Len(),
	Factors: []Factor{
		{"floor_hue", named(shapes3d.Hues, "%.1f", hueOf)},
		{"wall_hue", named(shapes3d.Hues, "%.1f", hueOf)},
		{"object_hue", named(shapes3d.Hues, "%.1f", hueOf)},
		{"scale", named(shapes3d.Scales, "%.3f", shapes3d.Scale)},
		{"shape", []string{"cube", "cylinder", "sphere", "capsule"}},
		{"orientation", named(shapes3d.Orientations, "%.1f°", shapes3d.Orientation)},
	},
	Complete: true,
	About: "A room with an object and a camera that orbits it, drawn by Slotscope to resemble Shapes3D: the same factors, " +
		"cardinalities and order, and a scene fitted to published images of Shapes3D. In a trial, this renderer differed from them " +
		"by 5.4 of 255 on average. Every combination of values occurs once.",
	Note:     "These are not the images of Shapes3D: scores on them are not comparable with published Shapes3D scores.",
	Licence:  "The licence of Slotscope, which draws the images. Shapes3D itself is Apache-2.0.",
	Citation: "After: C. Burgess and H. Kim. 3D Shapes Dataset, 2018. https://github.com/google-deepmind/3d-shapes",
}

var shapes3dGrid = Grid{shapes3d.Hues, shapes3d.Hues, shapes3d.Hues, shapes3d.Scales, shapes3d.Shapes, shapes3d.Orientations}

func hueOf(class int) float64 { return float64(class) / shapes3d.Hues }

// named returns the formatted value of every class.
func named(n int, format string, value func(class int) float64) []string {
	names := make([]string, n)
	for class := range names {
		names[class] = fmt.Sprintf(format, value(class))
	}
	return names
}

// shapes3dRenderer is shared by all users of the dataset: its traced geometries take 16 MB and seconds to compute.
var shapes3dRenderer = sync.OnceValue(func() *shapes3d.Renderer { return new(shapes3d.Renderer) })

// shapes3dSet traces the geometries of a batch on all cores before drawing it.
type shapes3dSet struct {
	drawnGrid
	*shapes3d.Renderer
}

func openShapes3D() Set {
	r := shapes3dRenderer()
	return shapes3dSet{drawnGrid{&shapes3dInfo, shapes3dGrid, func(dst []byte, c []int) { r.Draw(dst, shapes3dImage(c)) }}, r}
}

func (s shapes3dSet) Images(dst []byte, index []int) error {
	if err := check(shapes3dInfo, index, len(dst), shapes3d.Bytes); err != nil {
		return err
	}
	var classes [6]int
	s.Prepare(func(yield func(shapes3d.Image) bool) {
		for _, i := range index {
			shapes3dGrid.Classes(classes[:], i)
			if !yield(shapes3dImage(classes[:])) {
				return
			}
		}
	})
	return s.drawnGrid.Images(dst, index)
}

func shapes3dImage(c []int) shapes3d.Image {
	return shapes3d.Image{Floor: c[0], Wall: c[1], Object: c[2], Geometry: shapes3d.Geometry{Scale: c[3], Shape: c[4], Orientation: c[5]}}
}

func (s shapes3dSet) Warm(ctx context.Context) error { return s.Renderer.Warm(ctx) }

// check returns an error for an index outside the dataset, and panics on a buffer of the wrong length, which is a programming error.
func check(info Info, index []int, have, each int) error {
	if have != len(index)*each {
		panic(fmt.Sprintf("data: a buffer of %d for %d × %d", have, len(index), each))
	}
	for _, i := range index {
		if err := info.CheckIndex(i); err != nil {
			return err
		}
	}
	return nil
}

var _ Warmer = shapes3dSet{}

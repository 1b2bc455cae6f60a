package data

import (
	"context"

	"slotscope/model/data/shapes3d"
)

// originalInfo describes Shapes3D itself.
var originalInfo = Info{
	Name: "shapes3d", Title: "Shapes3D", H: side, W: side, C: 3, Len: shapes3dGrid.Len(), Complete: true,
	Factors:  shapes3dInfo.Factors,
	About:    "A room with an object and a camera that orbits it. Every combination of six factors occurs once.",
	Licence:  "Apache-2.0",
	Citation: "C. Burgess and H. Kim. 3D Shapes Dataset, 2018. https://github.com/google-deepmind/3d-shapes",
}

var publishedShapes3D = Published{
	Info:  originalInfo,
	Page:  "https://github.com/google-deepmind/3d-shapes",
	Fetch: "The Parquet files at https://huggingface.co/datasets/eurecom-ds/shapes3d also work: give the path of their folder.",
	Forms: []Form{
		{
			Files: []File{{
				Name: "3dshapes.h5", Layout: "3dshapes/3dshapes.h5", URL: "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
				Bytes:  267_573_662,
				SHA256: "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785", MD5: "099a2078d58cec4daad0702c55d06868",
			}},
			Open: func(_ context.Context, paths []string) (Source, error) {
				return openShapes3DFile(originalInfo.clone(), paths[0])
			},
		},
	},
}

// shapes3dValues are the labels of each factor's classes.
var shapes3dValues = []func(class int) float64{
	hueOf, hueOf, hueOf, shapes3d.Scale, func(class int) float64 { return float64(class) }, shapes3d.Orientation,
}

// openShapes3DFile opens the published file, whose labels are values: three hues, scale, shape number and angle.
func openShapes3DFile(info Info, path string) (Source, error) {
	return openGrid(info, path, gridFile{
		images: "images", shape: []int{info.Len, 64, 64, 3}, frame: frame{h: 64, w: 64, c: 3, size: 1},
		labels: "labels", labelType: "float64",
		value: func(f, class int) float64 { return shapes3dValues[f](class) },
	})
}

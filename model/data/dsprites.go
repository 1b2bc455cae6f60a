package data

import (
	"context"
	"strings"
)

// dspritesInfo describes dSprites. Its images are in the order of latents_classes, posY fastest.
var dspritesInfo = Info{
	Name: "dsprites", Title: "dSprites", H: side, W: side, C: 1, Len: 737_280, Complete: true,
	Factors: []Factor{
		{"color", []string{"white"}},
		{"shape", []string{"square", "ellipse", "heart"}},
		{"scale", named(6, "%.1f", evenly(0.5, 1, 6))},
		{"orientation", named(40, "%.1f°", evenly(0, 360, 40))},
		{"posX", named(32, "%.3f", evenly(0, 1, 32))},
		{"posY", named(32, "%.3f", evenly(0, 1, 32))},
	},
	About:    "White sprites on black. Every combination of six factors occurs once; colour has one value.",
	Note:     "Orientations 0° and 360° give the same image; the square repeats every 90° and the ellipse every 180°.",
	Licence:  "Apache-2.0; the images were made with LOVE (zlib)",
	Citation: "L. Matthey, I. Higgins, D. Hassabis, A. Lerchner. dSprites: Disentanglement testing Sprites dataset, 2017. https://github.com/google-deepmind/dsprites-dataset",
}

var publishedDSprites = Published{
	Info: dspritesInfo,
	Page: "https://github.com/google-deepmind/dsprites-dataset",
	Forms: []Form{
		{
			Files: []File{{
				Name:   "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
				Layout: "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
				URL:    "https://raw.githubusercontent.com/google-deepmind/dsprites-dataset/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
			}},
			Open: func(_ context.Context, paths []string) (Source, error) {
				return openDSprites(dspritesInfo.clone(), paths[0])
			},
		},
		{
			Files: []File{{
				Name:   "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5",
				URL:    "https://raw.githubusercontent.com/google-deepmind/dsprites-dataset/master/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5",
				Bytes:  28_024_106,
				SHA256: "729fa22e884c9c500e1f17415d580746b4c5894fbbb780a1319bbcfa39a745bb", MD5: "b331c4447a651c44bf5e8ae09022e230",
			}},
			Open: func(_ context.Context, paths []string) (Source, error) {
				return openDSprites(dspritesInfo.clone(), paths[0])
			},
		},
	},
}

// openDSprites opens either file. It maps pixel values 0 and 1 to 0 and 255.
func openDSprites(info Info, path string) (Source, error) {
	g := gridFile{
		images: "imgs", shape: []int{info.Len, 64, 64},
		frame:  frame{h: 64, w: 64, c: 1, size: 1, level: func(b []byte) byte { return -(b[0] & 1) }},
		labels: "latents_classes", labelType: "int64",
		value: func(_, class int) float64 { return float64(class) },
	}
	if strings.HasSuffix(path, "5") {
		g.labels = "latents/classes"
	}
	return openGrid(info, path, g)
}

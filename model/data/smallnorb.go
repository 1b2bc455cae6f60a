package data

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"slotscope/model/format/norb"
)

// smallNORBInfo describes smallNORB. Training and test set together hold every combination once.
var smallNORBInfo = Info{
	Name: "smallnorb", Title: "smallNORB", H: side, W: side, C: 1, Len: 5 * 10 * 9 * 18 * 6, Complete: true,
	Factors: []Factor{
		{"category", []string{"animal", "human", "plane", "truck", "car"}},
		{"instance", numbered(10)},
		{"elevation", named(9, "%.0f°", evenly(30, 70, 9))},
		{"azimuth", named(18, "%.0f°", evenly(0, 340, 18))},
		{"lighting", numbered(6)},
	},
	About: "Grey photographs of toys, ten of each category: the training and test set together, from the first of the two cameras.",
	Note: "Published scores do not count the instance as a factor. Images are scaled from 96 × 96 with a bicubic kernel (disentanglement_lib uses " +
		"Lanczos).",
	Licence:  "For research, not for commercial use",
	Citation: "Y. LeCun, F. J. Huang, L. Bottou. Learning Methods for Generic Object Recognition with Invariance to Pose and Lighting. CVPR, 2004.",
}

const smallNORBPage = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"

var publishedSmallNORB = Published{
	Info:  smallNORBInfo,
	Page:  smallNORBPage,
	Forms: []Form{smallNORBForm(".mat.gz"), smallNORBForm(".mat")},
}

// smallNORBHalves are the prefixes of the files of the training and test set; dat holds images, cat categories, info the other factors.
var smallNORBHalves = []string{"smallnorb-5x46789x9x18x6x2x96x96-training", "smallnorb-5x01235x9x18x6x2x96x96-testing"}

func smallNORBForm(ext string) Form {
	form := Form{Open: func(_ context.Context, paths []string) (Source, error) {
		return openSmallNORB(smallNORBInfo.clone(), paths)
	}}
	for _, half := range smallNORBHalves {
		for _, part := range []string{"dat", "cat", "info"} {
			f := File{Name: half + "-" + part + ext}
			f.Layout = "small_norb/" + f.Name
			if ext == ".mat.gz" {
				f.URL = smallNORBPage + f.Name
			}
			form.Files = append(form.Files, f)
		}
	}
	return form
}

// openSmallNORB opens the files dat, cat and info of each half.
func openSmallNORB(info Info, paths []string) (Source, error) {
	grid := Grid(info.Sizes())
	var places [][]int // [half][n]: the index of every image
	seen := make([]bool, info.Len)
	for h := 0; h < len(paths); h += 3 {
		at, err := norbPlaces(grid, paths[h+1], paths[h+2], seen)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", info.Title, err)
		}
		places = append(places, at)
	}
	if i := slices.Index(seen, false); i >= 0 {
		classes := make([]int, len(grid))
		grid.Classes(classes, i)
		return nil, fmt.Errorf("opening %s: %s and %s lack the image of classes %v; one of them may be another file", info.Title, paths[1], paths[len(paths)-2], classes)
	}
	return &gatheredSource{info: info, load: func(ctx context.Context, images []byte, tell func(int)) error {
		before := 0
		for h, at := range places {
			if err := norbImages(ctx, images, paths[3*h], at, func(done int) { tell(before + done) }); err != nil {
				return err
			}
			before += len(at)
		}
		return nil
	}}, nil
}

// norbPlaces reads the labels of one half and returns the index of each of its images. It marks them in seen and fails for duplicates.
func norbPlaces(grid Grid, cat, info string, seen []bool) ([]int, error) {
	categories, err := norbLabels(cat, 1)
	if err != nil {
		return nil, err
	}
	others, err := norbLabels(info, 4)
	if err != nil {
		return nil, err
	}
	if len(others) != 4*len(categories) {
		return nil, fmt.Errorf("%s has %d rows, but %s has %d; one of them may be another file", info, len(others)/4, cat, len(categories))
	}
	places := make([]int, len(categories))
	for n, category := range categories {
		o := others[4*n:]
		// Azimuths count steps of 10°, of which only every second occurs.
		index, err := grid.Index([]int{int(category), int(o[0]), int(o[1]), int(o[2]) / 2, int(o[3])})
		if err != nil {
			return nil, fmt.Errorf("%s, row %d: %w", info, n, err)
		}
		if seen[index] {
			return nil, fmt.Errorf("%s, row %d: category %d with %v occurs twice", info, n, category, o[:4])
		}
		places[n], seen[index] = index, true
	}
	return places, nil
}

func norbLabels(path string, columns int) ([]int32, error) {
	m, err := norb.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	have := 1
	for _, s := range m.Shape[1:] {
		have *= s
	}
	if have != columns {
		return nil, fmt.Errorf("%s has shape %v; the published file has %d columns", path, m.Shape, columns)
	}
	return m.Ints()
}

// norbImages reads the pairs of images of one half, scales the first of each pair and stores it at its place. tell receives the number
// done.
func norbImages(ctx context.Context, images []byte, dat string, places []int, tell func(done int)) error {
	const h, w = 96, 96
	m, err := norb.Open(dat)
	if err != nil {
		return err
	}
	defer m.Close()
	if want := []int{len(places), 2, h, w}; m.Size != 1 || !slices.Equal(m.Shape, want) {
		return fmt.Errorf("%s has shape %v, but its labels require %v", dat, m.Shape, want)
	}
	const group = 256
	pairs, canvases := make([]byte, group*2*h*w), make([]canvas, runtime.GOMAXPROCS(0))
	for first := 0; first < len(places); first += group {
		n := min(group, len(places)-first)
		if err := errors.Join(ctx.Err(), m.Next(pairs[:n*2*h*w])); err != nil {
			return err
		}
		err := onAllCores(n, func(worker, i int) error {
			dst := images[places[first+i]*side*side:][:side*side]
			frame{h: h, w: w, c: 1, size: 1}.fill(&canvases[worker], dst, pairs[i*2*h*w:][:h*w])
			return nil
		})
		if err != nil {
			return err
		}
		tell(first + n)
	}
	return m.End()
}

package data

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"

	"slotscope/model/format/mat"
)

// cars3dInfo describes Cars3D in the order of factors of disentanglement_lib.
var cars3dInfo = Info{
	Name: "cars3d", Title: "Cars3D", H: side, W: side, C: 3, Len: 4 * 24 * 183, Complete: true,
	Factors: []Factor{{"elevation", numbered(4)}, {"azimuth", numbered(24)}, {"object_type", numbered(183)}},
	About:   "Drawings of 183 cars, each from 24 azimuths and 4 elevations.",
	Note: "Images are scaled from 128 × 128 with a bicubic kernel (disentanglement_lib uses Lanczos); cars are numbered in the order of " +
		"their file names.",
	Licence:  "None stated; for research",
	Citation: "S. Reed, Y. Zhang, Y. Zhang, H. Lee. Deep Visual Analogy-Making. NeurIPS, 2015.",
}

var publishedCars3D = Published{
	Info: cars3dInfo,
	Page: "https://github.com/google-research/disentanglement_lib",
	Forms: []Form{
		{
			Files: []File{{
				Name: "nips2015-analogy-data.tar.gz", URL: "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
				MD5: "4e866a7919c1beedf53964e6f7a23686",
			}},
			Open: func(_ context.Context, paths []string) (Source, error) {
				return openCars3D(cars3dInfo.clone(), paths[0], carsInTar)
			},
		},
		{
			Files: []File{{Name: "cars", Folder: true, Layout: "cars"}},
			Open: func(_ context.Context, paths []string) (Source, error) {
				return openCars3D(cars3dInfo.clone(), paths[0], carsInFolder)
			},
		},
	},
}

// carFiles passes the files of all cars to add, in any order.
type carFiles func(ctx context.Context, path string, add func(name string, content []byte) error) error

// openCars3D opens the archive or the folder. It counts the files of a folder; missing cars of an archive are reported when it is read.
func openCars3D(info Info, path string, files carFiles) (Source, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", info.Title, err)
	}
	if cars := len(info.Factors[2].Values); stat.IsDir() {
		names, err := fs.Glob(os.DirFS(path), "*.mat")
		if err != nil || len(names) != cars {
			return nil, fmt.Errorf("opening %s: %s has %d .mat files; the published dataset has %d cars", info.Title, path, len(names), cars)
		}
	}
	return &gatheredSource{info: info, load: func(ctx context.Context, images []byte, tell func(int)) error {
		return loadCars(ctx, info, path, files, images, tell)
	}}, nil
}

// carsInFolder reads the .mat files of a folder.
func carsInFolder(_ context.Context, dir string, add func(name string, content []byte) error) error {
	t, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	names, err := fs.Glob(t.FS(), "*.mat")
	if err != nil {
		return err
	}
	for _, name := range names {
		b, err := t.read(name)
		if err == nil {
			err = add(name, b)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", dir, name, err)
		}
	}
	return nil
}

// carsInTar reads the files cars/*.mat of the archive, which also holds other data.
func carsInTar(_ context.Context, file string, add func(name string, content []byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: not a gzip file: %w", file, err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: the archive is damaged or incomplete: %w", file, err)
		}
		if h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".mat" || path.Base(path.Dir(h.Name)) != "cars" {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(t, maxFile))
		if err == nil {
			err = add(path.Base(h.Name), b)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, h.Name, err)
		}
	}
}

// loadCars reads all cars and stores their images by elevation, azimuth and car. Cars arrive in any order and are sorted by name at the
// end.
func loadCars(ctx context.Context, info Info, path string, files carFiles, images []byte, tell func(done int)) error {
	const each = side * side * 3
	sizes := info.Sizes()
	views, cars := sizes[0]*sizes[1], sizes[2]
	var names []string
	buffer, canvases := make([]byte, views*each), make([]canvas, runtime.GOMAXPROCS(0))
	err := files(ctx, path, func(name string, content []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(names) >= cars || slices.Contains(names, name) {
			return fmt.Errorf("there are more than %d cars, or one occurs twice; it may be another dataset", cars)
		}
		if err := viewsOfCar(buffer, content, sizes[0], sizes[1], canvases); err != nil {
			return err
		}
		for view := range views {
			copy(images[(view*cars+len(names))*each:], buffer[view*each:(view+1)*each])
		}
		names = append(names, name)
		tell(len(names) * views)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) != cars {
		return fmt.Errorf("%s has only %d of %d cars; it may be incomplete", path, len(names), cars)
	}
	for view := range views {
		inOrderOf(names, images[view*cars*each:(view+1)*cars*each], each)
	}
	return nil
}

// inOrderOf sorts rows, of each bytes, by their names.
func inOrderOf(names []string, rows []byte, each int) {
	before, sorted := slices.Clone(rows), slices.Sorted(slices.Values(names))
	for from, name := range names {
		to, _ := slices.BinarySearch(sorted, name)
		copy(rows[to*each:(to+1)*each], before[from*each:])
	}
}

// viewsOfCar scales the views of one car, im [128, 128, 3, azimuth, elevation] with the first axis fastest, and writes them to dst,
// [elevation, azimuth].
func viewsOfCar(dst, content []byte, elevations, azimuths int, canvases []canvas) error {
	const h, w, c = 128, 128, 3
	im, err := mat.Find(content, "im")
	if err != nil {
		return err
	}
	if want := []int{h, w, c, azimuths, elevations}; !slices.Equal(im.Shape, want) {
		return errors.New(fmt.Sprint("array im has shape ", im.Shape, "; the published shape is ", want))
	}
	return onAllCores(elevations*azimuths, func(worker, view int) error {
		elevation, azimuth := view/azimuths, view%azimuths
		from := im.Data[(elevation*azimuths+azimuth)*h*w*c:][:h*w*c]
		row := make([]byte, h*w*c)
		for i, v := range from {
			y, x, channel := i%h, i/h%w, i/(h*w)
			row[(y*w+x)*c+channel] = v
		}
		frame{h: h, w: w, c: c, size: 1}.fill(&canvases[worker], dst[view*side*side*c:][:side*side*c], row)
		return nil
	})
}

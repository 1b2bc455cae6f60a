package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"slotscope/model/format/npz"
)

const (
	nvidiaPage     = "https://github.com/NVlabs/High-res-disentanglement-datasets"
	nvidiaLicence  = "CC BY 4.0"
	nvidiaCitation = "W. Nie, T. Karras, A. Garg, S. Debnath, A. Patney, A. B. Patel, A. Anandkumar. Semi-Supervised StyleGAN for Disentanglement Learning. ICML, 2020."
	nvidiaNote     = "Images are scaled to 64 × 64 with the bicubic kernel with a = −½, widened when shrinking, as in Hsu et al.; the full-size files give slightly different images than the 128-pixel files."
	nvidiaFetch    = "The zip of 128-pixel images is sufficient. Download it in a browser from the link on that page; its host serves large files only to browsers."
)

var falcor3dInfo = nvidiaInfo("falcor3d", "Falcor3D", "A living room with a moving light and a moving camera.", []Factor{
	{"lighting_intensity", fractions(5)}, {"lighting_x", fractions(6)}, {"lighting_y", fractions(6)}, {"lighting_z", fractions(6)},
	{"camera_x", fractions(6)}, {"camera_y", fractions(6)}, {"camera_z", fractions(6)},
})

// isaac3dInfo has the factors in the order of the strides of the files. The formula in the authors' README has another order, which
// contradicts their demonstration and their images.
var isaac3dInfo = nvidiaInfo("isaac3d", "Isaac3D", "A kitchen with a robot arm that holds an object.", []Factor{
	{"object_shape", fractions(3)}, {"robot_x", fractions(8)}, {"robot_y", fractions(5)}, {"camera_height", fractions(4)},
	{"object_scale", fractions(4)}, {"lighting_intensity", fractions(4)}, {"lighting_y_dir", fractions(6)}, {"object_color", fractions(4)},
	{"wall_color", fractions(4)},
})

var (
	publishedFalcor3D = nvidia(falcor3dInfo, "Falcor3D", "train-rec.labels")
	publishedIsaac3D  = nvidia(isaac3dInfo, "Isaac3D", "labels.npy")
)

// fractions returns the names of n values spaced evenly from 0 to 1, as in the labels.
func fractions(n int) []string { return named(n, "%.2f", evenly(0, 1, n)) }

// fraction returns a function from factor and class to label.
func fraction(sizes []int) func(factor, class int) float64 {
	return func(f, class int) float64 { return evenly(0, 1, sizes[f])(class) }
}

func nvidiaInfo(name, title, about string, factors []Factor) Info {
	info := Info{
		Name: name, Title: title, H: side, W: side, C: 3, Factors: factors, Complete: true,
		About: about + " Every combination of its factors occurs once.", Note: nvidiaNote, Licence: nvidiaLicence, Citation: nvidiaCitation,
	}
	info.Len = Grid(info.Sizes()).Len()
	return info
}

// nvidia returns one of NVIDIA's sets: image files images/000000.png … and a file of labels, in a zip or a folder.
func nvidia(info Info, folder, labels string) Published {
	form := func(file File, open func(path string) (tree, error)) Form {
		return Form{Files: []File{file}, Open: func(_ context.Context, paths []string) (Source, error) {
			t, err := open(paths[0])
			if err != nil {
				return nil, fmt.Errorf("opening %s: %w", info.Title, err)
			}
			return openNumbered(info.clone(), t, labels, fraction(info.Sizes()))
		}}
	}
	inZip := func(path string) (tree, error) { return openZip(path, numberedName(0)) }
	inFolder := func(path string) (tree, error) { return openFolder(path) }
	return Published{
		Info: info, Page: nvidiaPage, Fetch: nvidiaFetch,
		Forms: []Form{
			form(File{Name: folder + "_down128.zip"}, inZip),
			form(File{Name: folder + "_down128", Folder: true}, inFolder),
			form(File{Name: folder, Folder: true}, inFolder),
		},
	}
}

func numberedName(index int) string { return fmt.Sprintf("images/%06d.png", index) }

// openNumbered opens a dataset whose image files are numbered in the order of its grid. The labels are optional but must agree.
func openNumbered(info Info, t tree, labels string, value func(factor, class int) float64) (Source, error) {
	err := numberedComplete(info, t)
	if err == nil {
		err = numberedLabels(info, t, labels, value)
	}
	if err != nil {
		_ = t.Close()
		return nil, fmt.Errorf("opening %s: %w", info.Title, err)
	}
	return &pictureSource{info: info, files: t, name: numberedName}, nil
}

// numberedComplete checks that an archive has every image file, or that a folder has the first and the last one, and that neither has
// more.
func numberedComplete(info Info, t tree) error {
	if z, ok := t.(*zipTree); ok {
		for i := range info.Len {
			if _, found := z.find(numberedName(i)); !found {
				return fmt.Errorf("%s: image %s is missing; %s has %d images", t, numberedName(i), info.Title, info.Len)
			}
		}
		if _, found := z.find(numberedName(info.Len)); found {
			return fmt.Errorf("%s: unexpected image %s; %s has only %d images, so this is another dataset", t, numberedName(info.Len), info.Title, info.Len)
		}
		return nil
	}
	for _, i := range []int{0, info.Len - 1} {
		if _, err := t.read(numberedName(i)); err != nil {
			return fmt.Errorf("%s: image %s of %d: %w", t, numberedName(i), info.Len, err)
		}
	}
	if _, err := t.read(numberedName(info.Len)); err == nil {
		return fmt.Errorf("%s: unexpected image %s; %s has only %d images, so this is another dataset", t, numberedName(info.Len), info.Title, info.Len)
	}
	return nil
}

func numberedLabels(info Info, t tree, name string, value func(factor, class int) float64) error {
	b, err := t.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", t, name, err)
	}
	where := fmt.Sprintf("%s: %s", t, name)
	n, err := npz.Parse(where, b)
	if err != nil {
		return err
	}
	labels := ofNPZ(n, where)
	if len(n.Shape) != 2 || n.Shape[0] != info.Len || n.Shape[1] != len(info.Factors) {
		return fmt.Errorf("%s has shape %v, but %s has [%d %d]; it may belong to another dataset", labels.where, n.Shape, info.Title, info.Len, len(info.Factors))
	}
	return checkLabels(info, labels, value)
}

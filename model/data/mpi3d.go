package data

import (
	"context"
	"fmt"
)

const (
	mpi3dPage     = "https://github.com/rr-learning/disentanglement_dataset"
	mpi3dLicence  = "CC BY 4.0"
	mpi3dCitation = "M. W. Gondal et al. On the Transfer of Inductive Bias from Simulation to the Real World: a New Disentanglement Dataset. NeurIPS, 2019."
	mpi3dAbout    = "An object on a robot arm in front of a coloured background. Every combination of seven factors occurs once."
	// mpi3dURL is where the authors publish the three sets of 1,036,800 images.
	mpi3dURL = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main/"
)

// mpi3dFactors returns the factors of an MPI3D set. Only object colours and shapes differ between sets.
func mpi3dFactors(colours, shapes []string) []Factor {
	return []Factor{
		{"object_color", colours},
		{"object_shape", shapes},
		{"object_size", []string{"small", "large"}},
		{"camera_height", []string{"top", "centre", "bottom"}},
		{"background_color", []string{"purple", "sea green", "salmon"}},
		{"horizontal_axis", numbered(40)},
		{"vertical_axis", numbered(40)},
	}
}

var publishedMPI3DComplex = mpi3d("mpi3d-complex", "MPI3D, real, complex shapes",
	mpi3dAbout+" Photographs of household objects.",
	mpi3dFactors([]string{"yellow", "green", "olive", "red"}, []string{"coffee-cup", "tennis-ball", "croissant", "beer-cup"}),
	File{
		Name: "real3d_complicated_shapes_ordered.npz",
		URL:  "https://huggingface.co/datasets/randall-lab/mpi3d-complex/resolve/main/real3d_complicated_shapes_ordered.npz",
	})

var mpi3dSimple = mpi3dFactors([]string{"white", "green", "red", "blue", "brown", "olive"},
	[]string{"cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere"})

var (
	publishedMPI3DToy = mpi3d("mpi3d-toy", "MPI3D, toy", mpi3dAbout+" Simple renderings.", mpi3dSimple, File{
		Name: "mpi3d_toy.npz", Layout: "mpi3d_toy/mpi3d_toy.npz", URL: mpi3dURL + "mpi3d_toy.npz", MD5: "55889cb7c7dfc655d6e0277beee88868",
	})
	publishedMPI3DRealistic = mpi3d("mpi3d-realistic", "MPI3D, realistic", mpi3dAbout+" Realistic renderings.", mpi3dSimple, File{
		Name: "mpi3d_realistic.npz", Layout: "mpi3d_realistic/mpi3d_realistic.npz", URL: mpi3dURL + "mpi3d_realistic.npz",
		MD5: "59a6225b88b635365f70c91b3e52f70f",
	})
	publishedMPI3DReal = mpi3d("mpi3d-real", "MPI3D, real", mpi3dAbout+" Photographs.", mpi3dSimple, File{
		Name: "mpi3d_real.npz", Layout: "mpi3d_real/mpi3d_real.npz", URL: mpi3dURL + "mpi3d_real.npz", MD5: "0f33f609918fb5c97996692f91129802",
	})
)

// mpi3d returns one of the MPI3D sets, an archive with the single array images.
func mpi3d(name, title, about string, factors []Factor, file File) Published {
	info := Info{
		Name: name, Title: title, H: side, W: side, C: 3, Factors: factors, Complete: true,
		About: about, Licence: mpi3dLicence, Citation: mpi3dCitation,
	}
	info.Len = Grid(info.Sizes()).Len()
	return Published{
		Info: info, Page: mpi3dPage, Fetch: fmt.Sprintf("The unpacked images take %.1f GB", float64(info.Len)*side*side*3/1e9),
		Forms: []Form{{
			Files: []File{file},
			Open:  func(_ context.Context, paths []string) (Source, error) { return openMPI3D(info.clone(), paths[0]) },
		}},
	}
}

func openMPI3D(info Info, path string) (Source, error) {
	return openGrid(info, path, gridFile{images: "images", shape: []int{info.Len, 64, 64, 3}, frame: frame{h: 64, w: 64, c: 3, size: 1}})
}

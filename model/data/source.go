package data

import "context"

// Source is a dataset in its original files, opened for reading once, in order. The files are never written.
type Source interface {
	// Info returns a complete description: size and number of images, factors and the names of their values. H, W and C are those of
	// the images that Stream yields, after any scaling.
	Info() Info
	// Labels returns the classes of every image, [Len, F], in the order of Info().Factors; nil if Info().Complete, since classes then
	// follow from the index, or if there are no factors.
	Labels() []uint16
	// Stream yields the images from index first on, in order, at most a few hundred at a time. images is [n, H, W, C] and valid until
	// yield returns. Slow work, such as decompressing, runs on several cores. Stream stops with the error of yield, or wraps that of
	// ctx once ctx ends; other errors name the file at fault.
	Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error
	Close() error
}

// InPlace is a Source with random access to the images in its files, so that nothing has to be packed.
type InPlace interface {
	Source
	// ReadImages works like Set.Images: it is fast in any order and safe for concurrent use.
	ReadImages(dst []byte, index []int) error
}

// prepared is a Source with slow work before the first image. Stream does that work if prepare was not called.
type prepared interface {
	Source
	// prepare reports the number of images done to tell.
	prepare(ctx context.Context, tell func(done int)) error
}

// Published is a published dataset: its description, its files, where to download them and how to read them.
type Published struct {
	// Info is the description without the files; the Source of the files completes it.
	Info  Info
	Page  string // URL of the page that describes the dataset and offers its files
	Fetch string // a sentence about downloading the files; may be empty
	// Forms are the alternatives in which the dataset is published, best first. Any one of them suffices.
	Forms []Form
}

// Form is one way in which a dataset is published: its files and their reader.
type Form struct {
	Files []File
	// Open opens the files; paths[i] is the path of Files[i]. Errors name the file.
	Open func(ctx context.Context, paths []string) (Source, error)
}

// File is a published file, or a folder of files.
type File struct {
	Name   string // as published, and the base name of a user's path: "3dshapes.h5"
	Folder bool   // whether it is a folder
	// Layout is its path in disentanglement_lib's data folder, with slashes: "3dshapes/3dshapes.h5". It is empty if that layout does not
	// include the file, which is then found by its name.
	Layout string
	URL    string // direct download over HTTP(S); empty if it must be downloaded by hand from Published.Page
	Bytes  int64  // 0 if unknown
	SHA256 string // 64 lower-case hex digits; empty if none is published
	MD5    string // 32 lower-case hex digits; empty if none is published
}

// Format is a file format of users' own datasets, which are given by path only.
type Format struct {
	Name   string   // as in "npz", "HDF5", "folder of images"
	Former []string // earlier names, which records of added datasets may have
	// Match reports from a path's name and first bytes whether to try Open; head has up to 512 bytes and is nil for folders.
	Match  func(path string, head []byte) bool
	Arrays bool // whether Open uses its Reading
	// Open opens the dataset. Info().Name and Title may be empty; they are set from the name that it is added under.
	Open func(ctx context.Context, path string, r Reading) (Source, error)
}

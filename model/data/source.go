package data

import "context"

// Source is a dataset in the form in which its authors publish it, opened for reading once, in order. Its files are only read.
type Source interface {
	// Info is complete once the source is open: size and number of images, factors and the names of their values. H, W and C are
	// those of the images that Stream yields, after any scaling.
	Info() Info
	// Labels are the classes of every image, [Len, F], in the order of Info().Factors; nil where Info().Complete, since the index
	// then says them, and where there are no factors.
	Labels() []uint16
	// Stream yields the images from index first on, in order, a few hundred at a time or fewer: images is [n, H, W, C] and belongs
	// to yield until it returns. What is slow, such as inflating, runs on several cores inside. Stream ends with the error of
	// yield, with that of ctx in the chain once ctx ends, and with a sentence that names the file at fault.
	Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error
	Close() error
}

// InPlace is a Source whose files give any image at once, so that nothing has to be packed.
type InPlace interface {
	Source
	// ReadImages is Set.Images: fast in any order, and from several goroutines at once.
	ReadImages(dst []byte, index []int) error
}

// prepared is a Source that does much before Stream gives the first image. Stream does it where prepare was not called.
type prepared interface {
	Source
	// prepare tells of how many images it is done.
	prepare(ctx context.Context, tell func(done int)) error
}

// Published is a dataset that others publish: what it is, which files hold it, where they are got, how they are read.
type Published struct {
	// Info is what is known before a file is at hand; the Source of a file says the rest.
	Info  Info
	Page  string // where people read about the set and get it: a URL
	Fetch string // a sentence about getting the files, where more than a URL is to be said; may be empty
	// Forms are the alternatives in which the set is published; any one of them suffices, an earlier one is preferred.
	Forms []Form
}

// Form is one way in which a dataset is published: all of its files together, and their reader.
type Form struct {
	Files []File
	// Open opens the files, paths[i] being where Files[i] was found. Errors are sentences that name the file.
	Open func(ctx context.Context, paths []string) (Source, error)
}

// File is a published file, or a folder of files.
type File struct {
	Name   string // as published, and as a visitor's path ends: "3dshapes.h5"
	Folder bool   // whether it is a folder
	// Layout is its path in the layout of disentanglement_lib's data folder, slashes between: "3dshapes/3dshapes.h5". Empty where
	// that layout has no place for it; it is then looked for by its name.
	Layout string
	URL    string // plain HTTP(S) that answers with the file itself; empty where it must be downloaded by hand, from Published.Page
	Bytes  int64  // 0 where not known
	SHA256 string // 64 hex digits, lower case; empty where none is published
	MD5    string // 32 hex digits, lower case; empty where none is published
}

// Format is a way to read datasets of a visitor's own, of which only the path is known.
type Format struct {
	Name   string   // as in "npz", "HDF5", "folder of images"
	Former []string // names that it had when datasets were added that are still there
	// Match says from a path's name and first bytes whether Open is worth trying; head has up to 512 bytes and is nil for folders.
	Match  func(path string, head []byte) bool
	Arrays bool // whether a Reading matters
	// Open reads what the dataset holds. Info().Name and Title may be left empty: they follow from the name that it is added under.
	Open func(ctx context.Context, path string, r Reading) (Source, error)
}

package data

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/data/pack"
)

// added is an open dataset of the data folder: a packed file, or published files with random access to images, or the images of
// such files with the labels of a packed file.
type added struct {
	info   Info
	id     string
	whole  Info       // including the skipped images
	skip   skipped    // places of the skipped images
	packed *pack.File // images or labels; nil if neither had to be packed
	place  *place     // nil if the images are packed
}

func (c Catalogue) openAdded(ctx context.Context, r record) (Set, error) {
	s := &added{info: r.Info, whole: r.whole(), skip: r.Skipped, id: fmt.Sprintf("%s %v", c.setDir(r.Info.Name), r.Added.UnixNano())}
	var err error
	if r.Packed || !indexed(s.whole) {
		if s.packed, err = pack.Open(filepath.Join(c.setDir(r.Info.Name), packFile)); err != nil {
			return nil, fmt.Errorf("opening dataset %s: %w", r.Info.Name, err)
		}
		if err := s.agrees(r.Packed); err != nil {
			s.packed.Close()
			return nil, err
		}
	}
	if r.Packed {
		return s, nil
	}
	if s.place, err = openPlace(ctx, r); err != nil {
		s.Close()
		return nil, fmt.Errorf("opening dataset %s: %w", r.Info.Name, err)
	}
	return s, nil
}

// indexed reports whether the classes of an image follow from its index alone.
func indexed(info Info) bool { return info.Complete || len(info.Factors) == 0 }

// agrees returns an error unless the packed file matches the dataset that the record describes.
func (s *added) agrees(images bool) error {
	h, want := s.packed.Header(), pack.Header{Len: s.whole.Len}
	if images {
		want.Each = s.info.H * s.info.W * s.info.C
	}
	if !indexed(s.whole) {
		want.Factors = len(s.info.Factors)
	}
	if h.Len != want.Len || h.Each != want.Each || h.Factors != want.Factors {
		return fmt.Errorf("the packed images of dataset %s do not match its description; remove it, then add it again", s.info.Name)
	}
	return nil
}

func (s *added) Info() Info { return s.info.clone() }

func (s *added) identity() string { return s.id }

func (s *added) Images(dst []byte, index []int) error {
	if err := check(s.info, index, len(dst), s.info.H*s.info.W*s.info.C); err != nil {
		return err
	}
	if s.place != nil {
		return s.place.source.ReadImages(dst, index)
	}
	return s.packed.Images(dst, s.skip.places(index))
}

func (s *added) Classes(dst, index []int) error {
	f := len(s.info.Factors)
	if err := check(s.info, index, len(dst), f); err != nil {
		return err
	}
	switch {
	case f == 0:
		return nil
	case s.whole.Complete:
		grid := Grid(s.info.Sizes())
		for b, i := range s.skip.places(index) {
			grid.Classes(dst[b*f:(b+1)*f], i)
		}
		return nil
	}
	return s.packed.Labels(dst, s.skip.places(index))
}

func (s *added) Index(classes []int) (int, error) {
	if len(s.info.Factors) == 0 {
		return 0, noImage(s.info, nil)
	}
	if err := s.info.CheckClasses(classes); err != nil {
		return 0, err
	}
	if s.whole.Complete {
		place, err := Grid(s.info.Sizes()).Index(classes)
		if index, found := s.skip.index(place); found || err != nil {
			return index, err
		}
		return 0, noImage(s.info, classes)
	}
	place, found, err := s.packed.Find(classes, func(place int) bool {
		_, kept := s.skip.index(place)
		return kept
	})
	if err == nil && !found {
		err = noImage(s.info, classes)
	}
	index, _ := s.skip.index(place)
	return index, err
}

func (s *added) Close() error {
	if s.place != nil {
		s.place.release()
	}
	if s.packed != nil {
		return s.packed.Close()
	}
	return nil
}

// place is an open source with random access to images. It is shared, and stays open for idlePlace after its last use, since a page
// reopens its dataset for every image.
type place struct {
	source InPlace
	key    string
	users  int
	idle   *time.Timer
}

var places = struct {
	sync.Mutex
	open map[string]*place
}{open: map[string]*place{}}

const idlePlace = time.Minute

// openPlace opens the files of a dataset after checking that they have not changed since it was added.
func openPlace(ctx context.Context, r record) (*place, error) {
	if err := r.unchanged(); err != nil {
		return nil, err
	}
	key := fmt.Sprint(r.Published, r.Form, r.Format, r.Paths, r.Prints, r.Reading)
	places.Lock()
	defer places.Unlock()
	if p, ok := places.open[key]; ok {
		p.users++
		return p, nil
	}
	source, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	in, ok := source.(InPlace)
	if !ok {
		source.Close()
		return nil, fmt.Errorf("%s does not allow random access to its images; remove the dataset, then add it again", r.Paths[0])
	}
	p := &place{source: in, key: key, users: 1}
	places.open[key] = p
	return p, nil
}

func (p *place) release() {
	places.Lock()
	defer places.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	if p.idle != nil {
		p.idle.Stop()
	}
	p.idle = time.AfterFunc(idlePlace, func() {
		places.Lock()
		defer places.Unlock()
		if p.users == 0 && places.open[p.key] == p {
			delete(places.open, p.key)
			p.source.Close()
		}
	})
}

// checkReading returns an error for options that a format does not use.
func (f Format) checkReading(path string, r Reading) error {
	if r == (Reading{}) || f.Arrays {
		return nil
	}
	return model.Invalid{"from": fmt.Sprintf("the options images, labels, scale and orientation apply only to NumPy, HDF5 and MATLAB files; %s is none of them, so leave them out", path)}
}

// open opens the source of a dataset in the form in which it was added.
func (r record) open(ctx context.Context) (Source, error) {
	if r.Published != "" {
		i := slices.IndexFunc(published, func(p Published) bool { return p.Info.Name == r.Published })
		if i < 0 || r.Form >= len(published[i].Forms) {
			return nil, fmt.Errorf("this version of %s is not supported; remove the dataset, then add it again", r.Published)
		}
		return published[i].Forms[r.Form].Open(ctx, r.Paths)
	}
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == r.Format || slices.Contains(f.Former, r.Format) })
	if i < 0 {
		return nil, fmt.Errorf("the format %q is not supported; remove the dataset, then add it again", r.Format)
	}
	if err := formats[i].checkReading(r.Paths[0], r.Reading); err != nil {
		return nil, err
	}
	return formats[i].Open(ctx, r.Paths[0], r.Reading)
}

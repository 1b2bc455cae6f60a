package data

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"
)

// damaged is the reason why one image file cannot be read. Users can choose to skip such files when they add a dataset.
type damaged struct {
	picture string // its name in the folder or archive
	err     error
}

func (d damaged) Error() string { return d.err.Error() }
func (d damaged) Unwrap() error { return d.err }

// forgiving is a source of image files, some of which may be damaged.
type forgiving interface {
	Source
	// forgive makes Stream report each damaged image to tell, from several goroutines at once, and yield it black. Stream stops if tell
	// returns an error.
	forgive(tell func(index int, d damaged) error)
}

// leftOut is the content of skipped.json: the skipped images.
type leftOut struct {
	Index    []int    `json:"index"` // in ascending order
	Pictures []string `json:"pictures"`
}

const skippedFile = "skipped.json"

// leaveOut makes a source skip damaged images and records them. If more than 16 images and more than 1% are damaged, it fails, since
// something else is probably wrong.
func (a *adding) leaveOut(source forgiving) {
	var mu sync.Mutex
	most := max(16, source.Info().Len/100)
	source.forgive(func(index int, d damaged) error {
		mu.Lock()
		defer mu.Unlock()
		at, known := slices.BinarySearch(a.left.Index, index)
		if known {
			return nil // from before an interruption
		}
		a.left.Index, a.left.Pictures = slices.Insert(a.left.Index, at, index), slices.Insert(a.left.Pictures, at, d.picture)
		if n := len(a.left.Index); n > most {
			return fmt.Errorf("more than %d images are damaged, too many to skip; the last one: %w", most, d.err)
		}
		return writeRecord(a.dir, skippedFile, a.left)
	})
}

// recallLeftOut reads which of the first done images, packed earlier, were skipped.
func (a *adding) recallLeftOut(done int) error {
	var err error
	if a.left, err = readRecord[leftOut](a.dir, skippedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n, _ := slices.BinarySearch(a.left.Index, done)
	if len(a.left.Pictures) != len(a.left.Index) {
		n = 0
	}
	a.left.Index, a.left.Pictures = a.left.Index[:n], a.left.Pictures[:n]
	if n == 0 {
		return removeIfThere(a.dir, skippedFile)
	}
	return nil
}

// without returns the record of the dataset without the skipped images.
func (r record) without(l leftOut) record {
	n := len(l.Index)
	if n == 0 {
		return r
	}
	r.Skipped, r.Grid = l.Index, r.Info.Complete
	r.Info.Len, r.Info.Complete = r.Info.Len-n, false
	names := strings.Join(l.Pictures[:min(n, 5)], ", ")
	if n > 5 {
		names += fmt.Sprintf(" and %d more", n-5)
	}
	r.Info.Note = strings.TrimSpace(r.Info.Note + " Damaged images were skipped: " + names + ".")
	return r
}

// whole describes the dataset as packed, including the skipped images.
func (r record) whole() Info {
	info := r.Info
	info.Len += len(r.Skipped)
	info.Complete = info.Complete || r.Grid
	return info
}

// skipped holds the places of skipped images, in ascending order.
type skipped []int

// place returns the place among all images of an image of the dataset.
func (s skipped) place(index int) int {
	// s[j] − j images of the set come before the one left out at s[j].
	return index + sort.Search(len(s), func(j int) bool { return s[j]-j > index })
}

// places returns the places of several images; it returns index itself if none is skipped.
func (s skipped) places(index []int) []int {
	if len(s) == 0 {
		return index
	}
	places := make([]int, len(index))
	for b, i := range index {
		places[b] = s.place(i)
	}
	return places
}

// index returns the index in the dataset of a place, or false if the image there is skipped.
func (s skipped) index(place int) (int, bool) {
	before, out := slices.BinarySearch(s, place)
	return place - before, !out
}

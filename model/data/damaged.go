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

// damaged is why one picture of many cannot be read. Whoever adds the set may leave such pictures out.
type damaged struct {
	picture string // as its file calls it
	err     error
}

func (d damaged) Error() string { return d.err.Error() }
func (d damaged) Unwrap() error { return d.err }

// forgiving is a source of pictures, of which some may be damaged.
type forgiving interface {
	Source
	// forgive makes Stream leave damaged pictures black, after telling of each, from several goroutines at once. Stream ends with
	// what tell returns.
	forgive(tell func(index int, d damaged) error)
}

// leftOut is skipped.json: the pictures that are left out.
type leftOut struct {
	Index    []int    `json:"index"` // where they were, in order
	Pictures []string `json:"pictures"`
}

const skippedFile = "skipped.json"

// leaveOut makes a source leave damaged pictures out, and notes which. Beyond one in a hundred, something else is wrong.
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
			return fmt.Errorf("more than %d pictures are damaged; the last one: %w", most, d.err)
		}
		return writeRecord(a.dir, skippedFile, a.left)
	})
}

// recallLeftOut reads which of the done images that were packed before are left out.
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

// without describes the set without the pictures that are left out.
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
	r.Info.Note = strings.TrimSpace(r.Info.Note + " Damaged pictures are left out: " + names + ".")
	return r
}

// whole describes what was packed: the set with the pictures that are left out.
func (r record) whole() Info {
	info := r.Info
	info.Len += len(r.Skipped)
	info.Complete = info.Complete || r.Grid
	return info
}

// skipped are the places of images that are left out, in order.
type skipped []int

// place is where an image of the set is among all.
func (s skipped) place(index int) int {
	// s[j] − j images of the set come before the one left out at s[j].
	return index + sort.Search(len(s), func(j int) bool { return s[j]-j > index })
}

// places are those of several images; index itself where none is left out.
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

// index is the one that a place has in the set; false where it is left out.
func (s skipped) index(place int) (int, bool) {
	before, out := slices.BinarySearch(s, place)
	return place - before, !out
}

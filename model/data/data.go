// Package data serves images with their factors: one file per dataset, one interface for all.
package data

import (
	"encoding/json"
	"fmt"
	"slices"

	"slotscope/model"
)

// Factor is one thing that a dataset varies; its values are named, in the order of their classes.
type Factor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Info says what a dataset holds. Images are H × W × C bytes, row by row, channels last.
type Info struct {
	Name     string   `json:"name"`  // as typed: "shapes3d-synthetic"
	Title    string   `json:"title"` // as shown
	H        int      `json:"h"`
	W        int      `json:"w"`
	C        int      `json:"c"`
	Len      int      `json:"len"`
	Factors  []Factor `json:"factors"`
	Complete bool     `json:"complete"` // whether every combination of values occurs once, in the order of Grid
	About    string   `json:"about"`    // one or two sentences
	Note     string   `json:"note"`     // what a reader of scores must know; may be empty
	Licence  string   `json:"licence"`
	Citation string   `json:"citation"`
}

// Set is an open dataset. Its methods may be called from several goroutines at once.
type Set interface {
	Info() Info
	// Images writes image index[b] to dst[b*H*W*C:]; len(dst) is len(index)*H*W*C.
	Images(dst []byte, index []int) error
	// Classes writes the class of every factor of image index[b] to dst[b*F:]; len(dst) is len(index)*F.
	Classes(dst []int, index []int) error
	// Index finds the image of one class per factor; model.ErrNotFound is in the chain where the set lacks it.
	Index(classes []int) (int, error)
	Close() error
}

// Sizes are the cardinalities of the factors.
func (i Info) Sizes() []int {
	sizes := make([]int, len(i.Factors))
	for f := range i.Factors {
		sizes[f] = len(i.Factors[f].Values)
	}
	return sizes
}

// CheckIndex refuses an index that the set does not hold.
func (i Info) CheckIndex(index int) error {
	if index < 0 || index >= i.Len {
		return model.Invalid{"index": fmt.Sprintf("there is no image %d; %s has images 0 to %d", index, i.Name, i.Len-1)}
	}
	return nil
}

// CheckClasses refuses a tuple that does not give every factor one of its classes; the sentence names the factor.
func (i Info) CheckClasses(classes []int) error {
	if len(classes) != len(i.Factors) {
		return model.Invalid{"classes": fmt.Sprintf("a tuple of %d is given for the %d factors of %s", len(classes), len(i.Factors), i.Name)}
	}
	for f, c := range classes {
		if last := len(i.Factors[f].Values) - 1; c < 0 || c > last {
			return model.Invalid{"classes": fmt.Sprintf("there is no class %d of %s; its classes are 0 to %d", c, i.Factors[f].Name, last)}
		}
	}
	return nil
}

// index finds a tuple in a set that holds every combination once; errors name the factor.
func (i Info) index(g Grid, classes []int) (int, error) {
	if err := i.CheckClasses(classes); err != nil {
		return 0, err
	}
	return g.Index(classes)
}

// MarshalJSON writes a set without factors with an empty list of them.
func (i Info) MarshalJSON() ([]byte, error) {
	type plain Info
	if i.Factors == nil {
		i.Factors = []Factor{}
	}
	return json.Marshal(plain(i))
}

// clone shares nothing with i, so that a caller may change it.
func (i Info) clone() Info {
	i.Factors = slices.Clone(i.Factors)
	for f := range i.Factors {
		i.Factors[f].Values = slices.Clone(i.Factors[f].Values)
	}
	return i
}

// Grid is the index rule of sets that hold every combination once: row-major, the last factor fastest.
//
//	stride_k = Π_{l>k} size_l      index = Σ_k class_k · stride_k
type Grid []int

// Len is the number of combinations.
func (g Grid) Len() int {
	n := 1
	for _, size := range g {
		n *= size
	}
	return n
}

// Index of one class per factor; an error names the factor that is out of range.
func (g Grid) Index(classes []int) (int, error) {
	if len(classes) != len(g) {
		return 0, model.Invalid{"classes": fmt.Sprintf("%s given for %s", countOf(len(classes), "class", "classes"), countOf(len(g), "factor", "factors"))}
	}
	index := 0
	for k, c := range classes {
		if c < 0 || c >= g[k] {
			return 0, model.Invalid{"classes": fmt.Sprintf("factor %d has classes 0 to %d, not %d", k, g[k]-1, c)}
		}
		index = index*g[k] + c
	}
	return index, nil
}

// Classes writes the class of every factor of one index to dst.
func (g Grid) Classes(dst []int, index int) {
	for k := len(g) - 1; k >= 0; k-- {
		dst[k] = index % g[k]
		index /= g[k]
	}
}

// countOf is a number of things: "1 factor", "12 factors".
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

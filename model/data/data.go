// Package data provides datasets of images with their factors, with one file per dataset and one interface for all.
package data

import (
	"encoding/json"
	"fmt"
	"slices"

	"slotscope/model"
)

// Factor is a factor of variation of a dataset. Values are the names of its classes, in order.
type Factor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Info describes a dataset. Images are H × W × C bytes, row by row, channels last.
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
	Note     string   `json:"note"`     // caveats for readers of scores; may be empty
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
	// Index returns the index of the image with one class per factor; the error wraps model.ErrNotFound if there is none.
	Index(classes []int) (int, error)
	Close() error
}

// Sizes returns the cardinalities of the factors.
func (i Info) Sizes() []int {
	sizes := make([]int, len(i.Factors))
	for f := range i.Factors {
		sizes[f] = len(i.Factors[f].Values)
	}
	return sizes
}

// CheckIndex returns an error for an index outside the dataset.
func (i Info) CheckIndex(index int) error {
	if index < 0 || index >= i.Len {
		return model.Invalid{"index": fmt.Sprintf("there is no image %d; %s has images 0 to %d", index, i.Name, i.Len-1)}
	}
	return nil
}

// CheckClasses returns an error, which names the factor, unless the tuple gives every factor one of its classes.
func (i Info) CheckClasses(classes []int) error {
	if len(classes) != len(i.Factors) {
		return model.Invalid{"classes": fmt.Sprintf("%s given for the %s of %s; give one class per factor",
			countOf(len(classes), "class", "classes"), countOf(len(i.Factors), "factor", "factors"), i.Name)}
	}
	for f, c := range classes {
		if last := len(i.Factors[f].Values) - 1; c < 0 || c > last {
			return model.Invalid{"classes": fmt.Sprintf("there is no class %d of %s; its classes are 0 to %d", c, i.Factors[f].Name, last)}
		}
	}
	return nil
}

// index returns the index of a tuple in a complete dataset; errors name the factor.
func (i Info) index(g Grid, classes []int) (int, error) {
	if err := i.CheckClasses(classes); err != nil {
		return 0, err
	}
	return g.Index(classes)
}

// MarshalJSON writes missing factors as an empty list.
func (i Info) MarshalJSON() ([]byte, error) {
	type plain Info
	if i.Factors == nil {
		i.Factors = []Factor{}
	}
	return json.Marshal(plain(i))
}

// clone returns a deep copy, which the caller may change.
func (i Info) clone() Info {
	i.Factors = slices.Clone(i.Factors)
	for f := range i.Factors {
		i.Factors[f].Values = slices.Clone(i.Factors[f].Values)
	}
	return i
}

// Grid is the index rule of complete datasets, which hold every combination once: row-major, the last factor fastest.
//
//	stride_k = Π_{l>k} size_l      index = Σ_k class_k · stride_k
type Grid []int

// Len returns the number of combinations.
func (g Grid) Len() int {
	n := 1
	for _, size := range g {
		n *= size
	}
	return n
}

// Index returns the index of one class per factor; an error names the factor that is out of range.
func (g Grid) Index(classes []int) (int, error) {
	if len(classes) != len(g) {
		return 0, model.Invalid{"classes": fmt.Sprintf("%s given for %s", countOf(len(classes), "class", "classes"), countOf(len(g), "factor", "factors"))}
	}
	index := 0
	for k, c := range classes {
		if c < 0 || c >= g[k] {
			return 0, model.Invalid{"classes": fmt.Sprintf("there is no class %d of factor %d; its classes are 0 to %d", c, k, g[k]-1)}
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

// countOf formats a number of things: "1 factor", "12 factors".
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Package dataset renders the list of datasets and the dataset browser.
package dataset

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/views"
)

// DatasetCard describes one dataset: Len images of H × W × C bytes.
type DatasetCard struct {
	Name, Title, About, Note, Licence, Citation string
	H, W, C, Len                                int
	Factors                                     []DatasetFactor
	Complete                                    bool // every combination of values occurs once, in row-major order, the last factor fastest
}

// DatasetFactor is one factor of variation of a dataset.
type DatasetFactor struct {
	Name   string
	Values []string
	Stride int   // index difference between successive values, in a complete dataset
	Class  int   // of the current image
	Shown  []int // classes in the strip, ascending: all, or a sample of very many
	Index  []int // image of each shown class with the other factors fixed; −1 if there is none
	Counts []int // number of images of every value
}

// DatasetView is the page of one dataset with its current image.
type DatasetView struct {
	DatasetCard
	Index       int   // of the current image
	Seed        int   // of the random images
	Grid        []int // the random images
	GridColumns int

	IndexText, IndexError string // as typed, and its error
	TupleText, TupleError string
	SeedText, SeedError   string
	Carry                 []Param // URL parameters kept for the playground

	Rest                    string // name of a part's complement; empty for a whole dataset
	SelectText, SelectError string // the selection as typed, and its error
}

// Param is one URL parameter.
type Param struct{ Name, Value string }

// Tuple formats one class per factor as in URLs: 0.3.2.
func Tuple(classes []int) string {
	parts := make([]string, len(classes))
	for f, c := range classes {
		parts[f] = strconv.Itoa(c)
	}
	return strings.Join(parts, ".")
}

// Label returns the factor's name as words.
func (f DatasetFactor) Label() string { return strings.ReplaceAll(f.Name, "_", " ") }

func (f DatasetFactor) last() string { return strconv.Itoa(len(f.Values) - 1) }

// span returns the factor's values in short: all of a few, the first and last of many.
func (f DatasetFactor) span() string {
	if len(f.Values) <= 5 {
		return strings.Join(f.Values, ", ")
	}
	return f.Values[0] + " … " + f.Values[len(f.Values)-1]
}

// href returns the URL of the dataset's page.
func (c DatasetCard) href() string { return "/datasets/" + url.PathEscape(c.Name) }

// gaps reports whether some combinations of values have no image because there are more combinations than images.
func (c DatasetCard) gaps() bool {
	combinations := 1.0
	for _, f := range c.Factors {
		combinations *= float64(len(f.Values))
	}
	return combinations > float64(c.Len)
}

// api returns the URL of an image of the dataset.
func (c DatasetCard) api(format string, args ...any) string {
	return "/api/datasets/" + url.PathEscape(c.Name) + "/" + fmt.Sprintf(format, args...)
}

// size returns the dataset's size as one line, without values that are unknown until its files are read.
func (c DatasetCard) size() string {
	var parts []string
	if c.Len > 0 {
		parts = append(parts, fmt.Sprintf("%s · %d × %d × %d", counted(c.Len, "image"), c.H, c.W, c.C))
	}
	switch n := len(c.Factors); {
	case n > 0:
		parts = append(parts, counted(n, "factor"))
	case c.Len > 0:
		parts = append(parts, "no factors")
	}
	return strings.Join(parts, " · ")
}

// counted formats a number of things: "1 factor", "12 factors".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return views.Count(n) + " " + thing + "s"
}

// nats returns the information that identifies one of the equally likely images.
func (c DatasetCard) nats() string {
	n := math.Log(float64(max(1, c.Len)))
	return fmt.Sprintf("%.2f nats (%.2f bits)", n, n/math.Ln2)
}

// at returns the URL of the page with another image and the same random images.
func (v DatasetView) at(index int) string { return v.address(index, v.Seed) }

// reroll returns the URL of the page with other random images.
func (v DatasetView) reroll() string { return v.address(v.Index, (v.Seed+1)%math.MaxInt32) }

func (v DatasetView) random() string {
	q := v.query()
	q.Set("index", "random")
	q.Set("grid", strconv.Itoa(v.Seed))
	return v.href() + "?" + q.Encode()
}

func (v DatasetView) address(index, seed int) string {
	q := v.query()
	q.Set("index", strconv.Itoa(index))
	q.Set("grid", strconv.Itoa(seed))
	return v.href() + "?" + q.Encode()
}

func (v DatasetView) query() url.Values {
	q := url.Values{}
	for _, p := range v.Carry {
		q.Set(p.Name, p.Value)
	}
	return q
}

// send returns the URL of the playground with this image as A or B; the other side is taken from Carry.
func (v DatasetView) send(side string) string {
	q := v.query()
	q.Set("dataset", v.Name)
	q.Set(side, strconv.Itoa(v.Index))
	return "/play?" + q.Encode()
}

// image returns the URL of one image.
func (v DatasetView) image(index int) string { return v.api("images/%d.png", index) }

// strip returns the URL of a factor's strip. The strip does not depend on the factor's current class, so the URL uses class 0 to stay
// the same for every value.
func (v DatasetView) strip(f DatasetFactor) string {
	index := v.Index
	if len(f.Index) > 0 && f.Index[0] >= 0 {
		index = f.Index[0]
	}
	return v.api("strip/%s.png?index=%d", url.PathEscape(f.Name), index)
}

func (v DatasetView) gridImage() string {
	return v.api("grid.png?seed=%d&n=%d&columns=%d", v.Seed, len(v.Grid), v.GridColumns)
}

// alt describes the image in words.
func (v DatasetView) alt() string {
	parts := make([]string, len(v.Factors))
	for i, f := range v.Factors {
		parts[i] = f.Label() + " " + f.Values[f.Class]
	}
	if len(parts) == 0 {
		return fmt.Sprintf("Image %d", v.Index)
	}
	return fmt.Sprintf("Image %d: %s", v.Index, strings.Join(parts, ", "))
}

// datasetData is the JSON with which the page's module follows links in place.
type datasetData struct {
	Name    string           `json:"name"`
	W       int              `json:"w"`
	H       int              `json:"h"`
	Len     int              `json:"len"`
	Factors []datasetDataRow `json:"factors"`
	Index   int              `json:"index"`
	Seed    int              `json:"seed"`
	Grid    []int            `json:"grid"`
	Columns int              `json:"columns"`
	Valid   bool             `json:"valid"` // the URL has no errors

	Complete bool    `json:"complete"` // the index of an image follows from its classes; otherwise the page requests it
	Classes  []int   `json:"classes"`  // of the current image
	Near     [][]int `json:"near"`     // images of each factor's strip
}

type datasetDataRow struct {
	Name   string   `json:"name"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
	Shown  []int    `json:"shown"` // classes in the strip
}

func (v DatasetView) data() datasetData {
	d := datasetData{
		Name: v.Name, W: v.W, H: v.H, Len: v.Len, Index: v.Index, Seed: v.Seed, Grid: v.Grid, Columns: v.GridColumns,
		Valid:    v.IndexError == "" && v.TupleError == "" && v.SeedError == "",
		Complete: v.Complete, Factors: []datasetDataRow{}, Classes: []int{}, Near: [][]int{},
	}
	for _, f := range v.Factors {
		d.Factors = append(d.Factors, datasetDataRow{f.Name, f.Label(), f.Values, f.Shown})
		d.Classes = append(d.Classes, f.Class)
		d.Near = append(d.Near, f.Index)
	}
	return d
}

// sprite returns the SVG viewBox of the nth image in a sheet of several.
func (c DatasetCard) sprite(n, columns int) string {
	return fmt.Sprintf("%d %d %d %d", n%columns*c.W, n/columns*c.H, c.W, c.H)
}

// part splits a name into the whole dataset and the selection in brackets; both are empty if there is no selection.
func (c DatasetCard) part() (whole, selection string) {
	whole, rest, found := strings.Cut(c.Name, "[")
	if !found {
		return "", ""
	}
	return whole, strings.TrimSuffix(rest, "]")
}

// each returns the number of images per value: one number, or the minimum and maximum.
func (f DatasetFactor) each() string {
	if len(f.Counts) == 0 {
		return ""
	}
	least, most := slices.Min(f.Counts), slices.Max(f.Counts)
	if least == most {
		return views.Count(least)
	}
	return views.Count(least) + " … " + views.Count(most)
}

// Size of a histogram in pixels.
const (
	histogramWidth  = 120
	histogramHeight = 22
)

// bars returns the histogram of images per value; very many values are summed in columns one pixel wide.
func (f DatasetFactor) bars() []bar {
	columns := min(len(f.Counts), histogramWidth)
	sums := make([]int, columns)
	for c, n := range f.Counts {
		sums[c*columns/len(f.Counts)] += n
	}
	most, width := 1, float64(histogramWidth)/float64(max(1, columns))
	for _, n := range sums {
		most = max(most, n)
	}
	bars := make([]bar, columns)
	gap := min(1, width/4)
	for i, n := range sums {
		h := float64(n) / float64(most) * histogramHeight
		bars[i] = bar{decimal(float64(i) * width), decimal(histogramHeight - h), decimal(width - gap), decimal(h)}
	}
	return bars
}

// bar is a rectangle.
type bar struct{ X, Y, W, H string }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// trainOn returns the URL of the new-run form for the dataset.
func trainOn(c DatasetCard) string { return "/runs/new?dataset=" + url.QueryEscape(c.Name) }

// restIs introduces the complement, on which models trained on this part are also evaluated.
func (v DatasetView) restIs() string {
	if strings.Contains(v.Name, "corr(") {
		return "Without the correlation:"
	}
	return "Held-out images:"
}

// Package dataset draws the list of datasets and the browser of one.
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

// DatasetFactor is one thing that a dataset varies.
type DatasetFactor struct {
	Name   string
	Values []string
	Stride int   // by how much the index grows from one value to the next, in a complete set
	Class  int   // of the image shown
	Shown  []int // classes in the strip, ascending: all, or some of very many
	Index  []int // image of each, the other factors held; −1 where the set has none
	Counts []int // images of every value
}

// DatasetView is the page of one dataset, showing one image.
type DatasetView struct {
	DatasetCard
	Index       int   // of the image shown
	Seed        int   // of the random images
	Grid        []int // the random images
	GridColumns int

	IndexText, IndexError string // as typed, and what is wrong with it
	TupleText, TupleError string
	SeedText, SeedError   string
	Carry                 []Param // of the address, kept for the playground

	Rest                    string // the name of what a part leaves out; empty for a whole set
	SelectText, SelectError string // the selection as typed, and what is wrong with it
}

// Param is one part of an address.
type Param struct{ Name, Value string }

// Tuple writes one class per factor as in addresses: 0.3.2.
func Tuple(classes []int) string {
	parts := make([]string, len(classes))
	for f, c := range classes {
		parts[f] = strconv.Itoa(c)
	}
	return strings.Join(parts, ".")
}

// Label is the factor's name as words.
func (f DatasetFactor) Label() string { return strings.ReplaceAll(f.Name, "_", " ") }

func (f DatasetFactor) last() string { return strconv.Itoa(len(f.Values) - 1) }

// span is the factor's values in short: all of a few, the ends of many.
func (f DatasetFactor) span() string {
	if len(f.Values) <= 5 {
		return strings.Join(f.Values, ", ")
	}
	return f.Values[0] + " … " + f.Values[len(f.Values)-1]
}

// href is the page of the dataset.
func (c DatasetCard) href() string { return "/datasets/" + url.PathEscape(c.Name) }

// gaps says whether combinations of values must lack an image, since there are more of them than images.
func (c DatasetCard) gaps() bool {
	combinations := 1.0
	for _, f := range c.Factors {
		combinations *= float64(len(f.Values))
	}
	return combinations > float64(c.Len)
}

// api is the address of a picture of the dataset.
func (c DatasetCard) api(format string, args ...any) string {
	return "/api/datasets/" + url.PathEscape(c.Name) + "/" + fmt.Sprintf(format, args...)
}

// size is what the dataset holds, in a line; what is not known before its files are read is left out.
func (c DatasetCard) size() string {
	var parts []string
	if c.Len > 0 {
		parts = append(parts, fmt.Sprintf("%s images · %d × %d × %d", views.Count(c.Len), c.H, c.W, c.C))
	}
	switch n := len(c.Factors); {
	case n == 1:
		parts = append(parts, "1 factor")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d factors", n))
	case c.Len > 0:
		parts = append(parts, "no factors")
	}
	return strings.Join(parts, " · ")
}

// nats is the information that names one image, all equally likely.
func (c DatasetCard) nats() string {
	n := math.Log(float64(max(1, c.Len)))
	return fmt.Sprintf("%.2f nats (%.2f bits)", n, n/math.Ln2)
}

// at is the page showing another image, the random ones as they are.
func (v DatasetView) at(index int) string { return v.address(index, v.Seed) }

// reroll is the page with other random images.
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

// send is the playground with this image as A or B; the other side is as carried.
func (v DatasetView) send(side string) string {
	q := v.query()
	q.Set("dataset", v.Name)
	q.Set(side, strconv.Itoa(v.Index))
	return "/play?" + q.Encode()
}

// image is the address of one image's picture.
func (v DatasetView) image(index int) string { return v.api("images/%d.png", index) }

// strip is the address of a factor's strip. The factor's own class does not matter to it, so it is taken as 0 and the picture is the
// same whichever value is shown.
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

// alt says in words what the image shows.
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

// datasetData is what the page's module needs to do in place what the page's links do.
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
	Valid   bool             `json:"valid"` // the address was read without complaint

	Complete bool    `json:"complete"` // an image's index follows from its classes; else the server is asked
	Classes  []int   `json:"classes"`  // of the image shown
	Near     [][]int `json:"near"`     // of each factor's strip, the images
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

// sprite says which part of a picture of several images a cell shows, as an SVG viewBox.
func (c DatasetCard) sprite(n, columns int) string {
	return fmt.Sprintf("%d %d %d %d", n%columns*c.W, n/columns*c.H, c.W, c.H)
}

// part is the whole set that a selection in the name is of, and the selection; empty where there is none.
func (c DatasetCard) part() (whole, selection string) {
	whole, rest, found := strings.Cut(c.Name, "[")
	if !found {
		return "", ""
	}
	return whole, strings.TrimSuffix(rest, "]")
}

// each says how many images a value has: one number, or the least and the greatest.
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

// bars are the counts of the values as rectangles of a histogram, those of very many values summed in columns of a pixel.
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

// trainOn is the form of a new run on the dataset.
func trainOn(c DatasetCard) string { return "/runs/new?dataset=" + url.QueryEscape(c.Name) }

// restIs introduces the set on which models that were trained on this part are measured too.
func (v DatasetView) restIs() string {
	if strings.Contains(v.Name, "corr(") {
		return "Without the correlation it is"
	}
	return "What it leaves out is"
}

package views

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// DatasetsView is the page that lists the datasets.
type DatasetsView struct{ Sets []DatasetCard }

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
	Index  []int // image of every value, the other factors held; −1 where the set has none
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

// api is the address of a picture of the dataset.
func (c DatasetCard) api(format string, args ...any) string {
	return "/api/datasets/" + url.PathEscape(c.Name) + "/" + fmt.Sprintf(format, args...)
}

// size is what the dataset holds, in a line.
func (c DatasetCard) size() string {
	return fmt.Sprintf("%s images · %d × %d × %d · %d factors", count(c.Len), c.H, c.W, c.C, len(c.Factors))
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
	if f.Index[0] >= 0 {
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
}

type datasetDataRow struct {
	Name   string   `json:"name"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
}

func (v DatasetView) data() datasetData {
	d := datasetData{
		Name: v.Name, W: v.W, H: v.H, Len: v.Len, Index: v.Index, Seed: v.Seed, Grid: v.Grid, Columns: v.GridColumns,
		Valid: v.IndexError == "" && v.TupleError == "" && v.SeedError == "",
	}
	for _, f := range v.Factors {
		d.Factors = append(d.Factors, datasetDataRow{f.Name, f.Label(), f.Values})
	}
	return d
}

// sprite says which part of a picture of several images a cell shows, as an SVG viewBox.
func (c DatasetCard) sprite(n, columns int) string {
	return fmt.Sprintf("%d %d %d %d", n%columns*c.W, n/columns*c.H, c.W, c.H)
}

// modules of the page: only a complete set's indices can be computed by the browser; others work by links.
func (v DatasetView) modules() []string {
	if !v.Complete {
		return nil
	}
	return []string{"js/datasets.js"}
}

// trainOn is the form of a new run on the dataset.
func trainOn(c DatasetCard) string { return "/runs/new?dataset=" + url.QueryEscape(c.Name) }

// Package input reads tables of latents and factors written by other programs.
//
// A .json file is an object:
//
//	{"discrete": true, "latents": [[3, 511], [0, 7]], "factors": [[0, 1], [2, 0]], "factor_names": ["hue", "shape"]}
//
// Without "discrete", latents that are all non-negative integers are codes. A .npz file has the array "codes" or "latents" [n, m], and
// "factors" [n, F]; "factor_names" [F] is text. Latents of an integer type are codes. A single column may be a one-dimensional array.
// Factors may be any numbers: each distinct value is a class.
package input

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/metric"
)

// As is how to interpret latents.
type As int

// Interpretations of latents.
const (
	Found   As = iota // as the file declares
	Codes             // codebook indices: each value is one entry
	Numbers           // real numbers
)

// Read reads a file by its extension, .json or .npz. Its errors name the file, the array and the row.
func Read(path string, as As) (metric.Table, error) {
	t, _, err := ReadAll(path, as)
	return t, err
}

// ReadAll also reads the optional content of a .json file: models to compare, curves of probes, and selections.
func ReadAll(path string, as As) (metric.Table, metric.Extra, error) {
	raw, err := read(path)
	if err != nil {
		return metric.Table{}, metric.Extra{}, err
	}
	t, err := raw.table(as)
	if err != nil {
		return t, metric.Extra{}, fmt.Errorf("%s: %w", path, err)
	}
	extra, err := raw.extra.extra(len(t.Codes) > 0)
	if err != nil {
		return t, extra, fmt.Errorf("%s: %w", path, err)
	}
	return t, extra, nil
}

func read(path string) (raw, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return readJSON(path)
	case ".npz":
		return readNPZ(path)
	}
	return raw{}, model.Invalid{"file": fmt.Sprintf("%s is neither a .json nor a .npz file", path)}
}

// told is the smallest integer from which float64 no longer represents every integer.
const told = 1 << 53

// raw is a file's content, row by row.
type raw struct {
	latents  matrix
	factors  matrix
	names    []string
	discrete *bool // nil if not declared
	extra    extraJSON
}

// matrix is n rows of numbers in row-major order.
type matrix struct {
	name       string
	rows, cols int
	values     []float64
}

// table converts a file's content into columns and checks them.
func (r raw) table(as As) (metric.Table, error) {
	t := metric.Table{}
	for _, m := range []matrix{r.latents, r.factors} {
		if err := m.check(); err != nil {
			return t, err
		}
	}
	if r.latents.rows != r.factors.rows {
		return t, fmt.Errorf("%s has %d rows, but %s has %d", r.latents.name, r.latents.rows, r.factors.name, r.factors.rows)
	}
	if r.names != nil && len(r.names) != r.factors.cols {
		return t, fmt.Errorf("factor_names has %d names for %d factors", len(r.names), r.factors.cols)
	}
	t.Names = r.names
	for i := range r.factors.cols {
		t.Factors = append(t.Factors, ranked(r.factors.column(i)))
	}
	if !r.codes(as) {
		for j := range r.latents.cols {
			t.Values = append(t.Values, r.latents.column(j))
		}
		return t, t.Check()
	}
	if err := r.latents.checkCodes(); err != nil {
		return t, err
	}
	for j := range r.latents.cols {
		t.Codes = append(t.Codes, whole(r.latents.column(j)))
	}
	return t, t.Check()
}

// codes reports whether the latents are interpreted as codes.
func (r raw) codes(as As) bool {
	switch {
	case as != Found:
		return as == Codes
	case r.discrete != nil:
		return *r.discrete
	}
	return !slices.ContainsFunc(r.latents.values, func(v float64) bool { return v != math.Trunc(v) || v < 0 || v > metric.MaxCode })
}

func (m matrix) column(j int) []float64 {
	c := make([]float64, m.rows)
	for r := range c {
		c[r] = m.values[r*m.cols+j]
	}
	return c
}

func (m matrix) check() error {
	if m.rows == 0 || m.cols == 0 {
		return fmt.Errorf("%s is empty: it has %d rows and %d columns", m.name, m.rows, m.cols)
	}
	for at, v := range m.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s: row %d, column %d is %v; numbers must be finite", m.name, at/m.cols, at%m.cols, v)
		}
	}
	return nil
}

// checkCodes rejects integers that cannot be codes; fractions are renumbered later.
func (m matrix) checkCodes() error {
	for at, v := range m.values {
		if v == math.Trunc(v) && (v < 0 || v > metric.MaxCode) {
			return fmt.Errorf("%s: row %d, column %d is %v; codes are 0 to %d", m.name, at/m.cols, at%m.cols, v, metric.MaxCode)
		}
	}
	return nil
}

// whole converts a column of integers unchanged; if it contains fractions, it renumbers the values in ascending order.
func whole(column []float64) []int {
	if slices.ContainsFunc(column, func(v float64) bool { return v != math.Trunc(v) }) {
		return ranked(column)
	}
	out := make([]int, len(column))
	for r, v := range column {
		out[r] = int(v)
	}
	return out
}

// ranked renumbers the values of a column in ascending order.
func ranked(column []float64) []int {
	values := slices.Clone(column)
	slices.Sort(values)
	values = slices.Compact(values)
	out := make([]int, len(column))
	for r, v := range column {
		out[r], _ = slices.BinarySearch(values, v)
	}
	return out
}

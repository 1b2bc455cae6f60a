package input

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/format/npz"
	"slotscope/model/measure/metric"
)

// Pick selects the arrays of a table by name. In a file of columns, a name also selects all columns with that prefix and a number: z
// selects z0, z_1, z.2 and z[3].
type Pick struct {
	Latents, Factors []string // empty for the default names
	As               As
}

// Names splits a comma-separated list of names.
func Names(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Default names of arrays.
var (
	usualLatents = []string{"codes", "latents", "z"}
	usualFactors = []string{"factors", "y", "labels"}
)

// Endings are the supported file extensions.
func Endings() []string {
	return []string{".json", ".npz", ".npy", ".h5", ".hdf5", ".mat", ".parquet", ".csv", ".tsv"}
}

// ReadFiles reads a table from one file, or latents from one file and factors from another.
func ReadFiles(paths []string, p Pick) (metric.Table, metric.Extra, error) {
	plain := len(p.Latents) == 0 && len(p.Factors) == 0
	if len(paths) == 1 && plain && slices.Contains([]string{".json", ".npz"}, ending(paths[0])) {
		return ReadAll(paths[0], p.As)
	}
	if len(paths) == 1 && ending(paths[0]) == ".json" {
		return readPickedJSON(paths[0], p)
	}
	if len(paths) == 2 && (ending(paths[0]) == ".json" || ending(paths[1]) == ".json") {
		return metric.Table{}, metric.Extra{}, model.Invalid{"file": "a .json file holds latents and factors; give only one file"}
	}
	r, err := readArrays(paths, p)
	if err != nil {
		return metric.Table{}, metric.Extra{}, err
	}
	t, err := r.table(p.As)
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(paths, ", "), err)
	}
	return t, metric.Extra{}, err
}

func ending(path string) string { return strings.ToLower(filepath.Ext(path)) }

// container is a file of arrays.
type container interface {
	// names lists the available arrays.
	names() []string
	// get reads one array; the error wraps model.ErrNotFound if it does not exist.
	get(name string) (array, error)
	Close() error
}

// array is numbers in row-major order, or a column of text.
type array struct {
	matrix
	text  []string
	float bool // of a floating-point type; if false and known, all values are integers
	known bool // whether float is reliable
}

func open(path string) (container, error) {
	switch ending(path) {
	case ".npz", ".npy":
		return openNumpy(path)
	case ".h5", ".hdf5":
		return openHDF5(path, false)
	case ".mat":
		return openMAT(path)
	case ".parquet":
		return openParquet(path)
	case ".csv", ".tsv":
		return openCSV(path)
	}
	return nil, model.Invalid{"file": fmt.Sprintf("%s: unsupported format; supported: %s", path, strings.Join(Endings(), ", "))}
}

// readArrays reads latents from the first file and factors from the last.
func readArrays(paths []string, p Pick) (r raw, err error) {
	if len(paths) < 1 || len(paths) > 2 {
		return r, model.Invalid{"file": fmt.Sprintf("%d files given; use one with latents and factors, or one for each", len(paths))}
	}
	alone := len(paths) == 2 // one file per kind
	latents, _, err := readPart(paths[0], "latents", p.Latents, usualLatents, alone)
	if err != nil {
		return r, err
	}
	if latents.text != nil {
		return r, fmt.Errorf("%s: %q holds text; latents must be numbers", paths[0], latents.name)
	}
	factors, names, err := readPart(paths[len(paths)-1], "factors", p.Factors, usualFactors, alone)
	if err != nil {
		return r, err
	}
	r.latents, r.factors, r.names = latents.matrix, factors.matrix, names
	if latents.known {
		r.discrete = new(!latents.float)
	}
	return r, nil
}

// readPart reads the arrays of one kind from a file, concatenates their columns, and returns the column names if known.
func readPart(path, kind string, picked, usual []string, alone bool) (array, []string, error) {
	c, err := open(path)
	if err != nil {
		return array{}, nil, err
	}
	defer c.Close()
	names, err := choose(c.names(), kind, picked, usual, alone)
	if err != nil {
		return array{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	parts := make([]array, len(names))
	for i, name := range names {
		if parts[i], err = c.get(name); err != nil {
			return array{}, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	a, err := beside(parts, kind == "factors")
	if err != nil {
		return a, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(names) == a.cols && (len(names) > 1 || names[0] != kind && names[0] != "") {
		return a, names, nil
	}
	if kind == "factors" && slices.Contains(c.names(), "factor_names") {
		if n, err := c.get("factor_names"); err == nil && len(n.text) == a.cols {
			return a, n.text, nil
		}
	}
	return a, nil, nil
}

// choose selects the arrays of one kind among the available ones.
func choose(there []string, kind string, picked, usual []string, alone bool) ([]string, error) {
	if len(picked) == 0 {
		for _, name := range usual {
			if found := columns(there, name); found != nil {
				return found, nil
			}
		}
		if alone {
			return there, nil
		}
		return nil, fmt.Errorf("no array is named %s; select the %s with --%s; available: %s", strings.Join(usual, ", "), kind, kind, listed(there))
	}
	var all []string
	for _, name := range picked {
		found := columns(there, name)
		if found == nil {
			return nil, fmt.Errorf("no array %q; available: %s: %w", name, listed(there), model.ErrNotFound)
		}
		all = append(all, found...)
	}
	return all, nil
}

// columns are the array with the given name, or the numbered columns with that prefix, in numeric order.
func columns(there []string, name string) []string {
	if slices.Contains(there, name) {
		return []string{name}
	}
	numbers := map[string]int{}
	var found []string
	for _, c := range there {
		rest, ok := strings.CutPrefix(c, name)
		n, err := strconv.Atoi(strings.Trim(rest, "_-.[] "))
		if ok && err == nil && n >= 0 {
			found, numbers[c] = append(found, c), n
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return numbers[a] - numbers[b] })
	return found
}

// beside concatenates the columns of arrays. If classes is set, a column of text becomes classes.
func beside(parts []array, classes bool) (array, error) {
	if len(parts) == 1 && (parts[0].text == nil || !classes) {
		return parts[0], nil
	}
	out := array{known: true}
	for i, p := range parts {
		if p.text != nil {
			if !classes {
				return p, nil
			}
			p.matrix = matrix{name: p.name, rows: len(p.text), cols: 1, values: classesOf(p.text)}
		}
		if i > 0 && p.rows != out.rows {
			return out, fmt.Errorf("%q has %d rows, but %q has %d", parts[0].name, out.rows, p.name, p.rows)
		}
		out.name, out.rows, out.cols = parts[0].name, p.rows, out.cols+p.cols
		out.float, out.known = out.float || p.float, out.known && p.known
		parts[i] = p
	}
	out.values = make([]float64, 0, out.rows*out.cols)
	for r := range out.rows {
		for _, p := range parts {
			out.values = append(out.values, p.values[r*p.cols:(r+1)*p.cols]...)
		}
	}
	return out, nil
}

// classesOf numbers texts in sorted order.
func classesOf(text []string) []float64 {
	sorted := slices.Clone(text)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	out := make([]float64, len(text))
	for i, t := range text {
		at, _ := slices.BinarySearch(sorted, t)
		out[i] = float64(at)
	}
	return out
}

// shaped arranges values in C order in rows and columns.
func shaped(name string, shape []int, values []float64, float bool) (array, error) {
	a := array{matrix: matrix{name: name, cols: 1, values: values}, float: float, known: true}
	if len(shape) < 1 || len(shape) > 2 {
		return a, fmt.Errorf("%s has shape %v; it must have one or two dimensions", name, shape)
	}
	if a.rows = shape[0]; len(shape) == 2 {
		a.cols = shape[1]
	}
	if float {
		return a, nil
	}
	if at := slices.IndexFunc(values, func(v float64) bool { return math.Abs(v) >= told }); at >= 0 {
		return a, fmt.Errorf("%s: row %d, column %d is about %.0f; integers from %d on lose precision as float64", name, at/a.cols, at%a.cols, values[at], int64(told))
	}
	return a, nil
}

// transposed swaps rows and columns.
func (a array) transposed() array {
	values := make([]float64, len(a.values))
	for r := range a.rows {
		for c := range a.cols {
			values[c*a.rows+r] = a.values[r*a.cols+c]
		}
	}
	a.values, a.rows, a.cols = values, a.cols, a.rows
	return a
}

type numpy struct{ *npz.File }

func openNumpy(path string) (container, error) {
	f, err := npz.Open(path)
	return numpy{f}, err
}

func (f numpy) names() []string { return f.Names() }

func (f numpy) get(name string) (array, error) {
	a, err := f.Array(name)
	if err != nil {
		return array{}, err
	}
	if a.Kind == npz.Bytes || a.Kind == npz.Unicode {
		text, err := a.Strings()
		return array{matrix: matrix{name: name}, text: text}, err
	}
	values, err := a.Float64s()
	if err != nil {
		return array{}, err
	}
	return shaped(name, a.Shape, values, a.Kind == npz.Float)
}

package input

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/format/hdf5"
	"slotscope/model/format/mat"
	"slotscope/model/format/npz"
	"slotscope/model/format/parquet"
	"slotscope/model/measure/metric"
)

// readPickedJSON reads a .json file whose tables have non-default names.
func readPickedJSON(path string, p Pick) (metric.Table, metric.Extra, error) {
	var t metric.Table
	content, err := readFile(path)
	if err != nil {
		return t, metric.Extra{}, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(content, &all); err != nil {
		return t, metric.Extra{}, fmt.Errorf("%s: %w", path, explain(err))
	}
	for kind, picked := range map[string][]string{"latents": p.Latents, "factors": p.Factors} {
		if len(picked) == 0 {
			continue
		}
		value, ok := all[picked[0]]
		if len(picked) > 1 || !ok {
			return t, metric.Extra{}, fmt.Errorf("%s: --%s %s: a .json file has one table of each kind; give one existing name: %w", path, kind, strings.Join(picked, ","), model.ErrNotFound)
		}
		all[kind] = value
	}
	renamed, err := json.Marshal(all)
	if err != nil {
		return t, metric.Extra{}, err
	}
	r, err := parseJSON(bytes.NewReader(renamed))
	if err == nil {
		t, err = r.table(p.As)
	}
	if err != nil {
		return t, metric.Extra{}, fmt.Errorf("%s: %w", path, err)
	}
	extra, err := r.extra.extra(len(t.Codes) > 0)
	return t, extra, err
}

// readFile reads a whole file of at most maxJSON bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxJSON {
		return nil, fmt.Errorf("%s has more than %d bytes; save larger tables as .npz or .h5", path, maxJSON)
	}
	return content, nil
}

// hdf5File is an HDF5 file; MATLAB stores matrices with rows and columns swapped.
type hdf5File struct {
	*hdf5.File
	matlab bool
	list   []string
}

func openHDF5(path string, matlab bool) (container, error) {
	f, err := hdf5.Open(path)
	if err != nil {
		return nil, err
	}
	list, err := f.Names()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for i, name := range list {
		list[i] = strings.TrimPrefix(name, "/")
	}
	return hdf5File{f, matlab, list}, nil
}

func (f hdf5File) names() []string { return f.list }

func (f hdf5File) get(name string) (array, error) {
	d, err := f.Dataset(name)
	if err != nil {
		return array{}, err
	}
	if d.Kind == hdf5.Varying || d.Kind == 'S' {
		text, err := d.Strings(npz.MaxValues)
		return array{matrix: matrix{name: name}, text: text}, err
	}
	head := npz.Header{Kind: npz.Kind(d.Kind), Size: d.Size, BigEndian: d.BigEndian, Shape: d.Shape}
	get, err := head.Decoder()
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(d.Shape) == 0 || head.Len() > npz.MaxValues {
		return array{}, fmt.Errorf("%s has shape %v; tables can have at most %d numbers", name, d.Shape, npz.MaxValues)
	}
	var values []float64 // grows with the data actually read, not the declared size
	reader, block := d.Reader(), max(1, d.Block())
	for row := 0; row < d.Len(); row += block {
		raw := make([]byte, min(block, d.Len()-row)*d.RowBytes())
		if err := reader.Read(raw, row); err != nil {
			return array{}, err
		}
		for ; len(raw) > 0; raw = raw[d.Size:] {
			values = append(values, get(raw))
		}
	}
	a, err := shaped(name, d.Shape, values, d.Kind == 'f')
	if f.matlab && err == nil {
		a = a.transposed()
		a.known = a.known && !a.float // MATLAB stores all numbers as doubles by default
	}
	return a, err
}

// matFile is a MATLAB file in level 5 format.
type matFile []mat.Numbers

// openMAT opens MATLAB files of level 5, and of version 7.3, which are HDF5.
func openMAT(path string) (container, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(content, []byte("MATLAB 7.3")) || bytes.HasPrefix(content, []byte(hdf5.Magic)) {
		return openHDF5(path, true)
	}
	all, err := mat.All(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return matFile(all), nil
}

func (f matFile) Close() error { return nil }

func (f matFile) names() (names []string) {
	for _, a := range f {
		names = append(names, a.Name)
	}
	return names
}

func (f matFile) get(name string) (array, error) {
	i := slices.IndexFunc(f, func(a mat.Numbers) bool { return a.Name == name })
	if i < 0 {
		return array{}, fmt.Errorf("no array %q: %w", name, model.ErrNotFound)
	}
	if f[i].Err != nil {
		return array{}, f[i].Err
	}
	shape := slices.Clone(f[i].Shape)
	slices.Reverse(shape) // MATLAB's first axis varies fastest
	a, err := shaped(name, shape, f[i].Values, f[i].Float)
	a.known = !f[i].Float // MATLAB stores all numbers as doubles by default
	if err != nil {
		return a, err
	}
	return a.transposed(), nil
}

type parquetFile struct{ *parquet.File }

func openParquet(path string) (container, error) {
	f, err := parquet.Open(path)
	return parquetFile{f}, err
}

func (f parquetFile) names() (names []string) {
	for _, c := range f.Columns {
		names = append(names, c.Path)
	}
	return names
}

func (f parquetFile) get(name string) (array, error) {
	at, err := f.Column(name)
	if err != nil {
		return array{}, err
	}
	c := f.Columns[at]
	a := array{matrix: matrix{name: name, cols: 1, rows: f.Len()}, known: true, float: c.Type == parquet.Float || c.Type == parquet.Double}
	for g := range f.Groups {
		v, err := f.Read(g, at)
		if err != nil {
			return a, err
		}
		if len(v.Bytes) > 0 {
			text, err := c.Strings(v)
			if err != nil {
				return a, err
			}
			a.text = append(a.text, text...)
		}
		for _, n := range v.Ints {
			a.values = append(a.values, float64(n))
		}
		a.values = append(a.values, v.Floats...)
	}
	if a.text != nil {
		return a, nil
	}
	return shaped(name, []int{f.Len(), 1}, a.values, a.float)
}

// csvFile is a text table with named columns.
type csvFile struct {
	header []string
	rows   [][]string
}

func openCSV(path string) (container, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parseCSV(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// parseCSV parses cells separated by commas, semicolons or tabs, whichever is most frequent in the first line. A first line with only
// numbers is not a header; columns are then named 0, 1 and so on.
func parseCSV(content []byte) (csvFile, error) {
	first, _, _ := bytes.Cut(content, []byte("\n"))
	r := csv.NewReader(bytes.NewReader(content))
	for _, comma := range "\t;" {
		if bytes.ContainsRune(first, comma) && bytes.Count(first, []byte(string(comma))) > bytes.Count(first, []byte(string(r.Comma))) {
			r.Comma = comma
		}
	}
	r.TrimLeadingSpace, r.ReuseRecord = true, false
	rows, err := r.ReadAll()
	if err != nil {
		return csvFile{}, err
	}
	if len(rows) == 0 {
		return csvFile{}, errors.New("the file is empty")
	}
	f := csvFile{header: rows[0], rows: rows[1:]}
	if !slices.ContainsFunc(rows[0], func(cell string) bool { _, err := strconv.ParseFloat(cell, 64); return err != nil }) {
		f.header, f.rows = make([]string, len(rows[0])), rows
		for i := range f.header {
			f.header[i] = strconv.Itoa(i)
		}
	}
	for i, name := range f.header {
		if slices.Contains(f.header[:i], name) {
			return f, fmt.Errorf("duplicate column %q", name)
		}
	}
	return f, nil
}

func (f csvFile) Close() error { return nil }

func (f csvFile) names() []string { return f.header }

func (f csvFile) get(name string) (array, error) {
	at := slices.Index(f.header, name)
	if at < 0 {
		return array{}, fmt.Errorf("no column %q: %w", name, model.ErrNotFound)
	}
	a := array{matrix: matrix{name: name, rows: len(f.rows), cols: 1}}
	for r, row := range f.rows {
		cell := strings.TrimSpace(row[at])
		if cell == "" {
			return a, fmt.Errorf("%s: row %d is empty", name, r)
		}
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return f.text(name, at), nil
		}
		if v >= told || v <= -told {
			return a, fmt.Errorf("%s: row %d is %s; integers from %d on lose precision as float64", name, r, cell, int64(told))
		}
		a.values = append(a.values, v)
	}
	return a, nil
}

func (f csvFile) text(name string, at int) array {
	a := array{matrix: matrix{name: name, rows: len(f.rows), cols: 1}}
	for _, row := range f.rows {
		a.text = append(a.text, strings.TrimSpace(row[at]))
	}
	return a
}

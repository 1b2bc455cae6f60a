package input

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/format/npz"
	"slotscope/model/format/parquet"
	"slotscope/model/measure/metric"

	"slotscope/model/expect"
)

// npy is one array in the format of np.save.
func npy(t testing.TB, d npz.Data) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := npz.WriteArray(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// matlab is a level 5 file with arrays of doubles; if small is set, they are stored in MATLAB's compact form for small integers.
func matlab(arrays ...npz.Data) []byte {
	le := binary.LittleEndian
	element := func(kind uint32, data []byte) []byte {
		out := le.AppendUint32(le.AppendUint32(nil, kind), uint32(len(data)))
		return append(append(out, data...), make([]byte, (8-len(data)%8)%8)...)
	}
	out := append(bytes.Repeat([]byte(" "), 124), 0, 1, 'I', 'M')
	for _, a := range arrays {
		values := a.Values.([]float64)
		rows, cols := a.Shape[0], a.Shape[1]
		var data []byte
		for c := range cols {
			for r := range rows {
				data = le.AppendUint64(data, math.Float64bits(values[r*cols+c]))
			}
		}
		body := element(6, []byte{6, 0, 0, 0, 0, 0, 0, 0})
		body = append(body, element(5, le.AppendUint32(le.AppendUint32(nil, uint32(rows)), uint32(cols)))...)
		body = append(body, element(1, []byte(a.Name))...)
		out = append(out, element(14, append(body, element(9, data)...))...)
	}
	return out
}

func parquetOf(t testing.TB, columns ...parquet.Out) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, columns...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadFiles(t *testing.T) {
	numbers := metric.Table{Values: [][]float64{{0.5, 2, 4}, {1, 2.5, 3}}, Factors: [][]int{{0, 1, 1}}, Names: []string{"y"}}
	codes := metric.Table{Codes: [][]int{{5, 2, 4}, {1, 0, 3}}, Factors: [][]int{{0, 1, 1}, {1, 0, 2}}}
	named := codes
	named.Names = []string{"hue", "shape"}
	z := floats("z", 3, 2, 0.5, 1, 2, 2.5, 4, 3)
	whole := floats("q", 3, 2, 5, 1, 2, 0, 4, 3)
	y, two := floats("y", 3, 1, 7, 9, 9), floats("g", 3, 2, 7, 1, 9, 0, 9, 2)
	unnamed := numbers
	unnamed.Names = nil
	pick := func(latents, factors string) Pick { return Pick{Latents: Names(latents), Factors: Names(factors)} }
	for _, c := range []struct {
		name  string
		files map[string][]byte // sorted by name
		pick  Pick
		want  metric.Table
	}{
		{"npz with default names", map[string][]byte{"a.npz": archive(t, z, y)}, pick("z", "y"), numbers},
		{"npz with other names", map[string][]byte{"a.npz": archive(t, ints("mu", 3, 2, 5, 1, 2, 0, 4, 3), ints("labels", 3, 2, 7, 1, 9, 0, 9, 2))}, pick("mu", ""), codes},
		{"a pair of npy", map[string][]byte{"1.npy": npy(t, z), "2.npy": npy(t, npz.Data{Shape: []int{3}, Values: []int64{7, 9, 9}})}, Pick{}, unnamed},
		{"MATLAB", map[string][]byte{"a.mat": matlab(whole, two)}, pick("q", "g"), codes},
		{"MATLAB, numbers", map[string][]byte{"a.mat": matlab(z, y)}, Pick{}, numbers},
		{"JSON with other names", map[string][]byte{"a.json": []byte(`{"mine": [[5, 1], [2, 0], [4, 3]], "theirs": [[7, 1], [9, 0], [9, 2]], "factor_names": ["hue", "shape"]}`)}, pick("mine", "theirs"), named},
		{"CSV", map[string][]byte{"a.csv": []byte("z_1,hue,z_0,shape\n1,red,5,cube\n0,tan,2,ball\n3,tan,4,disk\n")}, pick("z", "hue,shape"),
			metric.Table{Codes: codes.Codes, Factors: [][]int{{0, 1, 1}, {1, 0, 2}}, Names: []string{"hue", "shape"}}},
		{"CSV with semicolons", map[string][]byte{"a.csv": []byte("z[0];z[1];y\n0.5;1;7\n2;2.5;9\n4;3;9\n")}, Pick{}, numbers},
		{"CSV without a header", map[string][]byte{"1.csv": []byte("0.5,1\n2,2.5\n4,3\n"), "2.tsv": []byte("y\n7\n9\n9\n")}, Pick{}, numbers},
		{"Parquet", map[string][]byte{"a.parquet": parquetOf(t, parquet.Out{Name: "z0", Floats: []float64{0.5, 2, 4}}, parquet.Out{Name: "z1", Floats: []float64{1, 2.5, 3}}, parquet.Out{Name: "y", Ints: []int64{7, 9, 9}})}, Pick{}, numbers},
		{"Parquet with codes", map[string][]byte{"a.parquet": parquetOf(t, parquet.Out{Name: "a", Ints: []int64{5, 2, 4}}, parquet.Out{Name: "b", Ints: []int64{1, 0, 3}}, parquet.Out{Name: "hue", Ints: []int64{1, 3, 3}}, parquet.Out{Name: "shape", Ints: []int64{5, 4, 6}})}, pick("a,b", "hue,shape"), named},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := ReadFiles(written(t, c.files), c.pick)
			if d := cmp.Diff(got, c.want); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

// written returns the paths of files, sorted by name.
func written(t testing.TB, files map[string][]byte) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// An HDF5 file written by h5py is read with its rows and columns; one written by MATLAB is transposed.
func TestReadHDF5(t *testing.T) {
	c, err := openHDF5("../../../format/hdf5/testdata/contiguous.h5", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	turned := c.(hdf5File)
	turned.matlab = true
	seen := 0
	for _, name := range c.names() {
		a, err := c.get(name)
		if err != nil || a.text != nil || a.cols < 2 {
			continue
		}
		b, err := turned.get(name)
		if err != nil || b.rows != a.cols || b.cols != a.rows || b.values[1] != a.values[a.cols] || len(a.values) != a.rows*a.cols {
			t.Errorf("%s: %d × %d, turned %d × %d, %v", name, a.rows, a.cols, b.rows, b.cols, err)
		}
		seen++
	}
	if seen == 0 {
		t.Errorf("no table among %q", c.names())
	}
}

func TestReadFilesRefuses(t *testing.T) {
	pick := func(latents, factors string) Pick { return Pick{Latents: Names(latents), Factors: Names(factors)} }
	z, y := floats("z", 2, 1, 0.5, 1), floats("y", 3, 1, 7, 9, 9)
	for want, c := range map[string]struct {
		files map[string][]byte
		pick  Pick
	}{
		`no array "mu"; available: ["z" "y"]`:                              {map[string][]byte{"a.npz": archive(t, z, y)}, pick("mu", "y")},
		`z has 2 rows, but y has 3`:                                        {map[string][]byte{"a.npz": archive(t, z, y)}, pick("z", "y")},
		`no array is named factors, y, labels; select the factors`:         {map[string][]byte{"a.csv": []byte("z,hue\n1,2\n")}, Pick{}},
		`"z" holds text; latents must be numbers`:                          {map[string][]byte{"a.csv": []byte("z,y\none,2\n")}, Pick{}},
		`z: row 1 is empty`:                                                {map[string][]byte{"a.csv": []byte("z,y\n1,2\n,3\n")}, Pick{}},
		`record on line 3: wrong number of fields`:                         {map[string][]byte{"a.csv": []byte("z,y\n1,2\n1\n")}, Pick{}},
		`duplicate column "z"`:                                             {map[string][]byte{"a.csv": []byte("z,z\n1,2\n")}, Pick{}},
		`y: row 0, column 0 is NaN`:                                        {map[string][]byte{"a.csv": []byte("z,y\n1,NaN\n2,3\n")}, Pick{}},
		`the file is empty`:                                                {map[string][]byte{"a.csv": {}}, Pick{}},
		`unsupported format; supported: .json, .npz`:                       {map[string][]byte{"a.pkl": {}}, Pick{}},
		`3 files given`:                                                    {map[string][]byte{"a.npy": {}, "b.npy": {}, "c.npy": {}}, Pick{}},
		`not a level 5 MATLAB file`:                                        {map[string][]byte{"a.mat": []byte("PK")}, pick("z", "y")},
		`a .json file has one table of each kind`:                          {map[string][]byte{"a.json": []byte(`{"z": [[1]]}`)}, pick("z", "y")},
		`z has shape [2 1 1]; it must have one or two dimensions`:          {map[string][]byte{"a.npz": archive(t, npz.Data{Name: "z", Shape: []int{2, 1, 1}, Values: []float64{1, 2}}, y)}, pick("z", "y")},
		`row 0, column 0 is about 9007199254740992; integers from 9007199`: {map[string][]byte{"a.npz": archive(t, npz.Data{Name: "z", Shape: []int{1}, Values: []int64{1 << 53}}, y)}, pick("z", "y")},
	} {
		_, _, err := ReadFiles(written(t, c.files), c.pick)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("z_0,z_1,y\n1,2,red\n"))
	f.Add([]byte("1;2\n\"a\nb\";3\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var c csvFile
		var err error
		expect.Frugal(t, len(content), 64, func() { c, err = parseCSV(content) })
		if err != nil {
			return
		}
		for _, name := range c.names() {
			if a, err := c.get(name); err == nil && len(a.values)+len(a.text) != len(c.rows) {
				t.Errorf("%q: %d values of %d rows", name, len(a.values)+len(a.text), len(c.rows))
			}
		}
	})
}

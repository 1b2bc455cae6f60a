package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/expect"
)

// TestOwnParquet reads 30 images in groups of 8 with their factors, from one file and from a folder of two.
func TestOwnParquet(t *testing.T) {
	file := "testdata/parquet/snappy1.parquet"
	content := must(os.ReadFile(file))(t)
	dir := unpacked(t, map[string][]byte{"data/train-00000.parquet": content, "data/train-00001.parquet": content, "README.md": nil})
	for path, copies := range map[string]int{file: 1, dir: 2} {
		source, err := openOwn(t, path)
		source = opened(t, source, err)
		info := source.Info()
		if info.Len != 30*copies || info.C != 3 || info.Complete || len(source.Labels()) != 30*copies*6 {
			t.Errorf("%s: %+v, %d labels", path, info, len(source.Labels()))
		}
		if diff := cmp.Diff(Factor{"label_shape", []string{"0", "1"}}, info.Factors[0]); diff != "" {
			t.Error(diff)
		}
		if f := info.Factors[2]; f.Name != "name" || f.Values[0] != "cube" || f.Values[1] != "sphere" {
			t.Errorf("%+v", f)
		}
		if v := info.Factors[1].Values; len(v) != 15 || v[0] != "-28" || v[14] != "28" {
			t.Errorf("angles %v", v)
		}
		for n := range info.Len {
			if labels := source.Labels()[n*6:]; int(labels[0]) != n%30/15 || int(labels[1]) != n%15 {
				t.Fatalf("row %d has labels %v", n, labels[:6])
			}
		}
		images := stream(t, source, 0)
		patterned(t, images[:30*12288], 0)
		patterned(t, images[(copies-1)*30*12288:], 0)
		patterned(t, stream(t, source, 30*copies-3), 27)
	}
}

// TestDuckDB reads a file that DuckDB wrote: decimals keep their point, dates are days, and images are a BLOB column.
func TestDuckDB(t *testing.T) {
	source, err := openOwn(t, "testdata/parquet/duckdb.parquet")
	source = opened(t, source, err)
	want := []Factor{
		{"size", []string{"0.25", "1.25", "2.25"}}, {"mass", []string{"-0.5", "0.5"}},
		{"taken", []string{"2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"}}, {"label", []string{"cube", "größe", "small ball"}},
		{"class", []string{"0", "1", "2", "3", "4", "5"}}, {"round", []string{"0", "1"}},
	}
	info := source.Info()
	if diff := cmp.Diff(want, info.Factors); diff != "" || info.Len != 24 || info.C != 3 {
		t.Fatalf("%d images of %d channels: %s", info.Len, info.C, diff)
	}
	names := []uint16{1, 0, 2} // of größe, cube, small ball
	for n := range 24 {
		k := uint16(n)
		if got := source.Labels()[6*n : 6*n+6]; !slices.Equal(got, []uint16{k % 3, k % 2, k % 4, names[k%3], k % 6, k % 2}) {
			t.Errorf("row %d has classes %v", n, got)
		}
	}
	patterned(t, stream(t, source, 0), 0)
}

func TestOwnParquetRefused(t *testing.T) {
	_, err := openOwn(t, "testdata/parquet/lists.parquet")
	expect.Says(t, err, "lists.parquet", `"maybe"`, "null")
	content := must(os.ReadFile("testdata/parquet/snappy1.parquet"))(t)
	path := filepath.Join(t.TempDir(), "short.parquet")
	if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = openOwn(t, path)
	expect.Says(t, err, "short.parquet", "incomplete")
	_, err = openOwn(t, unpacked(t, map[string][]byte{"a.parquet": content, "b.parquet": must(os.ReadFile("testdata/parquet/lists.parquet"))(t)}))
	expect.Says(t, err, "b.parquet", "no column", "label_shape")
}

// TestShapes3DParquet recognises Shapes3D and prefers classes to values if it has both. shapes3d.parquet has 40 rows in the columns of
// TensorFlow Datasets: row k is n = (17k + 5) mod 40, with floor n mod 10, wall 9 − n mod 10, object 3, scale n mod 8, shape n mod 4 and
// orientation n mod 15. Its pixels follow the formula of the fixtures. It was written by parquet-go v0.32.0.
func TestShapes3DParquet(t *testing.T) {
	source, err := openOwn(t, "testdata/parquet/shapes3d.parquet")
	source = opened(t, source, err)
	info := source.Info()
	if diff := cmp.Diff(originalInfo.Factors, info.Factors); diff != "" {
		t.Error(diff)
	}
	if info.Title != "Shapes3D" || info.Licence != "Apache-2.0" || info.Len != 40 || info.Complete {
		t.Errorf("%+v", info)
	}
	expect.Says(t, errors.New(info.Note), "in the order of the files")
	expect.Says(t, errors.New(info.About), "A part of Shapes3D")
	images := stream(t, source, 0)
	for k := range 40 {
		n := (17*k + 5) % 40
		want := []uint16{uint16(n % 10), uint16(9 - n%10), 3, uint16(n % 8), uint16(n % 4), uint16(n % 15)}
		if got := source.Labels()[6*k : 6*k+6]; !slices.Equal(got, want) {
			t.Errorf("row %d has classes %v, want %v", k, got, want)
		}
		patterned(t, images[k*12288:(k+1)*12288], n)
	}
}

// TestShapes3DOf recognises Shapes3D from classes and from values, complete or in part, and rejects other columns.
func TestShapes3DOf(t *testing.T) {
	sizes := originalInfo.Sizes()
	table := func(prefix string, length int, value func(f, class int) string) (columns []column) {
		classes := make([]int, 6)
		for f, factor := range originalInfo.Factors {
			c := column{name: prefix + factor.Name}
			for n := range length {
				Grid(sizes).Classes(classes, n)
				c.values = append(c.values, value(f, classes[f]))
			}
			columns = append(columns, c)
		}
		slices.Reverse(columns)
		return columns
	}
	number := func(_, class int) string { return fmt.Sprint(class) }
	rounded := func(f, class int) string { return fmt.Sprint(float32(shapes3dValues[f](class))) }
	whole := originalInfo.Len
	info, labels, ok := shapes3DOf(append(table("label_", whole, number), table("value_", whole, rounded)...), whole)
	if !ok || !info.Complete || labels != nil || info.Note != "" {
		t.Errorf("the whole set: %v, %d labels, %q", ok, len(labels), info.Note)
	}
	_, labels, ok = shapes3DOf(table("", 100, rounded), 100)
	if !ok || !slices.Equal(labels[99*6:], []uint16{0, 0, 0, 1, 2, 9}) {
		t.Errorf("a part, by values: %v, %v", ok, labels)
	}
	for what, columns := range map[string][]column{
		"another column":   append(table("label_", 10, number), column{name: "split", values: make([]string, 10)}),
		"no orientation":   table("label_", 10, number)[1:],
		"other values":     table("value_", 10, func(f, class int) string { return fmt.Sprint(class + 100) }),
		"text":             table("value_", 10, func(f, class int) string { return "red" }),
		"classes for hues": table("", 20, func(f, class int) string { return fmt.Sprint(class + 1) }),
	} {
		if _, _, ok := shapes3DOf(columns, len(columns[0].values)); ok {
			t.Errorf("with %s it is recognised as Shapes3D", what)
		}
	}
}

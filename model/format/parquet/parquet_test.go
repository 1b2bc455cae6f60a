package parquet

import (
	"bytes"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
	"slotscope/model/expect"
)

// all reads a column of all groups.
func all(t testing.TB, f *File, path string) Values {
	t.Helper()
	column, err := f.Column(path)
	if err != nil {
		t.Fatal(err)
	}
	var out Values
	for g := range f.Groups {
		v, err := f.Read(g, column)
		if err != nil {
			t.Fatal(err)
		}
		if v.Len() != f.Groups[g].Rows {
			t.Fatalf("%d values of %d rows", v.Len(), f.Groups[g].Rows)
		}
		out.Ints, out.Floats, out.Bytes = append(out.Ints, v.Ints...), append(out.Floats, v.Floats...), append(out.Bytes, v.Bytes...)
	}
	return out
}

// TestColumns reads the same 30 rows in every codec and version of page: row n has shape n/15, angle 4·(n mod 15) − 28, n/2 + 1, −n,
// and whether n is even. The files were written by github.com/parquet-go/parquet-go v0.32.0.
func TestColumns(t *testing.T) {
	for _, name := range []string{"snappy1", "snappy2", "gzip", "zstd", "plain"} {
		t.Run(name, func(t *testing.T) {
			f := expect.Open(t, Open, "testdata/"+name+".parquet")
			if f.Len() != 30 || len(f.Groups) != 4 || f.Groups[0].Rows != 8 {
				t.Fatalf("%d rows in %d groups", f.Len(), len(f.Groups))
			}
			want := []Column{
				{"image.bytes", ByteArray, 2, false}, {"image.path", ByteArray, 2, false}, {"label_shape", Int64, 0, false},
				{"label_angle", Double, 0, false}, {"name", ByteArray, 0, false}, {"small", Float, 1, false}, {"n", Int32, 0, false},
				{"flag", Boolean, 0, false},
			}
			if diff := cmp.Diff(want, f.Columns); diff != "" {
				t.Error(diff)
			}
			pictures, paths, names := all(t, f, "image.bytes").Bytes, all(t, f, "image.path").Bytes, all(t, f, "name").Bytes
			shapes, angles := all(t, f, "label_shape").Ints, all(t, f, "label_angle").Floats
			small := all(t, f, "small").Floats
			ints, flags := all(t, f, "n").Ints, all(t, f, "flag").Ints
			for n := range 30 {
				img, err := png.Decode(bytes.NewReader(pictures[n]))
				if err != nil {
					t.Fatal(err)
				}
				if r, _, _, _ := img.At(3, 2).RGBA(); byte(r>>8) != byte(7*n+6+15) {
					t.Errorf("picture %d has red %d at (3, 2)", n, r>>8)
				}
				if string(paths[n]) == "" || string(names[n]) != []string{"cube", "sphere"}[n/15] {
					t.Errorf("row %d: %q, %q", n, paths[n], names[n])
				}
				if shapes[n] != int64(n/15) || angles[n] != float64(n%15)*4-28 || ints[n] != int64(-n) || small[n] != float64(n)/2+1 || flags[n] != int64(1-n%2) {
					t.Errorf("row %d: %d, %v, %d, %d", n, shapes[n], angles[n], ints[n], flags[n])
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	f := expect.Open(t, Open, "testdata/lists.parquet")
	for column, parts := range map[string][]string{
		"l":     {"lists.parquet", `"l"`, "a list"},
		"d":     {"DELTA_BINARY_PACKED", "plain and dictionary"},
		"maybe": {`"maybe"`, "row 2 of the page is null"},
	} {
		i, err := f.Column(column)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Read(0, i)
		expect.Says(t, err, parts...)
	}
	if _, err := f.Column("none"); !errors.Is(err, model.ErrNotFound) {
		t.Error(err)
	}
	_, err := expect.Open(t, Open, "testdata/brotli.parquet").Read(0, 0)
	expect.Says(t, err, "brotli.parquet", "row group 0", `"image.bytes"`, "Brotli (codec 4)")
	whole, err := os.ReadFile("testdata/gzip.parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	for content, says1 := range map[string]string{
		string(whole[:len(whole)-100]): "its end is missing",
		"something else entirely":      "no Parquet file",
		"PAR1\xff\xff\xff\x00PAR1":     "damaged",
		"":                             "no Parquet file",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		expect.Says(t, err, "x.parquet", says1)
	}
	changed := bytes.Clone(whole)
	c := expect.Open(t, Open, "testdata/gzip.parquet").Groups[0].chunks[0]
	changed[c.offset+c.size-50] ^= 0xff
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = expect.Open(t, Open, path).Read(0, 0)
	expect.Says(t, err, "x.parquet", "row group 0", `"image.bytes"`, "checksum")
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"snappy1", "snappy2", "zstd", "lists"} {
		b, err := os.ReadFile("testdata/" + name + ".parquet")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "fuzz.parquet")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		for g := range file.Groups[:min(len(file.Groups), 8)] {
			for c := range file.Columns {
				if v, err := file.Read(g, c); err == nil && v.Len() != file.Groups[g].Rows {
					t.Fatalf("%d values of %d rows", v.Len(), file.Groups[g].Rows)
				}
			}
		}
	})
}

package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// TestColumns reads the same 30 rows in every codec and page version: row n has shape n/15, angle 4·(n mod 15) − 28, n/2 + 1, −n, and a
// flag for even n. The files were written by github.com/parquet-go/parquet-go v0.32.0.
func TestColumns(t *testing.T) {
	for _, name := range []string{"snappy1", "snappy2", "gzip", "zstd", "plain", "brotli"} {
		t.Run(name, func(t *testing.T) {
			f := expect.Open(t, Open, "testdata/"+name+".parquet")
			if f.Len() != 30 || len(f.Groups) != 4 || f.Groups[0].Rows != 8 {
				t.Fatalf("%d rows in %d groups", f.Len(), len(f.Groups))
			}
			want := []Column{
				{Path: "image.bytes", Type: ByteArray, Optional: 2}, {Path: "image.path", Type: ByteArray, Optional: 2}, {Path: "label_shape", Type: Int64},
				{Path: "label_angle", Type: Double}, {Path: "name", Type: ByteArray}, {Path: "small", Type: Float, Optional: 1}, {Path: "n", Type: Int32},
				{Path: "flag", Type: Boolean},
			}
			if diff := cmp.Diff(want, f.Columns, cmpopts.IgnoreUnexported(Column{})); diff != "" {
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
					t.Errorf("image %d has red %d at (3, 2)", n, r>>8)
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

// TestKinds reads 300 rows of every other encoding, codec and logical type, with several pages per column. The file was written by
// github.com/parquet-go/parquet-go v0.32.0.
func TestKinds(t *testing.T) {
	f := expect.Open(t, Open, "testdata/kinds.parquet")
	wide := func(n int) string { return fmt.Sprintf("shape number %d of many", n*n%97) }
	for path, want := range map[string]func(n int) string{
		"a_delta64":  func(n int) string { return strconv.Itoa(n*n*1e12 - 7) },
		"b_delta32":  func(n int) string { return strconv.Itoa(int(int32(n * 40_000_003))) },
		"c_lengths":  wide,
		"d_prefixes": wide,
		"e_split":    func(n int) string { return strconv.FormatFloat(float64(float32(n)/10), 'g', -1, 32) },
		"f_splitd":   func(n int) string { return strconv.FormatFloat(float64(n)/10, 'g', -1, 64) },
		"g_decimal":  func(n int) string { return strconv.FormatFloat(float64(n-150)/100, 'f', 2, 64) },
		"h_decimal":  func(n int) string { return strconv.FormatFloat(float64(n-150)*1000.003, 'f', 3, 64) },
		"i_date":     func(n int) string { return time.Date(2022, 1, 8+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) },
		"j_time":     func(n int) string { return fmt.Sprintf("2024-02-29T12:%02d:%02d.5Z", n/60, n%60) },
		"k_unsigned": func(n int) string { return strconv.Itoa(4294967295 - n) },
		"l_clock": func(n int) string {
			return time.Time{}.Add(time.Duration(n) * 1500 * time.Millisecond).Format("15:04:05.999")
		},
	} {
		v := all(t, f, path)
		column, _ := f.Column(path)
		got, err := f.Columns[column].Strings(&v)
		if err != nil || len(got) != 300 {
			t.Errorf("%s: %d values, %v", path, len(got), err)
			continue
		}
		for n, text := range got {
			if text != want(n) {
				t.Errorf("%s, row %d: %s, not %s", path, n, text, want(n))
				break
			}
		}
	}
	_, err := Column{Path: "raw", Type: ByteArray}.Strings(&Values{Bytes: [][]byte{{0xff, 0xfe}}})
	expect.Says(t, err, `"raw"`, "value 0", "not UTF-8 text")
}

// TestLZ4 decompresses frames of the older codec and overlapping back-references, and rejects damaged data.
func TestLZ4(t *testing.T) {
	block := []byte{0x13, 'a', 1, 0, 0x10, 'b'} // a, then seven bytes from offset 1, then b
	frame := append([]byte{0, 0, 0, 9, 0, 0, 0, 6}, block...)
	for name, b := range map[string][]byte{"block": block, "frame": frame} {
		if got, err := lz4Framed(b, 9); err != nil || string(got) != "aaaaaaaab" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := lz4Framed(slices.Concat(frame, frame), 18); err != nil || string(got) != "aaaaaaaabaaaaaaaab" {
		t.Errorf("two frames: %q, %v", got, err)
	}
	for _, b := range [][]byte{{}, {0x13, 'a', 2, 0, 0x10, 'b'}, {0x13, 'a', 0, 0}, {0xf0}, {0x13, 'a', 1}, block[:5], {0x1f, 'a', 1, 0, 255, 255, 255}} {
		if got, err := lz4(b, 9); err == nil {
			t.Errorf("%v decompressed to %q", b, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := expect.Open(t, Open, "testdata/lists.parquet")
	for column, parts := range map[string][]string{
		"l":     {"lists.parquet", `"l"`, "lists are not supported"},
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
	whole, err := os.ReadFile("testdata/gzip.parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	for content, says1 := range map[string]string{
		string(whole[:len(whole)-100]): "its end is missing",
		"something else entirely":      "not a Parquet file",
		"PAR1\xff\xff\xff\x00PAR1":     "damaged",
		"":                             "not a Parquet file",
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
	for _, name := range []string{"snappy1", "snappy2", "zstd", "lists", "kinds"} {
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

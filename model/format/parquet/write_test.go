package parquet

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model/expect"
)

// TestWrite reads back what it writes, in more than one row group.
func TestWrite(t *testing.T) {
	const rows = groupRows + 3
	steps, values, names := make([]int64, rows), make([]float64, rows), make([]string, rows)
	for i := range rows {
		steps[i], values[i], names[i] = int64(i)-5, float64(i)/3, []string{"total", "psnr/eval", "É"}[i%3]
	}
	values[2] = math.Inf(-1)
	var b bytes.Buffer
	if err := Write(&b, Out{Name: "step", Ints: steps}, Out{Name: "time", Ints: steps, Micros: true}, Out{Name: "name", Texts: names}, Out{Name: "value", Floats: values}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "points.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f := expect.Open(t, Open, path)
	if f.Len() != rows || len(f.Groups) != 2 {
		t.Fatalf("%d rows in %d groups", f.Len(), len(f.Groups))
	}
	if got := all(t, f, "step").Ints; !slices.Equal(got, steps) {
		t.Error("steps differ")
	}
	if got := all(t, f, "value").Floats; !slices.Equal(got, values) {
		t.Error("values differ")
	}
	for i, v := range all(t, f, "name").Bytes {
		if string(v) != names[i] {
			t.Fatalf("name %d is %q", i, v)
		}
	}
	column, err := f.Column("time")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Columns[column].Strings(&Values{Ints: []int64{1_700_000_000_123_456}}); err != nil || text[0] != "2023-11-14T22:13:20.123456Z" {
		t.Errorf("time %q, %v", text, err)
	}
	if err := Write(&b, Out{Name: "a", Ints: steps}, Out{Name: "b", Ints: steps[:1]}); err == nil {
		t.Error("columns of two lengths were written")
	}
}

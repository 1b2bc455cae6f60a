package data

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/expect"
)

// TestOwnParquet reads 30 pictures in groups of 8 with what their columns say, alone and as the second of two files.
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

func TestOwnParquetRefused(t *testing.T) {
	_, err := openOwn(t, "testdata/parquet/lists.parquet")
	expect.Says(t, err, "lists.parquet", "DELTA_BINARY_PACKED")
	content := must(os.ReadFile("testdata/parquet/snappy1.parquet"))(t)
	path := filepath.Join(t.TempDir(), "short.parquet")
	if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = openOwn(t, path)
	expect.Says(t, err, "short.parquet", "incomplete")
	_, err = openOwn(t, unpacked(t, map[string][]byte{"a.parquet": content, "b.parquet": must(os.ReadFile("testdata/parquet/lists.parquet"))(t)}))
	expect.Says(t, err, "b.parquet", "lacks the column", "label_shape")
}

package metric

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
)

// golden is a case computed with scikit-learn 1.2, using the definitions in Hsu et al.'s code.
type golden struct {
	Name     string
	Discrete bool
	Latents  [][]float64
	Factors  [][]int
	Expected struct {
		Kept   []int  `json:"kept_factors"`
		Active []bool `json:"active_latents"`
		NMI    [][]model.Score
		InfoM  model.Score
		InfoC  model.Score
		InfoE  struct {
			Score   model.Score
			Factors []model.Score `json:"per_factor"`
		} `json:"infoe_mean_scaled_detail"`
		DCI  map[string]map[string]json.RawMessage
		Test []int `json:"dci_test_rows"`
	}
	Tolerance struct {
		NMI, InfoM, InfoC, InfoE float64
		Factor                   float64 `json:"infoe_per_factor"`
		DCI                      map[string]map[string]float64
	}
}

func (g golden) table() Table {
	t := Table{Factors: columnsOf(g.Factors)}
	if !g.Discrete {
		t.Values = columnsOf(g.Latents)
		return t
	}
	for _, c := range columnsOf(g.Latents) {
		codes := make([]int, len(c))
		for r, v := range c {
			codes[r] = int(v)
		}
		t.Codes = append(t.Codes, codes)
	}
	return t
}

func columnsOf[T any](rows [][]T) [][]T {
	out := make([][]T, len(rows[0]))
	for _, row := range rows {
		for j, v := range row {
			out[j] = append(out[j], v)
		}
	}
	return out
}

// eachGolden runs fn for every case as a subtest.
func eachGolden(t *testing.T, fn func(t *testing.T, g golden)) {
	files, err := filepath.Glob("testdata/0*.json")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g golden
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}
			fn(t, g)
		})
	}
}

// closeTo compares scores; undefined equals only undefined.
func closeTo(t *testing.T, what string, got, want model.Score, tol float64) {
	t.Helper()
	if got.Defined() != want.Defined() || got.Defined() && math.Abs(float64(got-want)) > tol {
		t.Errorf("%s is %v, want %v ± %v", what, float64(got), float64(want), tol)
	}
}

// TestInfo: the scores measured during training also match the goldens.
func TestInfo(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		info, err := MeasureInfo(t.Context(), g.table(), Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "InfoM", info.M, g.Expected.InfoM, g.Tolerance.InfoM)
		closeTo(t, "InfoC", info.C, g.Expected.InfoC, g.Tolerance.InfoC)
		closeTo(t, "InfoE", info.E, g.Expected.InfoE.Score, g.Tolerance.InfoE)
	})
}

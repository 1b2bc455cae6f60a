package metric

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slotscope/model/expect"
)

// fieldGolden is a case of the scores of other papers, computed with NumPy and scikit-learn with every fit at its optimum.
type fieldGolden struct {
	golden
	UDR struct {
		Models [][][]float64
		KL     [][]float64
	}
	Curves     []Curve     `json:"loss_capacity"`
	Selections []Selection `json:"selections"`
	Expected   map[string]any
	Tolerance  map[string]any
}

func (g fieldGolden) extra() Extra {
	e := Extra{Curves: g.Curves, Selections: g.Selections}
	for a, rows := range g.UDR.Models {
		m := Model{}
		part := golden{Discrete: g.Discrete, Latents: rows, Factors: [][]int{{0}}}.table()
		m.Codes, m.Values = part.Codes, part.Values
		if g.UDR.KL != nil {
			m.KL = g.UDR.KL[a]
		}
		e.Models = append(e.Models, m)
	}
	return e
}

// TestFieldGolden compares every score with every case in the directory SLOTSCOPE_GOLDENS.
func TestFieldGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("SLOTSCOPE_GOLDENS"), "testdata/field"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			if slices.Contains([]string{"01_perfect_codes", "03_rotated_continuous", "04_noise_codes", "05_partial_9x16"}, name) {
				expect.Long(t) // 02 has numbers, 06 has codes with one uninformative latent
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g fieldGolden
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}
			scores, err := Field(t.Context(), g.table(), g.extra(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(scores)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if len(scores.Problems) > 0 && g.Expected["low_label"] != nil {
				t.Errorf("problems: %v", scores.Problems)
			}
			if agreed := (comparison{t, g}).walk("", got, g.Expected); agreed < 200 {
				t.Errorf("only %d numbers were compared", agreed)
			}
		})
	}
}

// comparison walks two JSON values and counts the compared numbers.
type comparison struct {
	*testing.T
	g fieldGolden
}

func (c comparison) walk(path string, got, want any) (count int) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			c.Errorf("%s is %v", path, got)
			return 0
		}
		if w["band_ten"] != nil {
			c.spread(path, g, w)
			return 1
		}
		for key, v := range w {
			there, ok := g[key]
			if !ok {
				c.Errorf("%s.%s is missing", path, key)
				continue
			}
			count += c.walk(path+"."+key, there, v)
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			c.Errorf("%s has %d entries, want %d", path, len(g), len(w))
			return 0
		}
		for i := range w {
			count += c.walk(fmt.Sprintf("%s[%d]", path, i), g[i], w[i])
		}
	case float64:
		g, ok := got.(float64)
		if tol := c.tolerance(path); !ok || math.Abs(g-w) > tol {
			c.Errorf("%s is %v, want %v ± %v", path, got, w, tol)
		}
		return 1
	default:
		if got != want {
			c.Errorf("%s is %v, want %v", path, got, want)
		}
		return 1
	}
	return count
}

// tolerance is the file's tolerance for the kind of number; goldens are rounded to seven digits.
func (c comparison) tolerance(path string) float64 {
	of := func(name string) float64 { return c.g.Tolerance[name].(float64) + 1e-7 }
	switch {
	case strings.HasSuffix(path, ".excess"):
		spread := c.g.Expected["redundancy"].(map[string]any)["shuffled"].(map[string]any)
		return spread["band_ten"].(float64)
	case strings.Contains(path, "sap_index_matrix") || strings.HasSuffix(path, ".sap_index"):
		return 3.0/float64(len(c.g.Factors)/3) + 1e-7 // the same for every case with machines on numbers
	case strings.Contains(path, "_matrix") && strings.Contains(path, "sap"):
		return of("sap_entries")
	case strings.HasSuffix(path, ".sap") || strings.HasSuffix(path, ".sap_std"):
		return of("sap")
	case strings.HasPrefix(path, ".explicitness"):
		return of("explicitness")
	case strings.HasPrefix(path, ".low_label") && strings.Contains(path, "per_factor"):
		return of("low_label_per_factor")
	case strings.HasPrefix(path, ".low_label"):
		return of("low_label")
	case strings.HasPrefix(path, ".udr"):
		return of("udr")
	}
	return of("exact")
}

// spread compares means of ten. It skips raw BetaVAE scores at large scales, which depend on where the solver stops.
func (c comparison) spread(path string, got, want map[string]any) {
	if strings.Contains(path, "betavae_raw") {
		return
	}
	g, ok := got["mean"].(float64)
	if band := want["band_ten"].(float64); !ok || math.Abs(g-want["mean"].(float64)) > band {
		c.Errorf("%s has mean %v, want %v ± %v", path, got["mean"], want["mean"], band)
	}
}

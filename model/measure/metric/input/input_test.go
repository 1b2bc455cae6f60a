package input

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/format/npz"
	"slotscope/model/measure/metric"
)

func file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func archive(t testing.TB, arrays ...npz.Data) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := npz.Write(&b, arrays...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func ints(name string, rows, cols int, values ...int32) npz.Data {
	return npz.Data{Name: name, Shape: []int{rows, cols}, Values: values}
}

func floats(name string, rows, cols int, values ...float64) npz.Data {
	return npz.Data{Name: name, Shape: []int{rows, cols}, Values: values}
}

func TestReadJSON(t *testing.T) {
	for _, c := range []struct {
		name, content string
		as            As
		want          metric.Table
	}{
		{"codes", `{"discrete": true, "latents": [[3, 511], [0, 7]], "factors": [[0, 1], [2, 0]], "factor_names": ["hue", "shape"]}`, Found,
			metric.Table{Codes: [][]int{{3, 0}, {511, 7}}, Factors: [][]int{{0, 1}, {1, 0}}, Names: []string{"hue", "shape"}}},
		{"numbers", `{"discrete": false, "latents": [[3], [0]], "factors": [[0], [2]]}`, Found,
			metric.Table{Values: [][]float64{{3, 0}}, Factors: [][]int{{0, 1}}}},
		{"integers are codes by default", `{"latents": [[3], [0]], "factors": [[0], [2]], "more": {"x": [1]}}`, Found,
			metric.Table{Codes: [][]int{{3, 0}}, Factors: [][]int{{0, 1}}}},
		{"fractions are numbers by default", `{"latents": [[3.5], [0]], "factors": [[0], [2]]}`, Found,
			metric.Table{Values: [][]float64{{3.5, 0}}, Factors: [][]int{{0, 1}}}},
		{"fractions read as codes", `{"discrete": false, "latents": [[0.5, 7], [-0.5, 7], [0.1, 9]], "factors": [[0.3], [0.1], [0.3]]}`, Codes,
			metric.Table{Codes: [][]int{{2, 0, 1}, {7, 7, 9}}, Factors: [][]int{{1, 0, 1}}}},
		{"codes read as numbers", `{"discrete": true, "latents": [[1], [2]], "factors": [[0], [1]]}`, Numbers,
			metric.Table{Values: [][]float64{{1, 2}}, Factors: [][]int{{0, 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(file(t, "case.json", []byte(c.content)), c.as)
			if d := cmp.Diff(got, c.want); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

func TestReadNPZ(t *testing.T) {
	names := npz.Data{Name: "factor_names", Shape: []int{1}, Values: []string{"hue"}}
	column := npz.Data{Name: "factors", Shape: []int{2}, Values: []float32{0.25, 0.125}}
	for _, c := range []struct {
		name   string
		arrays []npz.Data
		want   metric.Table
	}{
		{"codes", []npz.Data{ints("codes", 2, 2, 5, 6, 7, 8), column, names},
			metric.Table{Codes: [][]int{{5, 7}, {6, 8}}, Factors: [][]int{{1, 0}}, Names: []string{"hue"}}},
		{"latents", []npz.Data{floats("latents", 2, 1, 5, 6), ints("factors", 2, 1, 3, 9)},
			metric.Table{Values: [][]float64{{5, 6}}, Factors: [][]int{{0, 1}}}},
		{"latents of integers", []npz.Data{ints("latents", 2, 1, 5, 6), column}, metric.Table{Codes: [][]int{{5, 6}}, Factors: [][]int{{1, 0}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(file(t, "case.npz", archive(t, c.arrays...)), Found)
			if d := cmp.Diff(got, c.want); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

// TestReadRefuses: every error names the file, and the array and row if there is one.
func TestReadRefuses(t *testing.T) {
	good := ints("factors", 2, 1, 0, 1)
	objects, err := os.ReadFile("testdata/objects.npz")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, content string
		want          string
	}{
		{"empty.json", ``, "the file is empty"},
		{"blank.json", " \n", "the file is empty"},
		{"cut.json", `{"latents": [[1], [2`, "truncated"},
		{"nan.json", `{"latents": [[1], [NaN]], "factors": [[0], [1]]}`, "latents: row 1, column 0: not JSON at byte 20"},
		{"null.json", `{"latents": [[1], [null]], "factors": [[0], [1]]}`, "latents: row 1, column 0: null is not a number"},
		{"nullfactor.json", `{"latents": [[1], [2]], "factors": [[0], [null]]}`, "factors: row 1, column 0: null is not a number"},
		{"bool.json", `{"latents": [[1], [true]], "factors": [[0], [1]]}`, "latents: row 1, column 0: true is not a number"},
		{"alike.json", `{"latents": [[1], [2]], "factors": [[0], [9007199254740993]]}`, "factors: row 1, column 0: 9007199254740993 is too large"},
		{"discrete.json", `{"discrete": "yes", "latents": [[1], [2]], "factors": [[0], [1]]}`, `"discrete" cannot be a JSON string; use true or false`},
		{"namestext.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "factor_names": "hue"}`, `"factor_names" cannot be a JSON string; use a list of strings`},
		{"named.json", `{"latents": [[1], [2]], "factors": [["red"], ["blue"]]}`, `factors: row 0, column 0: "red" is not a number; encode each value as a number`},
		{"text.json", `{"latents": [[1], ["a"]], "factors": [[0], [1]]}`, `latents: row 1, column 0: "a" is not a number`},
		{"large.json", `{"discrete": false, "more": [[1], {"latents": "x"}], "latents": [[1, 2], [3, 4]], "factors": [[0], [1e999]]}`, "factors: row 1, column 0: 1e999 is not a number"},
		{"deep.json", `{"latents": [[1, [2]], [3, 4]], "factors": [[0], [1]]}`, "latents: row 0, column 1: "},
		{"flat.json", `{"latents": [1, 2], "factors": [[0], [1]]}`, "lists of rows"},
		{"list.json", `[[1, 2]]`, "the file is a JSON array"},
		{"two.json", `{"latents": [[1], [2]], "factors": [[0], [1]]} {}`, "more than one"},
		{"missing.json", `{"latents": [[1], [2]]}`, `"factors" is missing`},
		{"none.json", `{"latents": [], "factors": []}`, `"latents" is missing or empty`},
		{"narrow.json", `{"latents": [[], []], "factors": [[0], [1]]}`, "latents is empty"},
		{"ragged.json", `{"latents": [[1, 2], [2, 3], [4]], "factors": [[0], [1], [0]]}`, "latents: row 2 has 1 numbers, row 0 has 2"},
		{"ragged2.json", `{"latents": [[1], [2]], "factors": [[0, 1], [1]]}`, "factors: row 1 has 1"},
		{"lengths.json", `{"latents": [[1], [2], [3]], "factors": [[0], [1]]}`, "latents has 3 rows, but factors has 2"},
		{"names.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "factor_names": ["a", "b"]}`, "2 names for 1 factors"},
		{"huge.json", `{"discrete": true, "latents": [[1], [1e12]], "factors": [[0], [1]]}`, "latents: row 1, column 0 is 1e+12; codes are 0 to"},
		{"negative.json", `{"discrete": true, "latents": [[1], [-1]], "factors": [[0], [1]]}`, "row 1, column 0 is -1"},
		{"one.json", `{"latents": [[1]], "factors": [[0]]}`, "at least two"},
		{"udr.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": 3}}`, "udr holds models and kl"},
		{"udrtext.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": [[["a"]]]}}`, `"a" is not a number`},
		{"udrragged.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": [[[1], [1, 2]]]}}`, "udr: model 0: row 1 has 2 numbers"},
		{"udrempty.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": [[]]}}`, `"udr: model 0" is missing or empty`},
		{"udrkl.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": [[[1]], [[2]]], "kl": [[1]]}}`, "kl has 1 lists for 2 models"},
		{"udrnegative.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "udr": {"models": [[[1]], [[-2]]]}}`, "codes are 0 to"},
		{"curve.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "loss_capacity": [{"capacity": "x"}]}`, "loss_capacity holds curves of numbers"},
		{"selection.json", `{"latents": [[1], [2]], "factors": [[0], [1]], "selections": [{"latents": [0.5]}]}`, "selections holds lists of column numbers"},
		{"table.csv", `1,2`, "neither a .json nor a .npz"},
		{"empty.npz", ``, "the file is empty"},
		{"objects.npz", string(objects), `Python objects (dtype object, a pickle) are not read`},
		{"neither.npz", string(archive(t, good)), `no array "codes" or "latents"; available: ["factors"]`},
		{"both.npz", string(archive(t, ints("codes", 2, 1, 0, 1), ints("latents", 2, 1, 0, 1), good)), "both"},
		{"nofactors.npz", string(archive(t, ints("codes", 2, 1, 0, 1))), `no array "factors"`},
		{"lengths.npz", string(archive(t, ints("codes", 3, 1, 0, 1, 2), good)), "codes has 3 rows, but factors has 2"},
		{"nan.npz", string(archive(t, floats("latents", 2, 2, 0, 1, 2, math.NaN()), good)), "latents: row 1, column 1 is NaN"},
		{"nanfactor.npz", string(archive(t, ints("codes", 2, 1, 0, 1), floats("factors", 2, 1, math.NaN(), 1))), "factors: row 0, column 0 is NaN"},
		{"alike.npz", string(archive(t, ints("codes", 2, 1, 0, 1), npz.Data{Name: "factors", Shape: []int{2, 1}, Values: []int64{1 << 53, 1<<53 + 1}})),
			"factors: row 0, column 0 is about 9007199254740992, which is too large"},
		{"rows.npz", string(archive(t, ints("codes", 0, 3), good)), "codes is empty"},
		{"cube.npz", string(archive(t, npz.Data{Name: "codes", Shape: []int{2, 1, 1}, Values: []int32{1, 2}}, good)), "shape [2 1 1]"},
		{"text.npz", string(archive(t, npz.Data{Name: "codes", Shape: []int{2}, Values: []string{"a", "b"}}, good)), `array "codes"`},
		{"named.npz", string(archive(t, ints("codes", 2, 1, 0, 1), npz.Data{Name: "factors", Shape: []int{2}, Values: []string{"red", "blue"}})), `array "factors" holds text, not numbers; encode each value as a number`},
		{"cut.npz", string(archive(t, ints("codes", 2, 1, 0, 1), good)[:90]), "cut.npz"},
	} {
		_, err := Read(file(t, c.name, []byte(c.content)), Found)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Read("nowhere.json", Found); err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Errorf("missing file: %v", err)
	}
}

// holds fails if a table was returned that cannot be measured.
func holds(t *testing.T, r raw) {
	for _, as := range []As{Found, Codes, Numbers} {
		if _, err := r.extra.extra(as == Codes); err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
		if table, err := r.table(as); err == nil {
			if err := table.Check(); err != nil {
				t.Errorf("returned a table that cannot be measured: %v", err)
			}
		}
	}
}

// TestReadAll reads the optional content besides the table.
func TestReadAll(t *testing.T) {
	path := file(t, "case.json", []byte(`{"discrete": true, "latents": [[3], [0]], "factors": [[0], [2]], "udr": {"models": [[[1, 2], [3, 4]], [[5], [6]]], "kl": [[0.5, 0], [1]]},
		"loss_capacity": [{"capacity": [1, 2], "loss": [0.5, 0], "baseline": 0.75}], "selections": [{"latents": [0], "factors": []}]}`))
	_, got, err := ReadAll(path, Found)
	want := metric.Extra{Models: []metric.Model{{Codes: [][]int{{1, 3}, {2, 4}}, KL: []float64{0.5, 0}}, {Codes: [][]int{{5, 6}}, KL: []float64{1}}},
		Curves: []metric.Curve{{Capacity: []float64{1, 2}, Loss: []float64{0.5, 0}, Baseline: 0.75}}, Selections: []metric.Selection{{Latents: []int{0}, Factors: []int{}}}}
	if d := cmp.Diff(got, want); d != "" || err != nil {
		t.Error(d, err)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"discrete": true, "latents": [[3, 511], [0, 7]], "factors": [[0, 1], [2, 0]], "factor_names": ["hue", "shape"]}`))
	f.Add([]byte(`{"latents": [[3.5], [null]], "factors": [[0], [1e308]]}`))
	f.Add([]byte(`{"latents": [[]], "factors": [[]]}`))
	f.Add([]byte(`{"latents": [[1], [0]], "factors": [[0], [1]], "udr": {"models": [[[1], [2]], [[1], [0]]], "kl": [[1], [2]]}}`))
	f.Add([]byte(`{"latents": [[1]], "factors": [[0]], "loss_capacity": [{"capacity": [1, 2], "loss": [1, 0], "baseline": 0.5}], "selections": [{"latents": [0], "factors": [0]}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if r, err := parseJSON(bytes.NewReader(content)); err == nil {
			holds(t, r)
		}
	})
}

func FuzzNPZ(f *testing.F) {
	f.Add(archive(f, ints("codes", 2, 1, 0, 1), ints("factors", 2, 1, 0, 1)))
	f.Add(archive(f, floats("latents", 2, 1, 0, 1), npz.Data{Name: "factors", Shape: []int{2}, Values: []int64{1, 1 << 60}},
		npz.Data{Name: "factor_names", Shape: []int{1}, Values: []string{"x"}}))
	path := filepath.Join(f.TempDir(), "fuzz.npz")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readNPZ(path)
		switch {
		case err == nil:
			holds(t, r)
		case !strings.Contains(err.Error(), "fuzz.npz"):
			t.Errorf("%v does not name the file", err)
		}
	})
}

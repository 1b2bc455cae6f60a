package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// called runs the program in this process and returns its exit code and output.
func called(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	return calledIn(t, environment{}, args...)
}

// calledIn is called with the functions that main provides.
func calledIn(t *testing.T, env environment, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	env.out, env.err = &o, &e
	code = dispatch(t.Context(), env, args)
	return code, o.String(), e.String()
}

func tableFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// perfect is a table with two slots that encode the two factors of a full grid, and one constant slot.
const perfect = `{"discrete": true, "factor_names": ["hue", "shape", "constant"],
 "latents": [[4,9,0],[4,8,0],[4,7,0],[5,9,0],[5,8,0],[5,7,0],[4,9,0],[4,8,0],[4,7,0],[5,9,0],[5,8,0],[5,7,0]],
 "factors": [[0,0,1],[0,1,1],[0,2,1],[1,0,1],[1,1,1],[1,2,1],[0,0,1],[0,1,1],[0,2,1],[1,0,1],[1,1,1],[1,2,1]]}`

func TestMetricsAsJSON(t *testing.T) {
	code, out, stderr := called(t, "metrics", tableFile(t, perfect), "--json")
	if code != done {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct {
		InfoM, InfoE, InfoC *float64
		NMI                 [][]*float64
		Active              []bool `json:"active_latents"`
		Kept                []int  `json:"kept_factors"`
		Codes               []int
		HeldOut             *float64 `json:"infoe_heldout"`
		Shuffled            *float64 `json:"infoe_shuffled"`
		DCI                 struct {
			OneHot  map[string]any `json:"rf_onehot"`
			SlotSum map[string]any `json:"rf_onehot_slotsum"`
			Slots   map[string]any `json:"rf_slots"`
		}
		Field struct {
			Scores map[string]*float64
			Kept   []int `json:"kept_factors"`
			MI     [][]float64
			Chance map[string]struct{ Mean *float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.InfoM == nil || *got.InfoM != 1 || got.InfoC == nil || *got.InfoC != 1 || got.InfoE == nil || *got.InfoE < 0.99 {
		t.Errorf("scores of perfect codes: %s", out)
	}
	if len(got.Active) != 3 || got.Active[2] || len(got.Kept) != 2 || len(got.Codes) != 3 || got.Codes[1] != 3 {
		t.Errorf("active %v, kept %v, codes %v", got.Active, got.Kept, got.Codes)
	}
	if len(got.NMI) != 3 || got.NMI[2][0] != nil || got.NMI[0][0] == nil || *got.NMI[0][0] != 1 {
		t.Errorf("NMI %v", got.NMI)
	}
	for _, view := range []map[string]any{got.DCI.OneHot, got.DCI.SlotSum, got.DCI.Slots} {
		for _, letter := range []string{"D", "I", "C"} {
			if v, ok := view[letter].(float64); !ok || v < 0 || v > 1 {
				t.Errorf("%s is %v", letter, view[letter])
			}
		}
	}
	if mig := got.Field.Scores["mig"]; mig == nil || *mig != 1 || len(got.Field.MI) != 2 || len(got.Field.Kept) != 2 || got.Field.Chance["mig"].Mean == nil {
		t.Errorf("the field's scores of perfect codes: %s", out)
	}
	if got.HeldOut == nil || got.Shuffled == nil {
		t.Error("held-out or shuffled InfoE is missing")
	}
}

// TestMetricsUndefined checks that InfoM and D are undefined for a single factor, and one-hot forests for numbers.
func TestMetricsUndefined(t *testing.T) {
	path := tableFile(t, `{"latents": [[0.5,1],[1.5,2],[0.25,1],[1.25,2.5]], "factors": [[0],[1],[0],[1]]}`)
	code, out, stderr := called(t, "metrics", path, "--json", "--trees", "3")
	if code != done {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	dci := got["dci"].(map[string]any)
	slots, hot := dci["rf_slots"].(map[string]any), dci["rf_onehot"].(map[string]any)
	for what, v := range map[string]any{"InfoM": got["infom"], "D": slots["D"], "one-hot D": hot["D"], "one-hot C": hot["C"]} {
		if v != nil {
			t.Errorf("%s is %v, want null", what, v)
		}
	}
	for what, v := range map[string]any{"InfoE": got["infoe"], "InfoC": got["infoc"], "I": slots["I"], "C": slots["C"]} {
		if _, ok := v.(float64); !ok {
			t.Errorf("%s is %v, want a number", what, v)
		}
	}
	if got["discrete"] != false {
		t.Errorf("fractions were treated as codes")
	}
}

func TestMetricsAsTable(t *testing.T) {
	code, out, stderr := called(t, "metrics", tableFile(t, perfect), "--trees", "5")
	if code != done {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"12 rows, 3 latents (codes), 3 factors", "constant has a single value", "InfoM  1.0000", "InfoC  1.0000",
		"one-hot codes, as in the paper", "hue", "codes in use", "MIG  1.0000", "95% interval", "the table has 12 rows"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if !strings.Contains(stderr, "measuring  100%") {
		t.Errorf("progress on standard error is %q", stderr)
	}
}

func TestMetricsRefuses(t *testing.T) {
	bad := tableFile(t, `{"latents": [[1],[2,3]], "factors": [[0],[1]]}`)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"metrics"}, usage, "slotscope metrics <file> [<factors-file>]"},
		{[]string{"metrics", "a.csv", "b.csv", "c.csv"}, usage, `unexpected argument "c.csv"`},
		{[]string{"metrics", "a.json", "b.json"}, usage, "a .json file holds latents and factors; give only one"},
		{[]string{"metrics", "a.pkl"}, usage, "a.pkl: unsupported format; supported: .json, .npz"},
		{[]string{"metrics", "nowhere.npz"}, failed, "nowhere.npz"},
		{[]string{"metrics", bad}, failed, "row 1 has 2 numbers, row 0 has 1"},
		{[]string{"metrics", bad, "--codes", "--numbers"}, usage, "cannot be combined"},
		{[]string{"metrics", bad, "--trees", "0"}, usage, "--trees is 0"},
	} {
		code, out, stderr := called(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("%v: exit code %d, %q, %q", c.args, code, out, stderr)
		}
	}
}

// TestMetricsRefusedInPart checks that a factor with too many values leaves InfoMEC undefined but not the other scores.
func TestMetricsRefusedInPart(t *testing.T) {
	rows := make([]string, 3000)
	factors := make([]string, len(rows))
	for r := range rows {
		rows[r], factors[r] = fmt.Sprintf("[%d,%d]", r, r%7), fmt.Sprintf("[%d]", r)
	}
	path := tableFile(t, fmt.Sprintf(`{"discrete": true, "latents": [%s], "factors": [%s]}`, strings.Join(rows, ","), strings.Join(factors, ",")))
	code, out, stderr := called(t, "metrics", path, "--json", "--trees", "2")
	var got struct {
		InfoM *float64
		Field struct {
			Scores   map[string]*float64
			Problems map[string]string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != done {
		t.Fatalf("exit code %d: %v, %s", code, err, stderr)
	}
	if got.InfoM != nil || got.Field.Scores["mig"] == nil || !strings.Contains(got.Field.Problems["infomec"], "weights (limit") {
		t.Errorf("InfoM %v, MIG %v, problems %v", got.InfoM, got.Field.Scores["mig"], got.Field.Problems)
	}
}

// TestMetricsDegenerate checks that each reason for a missing score is printed once, and that the other scores are measured.
func TestMetricsDegenerate(t *testing.T) {
	table := func(n int, latent, factor func(r int) int) string {
		latents, factors := make([]string, n), make([]string, n)
		for r := range n {
			latents[r], factors[r] = fmt.Sprintf("[%d,%d]", latent(r), latent(r)), fmt.Sprintf("[%d]", factor(r))
		}
		return tableFile(t, fmt.Sprintf(`{"latents": [%s], "factors": [%s]}`, strings.Join(latents, ","), strings.Join(factors, ",")))
	}
	constant, varied := func(int) int { return 2 }, func(r int) int { return r % 3 }
	for what, c := range map[string]struct {
		path string
		want string
	}{
		"constant latents": {table(30, constant, varied), "DCIMIG  0.0000"},
		"constant factors": {table(30, varied, constant), "Every factor has a single value among these rows"},
		"10 rows":          {table(10, varied, varied), "the table has 10 rows"},
		"2 rows":           {table(2, varied, varied), "Prediction needs at least 3 rows"},
	} {
		code, out, stderr := called(t, "metrics", c.path, "--trees", "2")
		if code != done || strings.Count(out, c.want) != 1 || !strings.Contains(out, "Redundancy of pairs") {
			t.Errorf("%s: exit code %d, %q occurs %d times\n%s%s", what, code, c.want, strings.Count(out, c.want), out, stderr)
		}
	}
}

func TestMetricsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr bytes.Buffer
	if code := dispatch(ctx, environment{out: &out, err: &stderr}, []string{"metrics", tableFile(t, perfect)}); code != interrupted || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, out.String(), stderr.String())
	}
}

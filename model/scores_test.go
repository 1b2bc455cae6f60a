package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestScoreIsNumberOrNull(t *testing.T) {
	for _, c := range []struct {
		score Score
		want  string
	}{
		{0.25, "0.25"}, {0, "0"}, {-0.5, "-0.5"}, {1e-12, "1e-12"},
		{Undefined(), "null"}, {Score(math.Inf(1)), "null"}, {Score(math.Inf(-1)), "null"},
	} {
		got, err := json.Marshal(c.score)
		if err != nil || string(got) != c.want {
			t.Errorf("%v is written as %s (%v), want %s", float64(c.score), got, err, c.want)
		}
		var back Score
		if err := json.Unmarshal(got, &back); err != nil || back.Defined() != (c.want != "null") || back.Defined() && back != c.score {
			t.Errorf("%s is read as %v (%v)", got, float64(back), err)
		}
	}
	var s Score
	if err := json.Unmarshal([]byte(`"NaN"`), &s); err == nil {
		t.Error("a string was read as a score")
	}
}

// TestScoresOfFinishedRun reads the scores written when training ends: missing metrics are nil, not 0.
func TestScoresOfFinishedRun(t *testing.T) {
	var s Scores
	if err := json.Unmarshal([]byte(`{"step":200,"images":100,"psnr":21.5}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.Step != 200 || s.Images != 100 || s.PSNR != 21.5 || s.Version != 0 || s.Metrics != nil || s.Usage != nil || s.Noise != nil || s.Swap != nil {
		t.Errorf("read %+v", s)
	}
}

// TestScoresOfNewerVersion: scores of a newer program version are an error, not an evaluation without results.
func TestScoresOfNewerVersion(t *testing.T) {
	for text, want := range map[string]string{
		`{"version": 99}`: "version 99 is newer than this program's (1); update Slotscope to read it",
		`{"version": -1}`: "version: -1 is not a whole number ≥ 0", `{"version": "1"}`: `version: "1" is not a whole number ≥ 0`,
		`{"version": 1, "step": 5}`: "", `{"version": 0, "step": 5}`: "",
	} {
		var s Scores
		err := ReadJSON(strings.NewReader(text), &s)
		if want == "" && (err != nil || s.Step != 5) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

func TestScoresKeepUndefined(t *testing.T) {
	in := Scores{Version: ScoresVersion, PSNR: 20, Metrics: &Metrics{InfoM: Undefined(), InfoE: 0.5, NMI: [][]Score{{Undefined()}, {0}}}}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Scores
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	m := out.Metrics
	if m.InfoM.Defined() || m.InfoE != 0.5 || m.NMI[0][0].Defined() || m.NMI[1][0] != 0 {
		t.Errorf("%s was read as %+v", raw, m)
	}
}

package model

import (
	"encoding/json"
	"math"
	"testing"
)

func TestSampleTravelsAsPair(t *testing.T) {
	for _, c := range []struct {
		sample Sample
		want   string
	}{
		{Sample{1, 0.5}, "[1,0.5]"},
		{Sample{125000, -3e-9}, "[125000,-3e-09]"},
		{Sample{7, math.NaN()}, `[7,"NaN"]`},
		{Sample{8, math.Inf(1)}, `[8,"+Inf"]`},
		{Sample{9, math.Inf(-1)}, `[9,"-Inf"]`},
	} {
		b, err := json.Marshal(c.sample)
		if err != nil || string(b) != c.want {
			t.Fatalf("%v: %s, %v; want %s", c.sample, b, err, c.want)
		}
		var back Sample
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		same := back.Value == c.sample.Value || math.IsNaN(back.Value) && math.IsNaN(c.sample.Value)
		if back.Step != c.sample.Step || !same {
			t.Errorf("%s came back as %v", b, back)
		}
	}
	for _, bad := range []string{`[1]`, `{}`, `["x",1]`, `[1,"much"]`, `[1,2,3]`} {
		if err := json.Unmarshal([]byte(bad), new(Sample)); err == nil {
			t.Errorf("%s was read as a sample", bad)
		}
	}
}

package model

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseConditions(t *testing.T) {
	for text, want := range map[string]string{
		"infom<0.3@5000":                  "infom/eval<0.3@5000",
		" Loss > 1e3 , psnr<=20 @ 1_000 ": "total>1000,psnr/eval<=20@1000",
		"collapsing,diverging,collapsing": "collapsing,diverging",
		"latent/norm2>=-4":                "latent/norm2>=-4",
		"":                                "", " , ": "",
	} {
		all, err := ParseConditions(text)
		var written []string
		for _, c := range all {
			written = append(written, c.String())
		}
		if got := strings.Join(written, ","); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestParseConditionFaults checks that each error names the problem, its place and what to write instead.
func TestParseConditionFaults(t *testing.T) {
	for text, says := range map[string]string{
		"infom":                              `"infom" is not a condition`,
		"infom<":                             `the limit "" is not a number`,
		"infom<low":                          `the limit "low" is not a number`,
		"infom<NaN":                          `the limit "NaN" is not a number`,
		"infom<inf":                          `the limit "inf" is not a number`,
		"<0.3":                               `"" is not the name of a series`,
		"a b<0.3":                            `"a b" is not the name of a series`,
		"infom<0.3@":                         `"" after @ is not a step`,
		"infom<0.3@-5":                       `"-5" after @ is not a step`,
		"infom<0.3@1.5":                      `"1.5" after @ is not a step`,
		"infom<0.3@99999999999999999999":     "after @ is not a step",
		"infom=<0.3":                         `"infom=" is not the name of a series`,
		"infom<<0.3":                         `the limit "<0.3" is not a number`,
		strings.Repeat("x", 200) + "<1":      "more than the 120 allowed",
		"a<1,b<":                             `"b<": the limit`,
		strings.Repeat("a<1,b<1,", 1) + "c?": `"c?" is not a condition`,
	} {
		if _, err := ParseConditions(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", text, err, says)
		}
	}
	var many []string
	for i := range 21 {
		many = append(many, "a<"+string(rune('0'+i/10))+string(rune('0'+i%10)))
	}
	if _, err := ParseConditions(strings.Join(many, ",")); err == nil || !strings.Contains(err.Error(), "21 conditions") {
		t.Errorf("21 conditions: %v", err)
	}
}

// TestConditionPasses compares Passes with Go's operators, and String with ParseCondition.
func TestConditionPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, v := rapid.Float64Range(-1e9, 1e9).Draw(t, "limit"), rapid.Float64().Draw(t, "value")
		from, step := rapid.IntRange(0, 50).Draw(t, "from"), rapid.IntRange(1, 100).Draw(t, "step")
		for op, holds := range map[string]bool{"<": v < limit, "<=": v <= limit, ">": v > limit, ">=": v >= limit} {
			c := Condition{Series: "a/b", Op: op, Limit: limit, From: from}
			if got := c.Passes(Sample{Step: step, Value: v}); got != (holds && step >= from) {
				t.Fatalf("%s of %g at step %d: %v", c, v, step, got)
			}
			if again, err := ParseCondition(c.String()); again != c || err != nil {
				t.Fatalf("%s is read as %s: %v", c, again, err)
			}
		}
	})
	if (Condition{Series: "a", Op: "<", Limit: 1}).Passes(Sample{Step: 5, Value: math.NaN()}) {
		t.Error("NaN passes a limit")
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, text := range []string{"infom<0.3@5000", "loss>=1e3", "collapsing", "a<<", "@", "<@"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q: no sentence", text)
			}
			return
		}
		if again, err := ParseCondition(c.String()); err != nil || again != c {
			t.Fatalf("%q is written %q and read as %v: %v", text, c, again, err)
		}
	})
}

package query

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slotscope/model"
)

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// runs returns three runs that differ in everything that the tests query.
func runs(t testing.TB) []model.Overview {
	t.Helper()
	make := func(id, name, kind string, state model.State, lr float64, created time.Time) model.Overview {
		cfg, err := model.Default(kind, "tiny", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		cfg.LR = lr
		r := model.Overview{Run: model.Run{ID: id, Name: name, Config: cfg, Created: created}, Values: model.Values{}, Scores: model.Values{}}
		r.State, r.Step, r.Started = state, 1000, created
		return r
	}
	a := make("a", "Night run", "hrr", model.Finished, 1e-4, now.Add(-time.Hour))
	a.Tags, a.Scores["infom"], a.Scores["psnr"], a.Scores["d"], a.Values["psnr/eval"], a.Star = "night paper", 0.81, 30, 0.7, 29.5, true
	b := make("b", "Other", "betavae", model.Failed, 1e-3, now.Add(-50*time.Hour))
	b.Values["total"], b.Reason = math.NaN(), "The loss is not finite."
	c := make("c", "A \"quoted\" (name)", "vqvae", model.Running, 5e-3, now.Add(-100*24*time.Hour))
	c.Scores["infom"], c.Archived, c.Values["total"] = 0.4, true, 0.5
	return []model.Overview{a, b, c}
}

func ids(runs []model.Overview) string {
	var out []string
	for _, r := range runs {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func TestQueriesChoose(t *testing.T) {
	all := runs(t)
	c := Of(all)
	for text, want := range map[string]string{
		"":                                  "a b",
		"archived":                          "c",
		"archived=yes,no":                   "a b c",
		"-archived":                         "a b",
		"model=hrr":                         "a",
		"MODEL=HRR":                         "a",
		"model=hrr,betavae":                 "a b",
		"model!=hrr":                        "b",
		"lr<1e-3":                           "a",
		"lr<=1e-3":                          "a b",
		"lr > 0.0005":                       "b",
		"lr=1e-4..1e-3":                     "a b",
		"infom>0.7":                         "a",
		"-infom>0.7":                        "b", // a run without a score is not above 0.7
		"infom<0.7 archived=yes":            "c",
		"infom=none":                        "b",
		"-infom=none":                       "a",
		"dci_d>0.5":                         "a",
		"d=128":                             "a",
		"beta_kl=none":                      "a", // HRR does not have this hyperparameter
		"psnr/eval>29":                      "a",
		"total=nan":                         "b",
		"-failed":                           "a",
		"failed":                            "b",
		"not failed":                        "a",
		"failed or night":                   "a b",
		"(failed or night) model=hrr":       "a",
		"-(failed or night)":                "",
		"tag:night":                         "a",
		"tag=nigh":                          "",
		"tag=none":                          "b",
		"night":                             "a",
		"star":                              "a",
		"starred":                           "",
		"name:RUN":                          "a",
		`name="Night run"`:                  "a",
		`"\"quoted\" (" archived=yes`:       "c",
		"live archived":                     "c",
		"scored":                            "a",
		"step=1k":                           "a b",
		"age<2h":                            "a",
		"age>2d":                            "b",
		"created=2026-03-10":                "a",
		"created=2026-03-08..2026-03-10":    "a b",
		"created>=2026-03-10":               "a",
		"created<2026-03-10T11:00":          "b",
		"no_denoiser=no":                    "a",
		"reason:finite":                     "b",
		"model:vae":                         "b",
		"id=c":                              "c", // archived, but included because the query uses id
		"progress>0%":                       "a b",
		"preset=tiny\u00a0model=hrr":        "a",
		"night failed":                      "",
		"shapes3d":                          "a b",
		"β-VAE":                             "b",
		"evaluation=none":                   "a b",
		"lr_schedule=wsd lr_schedule=wsd":   ids(New().must("lr_schedule").with(all[:2], "wsd")),
		"model=hrr or model=vqvae archived": "a c",
	} {
		q, err := c.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := ids(q.Choose(all, now)); got != want {
			t.Errorf("%s chooses %q, want %q", text, got, want)
		}
	}
}

// with returns the runs that have a value of a text field.
func (f Field) with(runs []model.Overview, text string) (out []model.Overview) {
	for _, r := range runs {
		if f.Shown(&r, now) == text {
			out = append(out, r)
		}
	}
	return out
}

func TestFaultsAreSentencesThatPointAtThePlace(t *testing.T) {
	c := Of(runs(t))
	for text, want := range map[string]struct {
		at  int
		say string
	}{
		"model=hrr lrr<1":             {10, `"lrr": unknown hyperparameter, score or series; did you mean lr?; to search for this text, put it in quotes`},
		"qqqqqq=1":                    {0, `"qqqqqq": unknown hyperparameter, score or series; to search for this text, put it in quotes`},
		"lr<abc":                      {0, `"lr<abc": "abc" is not a number; write one as in lr<1e-3 or lr=10k`},
		"lr<":                         {0, `"lr<": a value must follow, as in model=hrr or lr<1e-3`},
		"<3":                          {0, `"<": a name must come before it, as in lr<1e-3`},
		"model=hr":                    {0, `"model=hr": model cannot be "hr"; use one of ` + strings.Join(model.ModelNames(), ", ")},
		"model<hrr":                   {0, `"model<hrr": model is not a number, so it has no order; use =, != or :`},
		"lr<1,2":                      {0, `"lr<1,2": < takes one value; for several use = with commas, or a range as in lr=1..5`},
		"lr<1..2":                     {0, `"lr<1..2": a range needs =, as in lr=1..2`},
		"lr=2..1":                     {0, `"lr=2..1": the range goes from 2 down to 1; write the smaller end first`},
		"lr<none":                     {0, `"lr<none": none is not a number; use lr=none for runs without a value`},
		"lr!1":                        {0, `"lr!": ! is not a comparison; use !=, or - before a condition to exclude it`},
		"(failed":                     {0, `"(": this bracket is not closed; add )`},
		"failed)":                     {6, `")": unmatched closing bracket; remove it, or open one before it`},
		"failed ()":                   {7, `"()": these brackets are empty; write a condition inside, or remove them`},
		"failed or":                   {9, `or needs a condition on both sides; add one, or remove it`},
		"-":                           {0, `"-": a condition to exclude must follow, as in -failed`},
		`name="x`:                     {5, `"\"x": the quotes are not closed; add " at the end`},
		`name=""`:                     {5, `"\"\"": the quotes are empty; write a text, or =none for runs without a value`},
		"created>yesterday":           {0, `"created>yesterday": "yesterday" is not a time; write one as 2026-03-01 or 2026-03-01T18:30 (UTC), or use age, as in age<2d`},
		"age<2":                       {-1, ""},
		"age<2q":                      {0, `"age<2q": "2q" is not a duration; write one as 90s, 15min, 2h or 3d`},
		"star=maybe":                  {0, `"star=maybe": "maybe" is neither yes nor no`},
		"tag:a\\b":                    {0, `"tag:a\\b": "a\\b" is not a tag; use 1–40 letters, digits and - _ . : / +`},
		strings.Repeat("(", 60) + "a": {41, `"(": more than 40 nested brackets and signs; use fewer`},
		strings.Repeat("a ", Longest): {0, "the query has 4000 bytes, more than the 2000 allowed; shorten it"},
		"a\xff":                       {0, "the query is not valid UTF-8 text; type it again"},
		"a,b":                         {1, `",": a name must come before it, as in model=hrr`},
		"infom>0x10":                  {0, `"infom>0x10": "0x10" is not a number; write one as in infom<1e-3 or infom=10k`},
		"infom>1_0":                   {0, `"infom>1_0": "1_0" is not a number; write one as in infom<1e-3 or infom=10k`},
	} {
		_, err := c.Parse(text)
		var fault Fault
		if want.at < 0 {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if !errors.As(err, &fault) || fault.At != want.at || fault.Error() != want.say {
			t.Errorf("%.60s: at %d %v\nwant at %d %s", text, fault.At, err, want.at, want.say)
		}
	}
}

func TestOrderPutsMissingValuesLast(t *testing.T) {
	all := runs(t)
	c := Of(all)
	for field, want := range map[string][2]string{
		"infom":   {"c a b", "a c b"},
		"total":   {"c a b", "c a b"}, // NaN sorts like a missing value
		"name":    {"c a b", "b a c"},
		"state":   {"c b a", "a b c"},
		"tag":     {"a b c", "a b c"},
		"created": {"c b a", "a b c"},
	} {
		f := c.must(field)
		for i, down := range []bool{false, true} {
			got := slices.Clone(all)
			slices.SortStableFunc(got, func(x, y model.Overview) int { return f.Compare(&x, &y, now, down) })
			if ids(got) != want[i] {
				t.Errorf("by %s, down %v: %s, want %s", field, down, ids(got), want[i])
			}
		}
	}
}

// drawn returns a random query as text.
func drawn(t *rapid.T, deep int) string {
	simple := []string{"model=hrr", "lr<1e-3", "infom>0.7", "failed", "tag:night", "night", `"a b"`, "total=nan", "step=10..2k", "infom=none", "created>2026-03-01", "model!=hrr,vqvae", "star", "name:x"}
	if deep == 0 {
		return rapid.SampledFrom(simple).Draw(t, "simple")
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return "-" + "(" + drawn(t, deep-1) + ")"
	case 1:
		return drawn(t, deep-1) + " " + drawn(t, deep-1)
	case 2:
		return "(" + drawn(t, deep-1) + " or " + drawn(t, deep-1) + ")"
	case 3:
		return "not " + drawn(t, 0)
	}
	return drawn(t, 0)
}

// TestLogic: for any queries, a space means and, "or" means or, "-" means not, and String returns an equivalent query.
func TestLogic(t *testing.T) {
	all := runs(t)
	c := Of(all)
	parse := func(t *rapid.T, text string) Query {
		q, err := c.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return q
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawn(t, 3), drawn(t, 3)
		a, b := parse(t, x), parse(t, y)
		both, either, none := parse(t, "("+x+") ("+y+")"), parse(t, "("+x+") or ("+y+")"), parse(t, "-("+x+")")
		again := parse(t, a.String())
		if again.String() != a.String() {
			t.Fatalf("String of %s is %s, whose String is %s", x, a, again)
		}
		for i := range all {
			r := &all[i]
			p, q := a.Match(r, now), b.Match(r, now)
			if both.Match(r, now) != (p && q) || either.Match(r, now) != (p || q) || none.Match(r, now) != !p || again.Match(r, now) != p {
				t.Fatalf("run %s: %q %v, %q %v", r.ID, x, p, y, q)
			}
		}
	})
}

// TestNumbersCompareAsNumbers compares queries with Go's comparison operators.
func TestNumbersCompareAsNumbers(t *testing.T) {
	c := New()
	rapid.Check(t, func(t *rapid.T) {
		r := model.Overview{Scores: model.Values{"infom": rapid.Float64().Draw(t, "have")}}
		v := rapid.Float64().Draw(t, "asked")
		have := r.Scores["infom"]
		for op, want := range map[string]bool{"<": have < v, "<=": have <= v, ">": have > v, ">=": have >= v, "=": have == v, "!=": have != v} {
			text := "infom" + op + New().must("lr").Format(v)
			q, err := c.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if q.Match(&r, now) != want {
				t.Fatalf("%v: %s is %v", have, text, !want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"model=hrr lr<1e-3 infom>0.7 -failed tag:night", `name="a \" b",c or (x y)`, "not -(a)", "lr=1e-4..1e-3", "a=", "((((", "created=2026-03-01", `"\`, "a\u00a0b", "-\u2003x"} {
		f.Add(text)
	}
	all := runs(f)
	c := Of(all)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := c.Parse(text)
		if err != nil {
			var fault Fault
			if !errors.As(err, &fault) || fault.Why == "" || fault.At < 0 || fault.At > len(text) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		again, err := c.Parse(q.String())
		if err != nil {
			if len(q.String()) > Longest {
				return // added brackets exceed the limit
			}
			t.Fatalf("String of %q is %q: %v", text, q, err)
		}
		if again.String() != q.String() {
			t.Fatalf("String of %q is %q, then %q", text, q, again)
		}
		for i := range all {
			if q.Match(&all[i], now) != again.Match(&all[i], now) {
				t.Fatalf("%q and %q differ on run %s", text, q, all[i].ID)
			}
		}
	})
}

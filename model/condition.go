package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Condition is something that may come to hold of a run while it trains: alerts tell of it, early stopping ends the run on it. It is
// a verdict, or a limit that the newest value of a series passes.
type Condition struct {
	Verdict string  // Diverging or Collapsing; empty for a limit
	Series  string  // "infom/eval"
	Op      string  // one of <= >= < >
	Limit   float64 // that the value is compared with
	From    int     // step before which the limit is not looked at
}

// Verdicts that conditions can name.
const (
	Diverging  = "diverging"
	Collapsing = "collapsing"
)

const (
	mostConditions   = 20
	longestCondition = 120 // bytes
)

// shortSeries are the short names of series in conditions.
var shortSeries = map[string]string{"loss": "total", "psnr": "psnr/eval", "infom": "infom/eval", "infoe": "infoe/eval", "infoc": "infoc/eval",
	"perplexity": "perplexity/window", "used": "perplexity/used", "owned": "owned/factors", "rate": "images_per_second"}

// Best names a run's best checkpoint in the place of a step, as in ID@best.
const Best = "best"

// bestSeries are the measurements by which a best checkpoint can be chosen; more is better for each.
var bestSeries = []string{"psnr", "infom", "infoe", "infoc", "owned"}

func bestChoices() []string { return append([]string{noCondition}, bestSeries...) }

// BestSeries is the series by which the best checkpoint is chosen; empty for none.
func (c Config) BestSeries() string { return shortSeries[c.BestBy] }

// conditionForm is what a faulty condition is answered with.
const conditionForm = "write diverging, collapsing, or a limit such as infom<0.3@5000"

// ParseConditions reads conditions, commas between them; nil for none.
func ParseConditions(text string) (all []Condition, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		c, err := ParseCondition(part)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) > mostConditions {
		return nil, fmt.Errorf("%d conditions are more than the %d allowed; remove some", len(all), mostConditions)
	}
	return all, nil
}

// ParseCondition reads one; the error is a sentence for the one who typed it.
func ParseCondition(text string) (c Condition, err error) {
	if len(text) > longestCondition {
		return c, fmt.Errorf("%.20q… has %d bytes, more than the %d allowed", text, len(text), longestCondition)
	}
	if text == Diverging || text == Collapsing {
		return Condition{Verdict: text}, nil
	}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return c, fmt.Errorf("%q is no condition; %s", text, conditionForm)
	}
	c.Series, c.Op = strings.TrimSpace(text[:at]), text[at:at+1]
	if strings.HasPrefix(text[at+1:], "=") {
		c.Op += "="
	}
	if full := shortSeries[strings.ToLower(c.Series)]; full != "" {
		c.Series = full
	}
	if c.Series == "" || strings.ContainsFunc(c.Series, notInSeries) {
		return c, fmt.Errorf("%q: %q is not the name of a series; %s", text, c.Series, conditionForm)
	}
	limit, from, stepped := strings.Cut(text[at+len(c.Op):], "@")
	limit = strings.TrimSpace(limit)
	if c.Limit, err = strconv.ParseFloat(limit, 64); err != nil || math.IsNaN(c.Limit) || math.IsInf(c.Limit, 0) {
		return c, fmt.Errorf("%q: the limit %q is not a number; %s", text, limit, conditionForm)
	}
	if !stepped {
		return c, nil
	}
	from = strings.TrimSpace(from)
	if c.From, err = strconv.Atoi(strings.ReplaceAll(from, "_", "")); err != nil || c.From < 1 {
		return c, fmt.Errorf("%q: %q after @ is not a step, a whole number from 1 on; %s", text, from, conditionForm)
	}
	return c, nil
}

func notInSeries(r rune) bool {
	return r <= ' ' || r == 0x7f || r == 0xa0 || strings.ContainsRune(`<>=@,"'!`, r)
}

// String writes the condition as it can be typed.
func (c Condition) String() string {
	if c.Verdict != "" {
		return c.Verdict
	}
	text := c.Series + c.Op + strconv.FormatFloat(c.Limit, 'g', -1, 64)
	if c.From > 0 {
		text += "@" + strconv.Itoa(c.From)
	}
	return text
}

// Passes says whether a value that was measured at a step passes the limit; NaN passes none.
func (c Condition) Passes(s Sample) bool {
	if s.Step < c.From || s.Step == 0 {
		return false
	}
	switch c.Op {
	case "<":
		return s.Value < c.Limit
	case "<=":
		return s.Value <= c.Limit
	case ">":
		return s.Value > c.Limit
	case ">=":
		return s.Value >= c.Limit
	}
	return false
}

package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Condition is a condition on a training run that raises an alert or ends the run early: a verdict, or a limit on the newest value of
// a series.
type Condition struct {
	Verdict string  // Diverging or Collapsing; empty for a limit
	Series  string  // "infom/eval"
	Op      string  // one of <= >= < >
	Limit   float64 // value to compare with
	From    int     // first step at which the limit is checked
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

// shortSeries maps short names of series in conditions to full names.
var shortSeries = map[string]string{"loss": "total", "psnr": "psnr/eval", "infom": "infom/eval", "infoe": "infoe/eval", "infoc": "infoc/eval",
	"perplexity": "perplexity/window", "used": "perplexity/used", "owned": "owned/factors", "rate": "images_per_second"}

// Best stands for a run's best checkpoint in place of a step, as in ID@best.
const Best = "best"

// bestSeries lists the measurements that can select the best checkpoint; for each, higher is better.
var bestSeries = []string{"psnr", "infom", "infoe", "infoc", "owned"}

func bestChoices() []string { return append([]string{noCondition}, bestSeries...) }

// BestSeries returns the series that selects the best checkpoint; empty if none.
func (c Config) BestSeries() string { return shortSeries[c.BestBy] }

// conditionForm is the advice in errors on invalid conditions.
const conditionForm = "write diverging, collapsing, or a limit such as infom<0.3@5000"

// ParseConditions parses comma-separated conditions; it returns nil if none.
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
		return nil, fmt.Errorf("%d conditions is more than the %d allowed; remove some", len(all), mostConditions)
	}
	return all, nil
}

// ParseCondition parses one condition; its error is shown to the user.
func ParseCondition(text string) (c Condition, err error) {
	if len(text) > longestCondition {
		return c, fmt.Errorf("%.20q… has %d bytes, more than the %d allowed", text, len(text), longestCondition)
	}
	if text == Diverging || text == Collapsing {
		return Condition{Verdict: text}, nil
	}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return c, fmt.Errorf("%q is not a condition; %s", text, conditionForm)
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
		return c, fmt.Errorf("%q: %q after @ is not a step; use a whole number of at least 1; %s", text, from, conditionForm)
	}
	return c, nil
}

func notInSeries(r rune) bool {
	return r <= ' ' || r == 0x7f || r == 0xa0 || strings.ContainsRune(`<>=@,"'!`, r)
}

// String returns the condition in the form that ParseCondition reads.
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

// Passes reports whether a sample passes the limit; NaN never does, nor does a sample at step 0 or before From.
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

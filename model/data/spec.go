package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"slotscope/model"
)

// A dataset's name may be followed by a selection in brackets: shapes3d[shape=cube,sphere; every=10]. An image is kept if every clause
// holds:
//
//	factor=value,value    the factor has one of the values, given by name, #class or #first..last
//	factor!=value,value   it has none of them
//	every=n               its index is a multiple of n; every=n+k: its index minus k is
//	share=p@seed          it is in the seeded random share p, 0 < p < 1; the default seed is 0
//	not(clause; …)        not all of these clauses hold
//	corr(f,g;s)@seed      it is kept with a probability that correlates the factors f and g; see correlated
//	split=kind            it belongs to the training part of a split for generalisation; see split
//
// For example, d[not(shape=cube; floor_hue=0.0)] holds a combination of values out of training, and d[shape=cube; floor_hue=0.0] is the
// held-out part.

// selector reports whether an image of the bound dataset is kept, given its index and classes.
type selector func(index int, classes []int) bool

// clause is one condition of a selection.
type clause interface {
	fmt.Stringer
	bind(info Info) (selector, error)
}

// splitSpec splits a name into dataset and selection, which is empty if the name has none.
func splitSpec(name string) (base, selection string, err error) {
	base, rest, found := strings.Cut(strings.TrimSpace(name), "[")
	if !found {
		return base, "", nil
	}
	selection, closed := strings.CutSuffix(rest, "]")
	if !closed || strings.TrimSpace(selection) == "" {
		return "", "", specError("%q does not end with a selection in brackets; write it as in shapes3d[shape=cube]", name)
	}
	return strings.TrimSpace(base), selection, nil
}

func specError(format string, args ...any) error {
	return model.Invalid{"dataset": fmt.Sprintf(format, args...)}
}

// conjunction holds if all of its clauses hold.
type conjunction []clause

func (c conjunction) String() string {
	parts := make([]string, len(c))
	for i := range c {
		parts[i] = c[i].String()
	}
	return strings.Join(parts, ";")
}

func (c conjunction) bind(info Info) (selector, error) {
	all := make([]selector, len(c))
	for i := range c {
		var err error
		if all[i], err = c[i].bind(info); err != nil {
			return nil, err
		}
	}
	return func(index int, classes []int) bool {
		for _, holds := range all {
			if !holds(index, classes) {
				return false
			}
		}
		return true
	}, nil
}

// parseClauses parses the text between the brackets.
func parseClauses(text string) (conjunction, error) {
	var all conjunction
	parts, err := splitOutside(text)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if part = strings.TrimSpace(part); part == "" {
			return nil, specError("the selection %q has an empty clause; remove the extra semicolon", text)
		}
		c, err := parseClause(part)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// splitOutside splits at semicolons outside of parentheses.
func splitOutside(text string) (parts []string, err error) {
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ';':
			if depth == 0 {
				parts, start = append(parts, text[start:i]), i+1
			}
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return nil, specError("unbalanced parentheses in the selection %q", text)
	}
	return append(parts, text[start:]), nil
}

func parseClause(text string) (clause, error) {
	if inner, ok := strings.CutPrefix(text, "not("); ok && strings.HasSuffix(inner, ")") {
		c, err := parseClauses(inner[:len(inner)-1])
		return negation{c}, err
	}
	if inner, ok := strings.CutPrefix(text, "corr("); ok {
		return parseCorrelated(inner)
	}
	name, value, found := strings.Cut(text, "=")
	if !found {
		return nil, specError("%q is not a clause; use factor=value, factor!=value, every=n, share=p@seed, split=kind, corr(f,g;s) or not(…)", text)
	}
	factor, negative := strings.CutSuffix(strings.TrimSpace(name), "!")
	switch factor = strings.TrimSpace(factor); {
	case factor == "every" && !negative:
		return parseEvery(value)
	case factor == "share" && !negative:
		return parseShare(value)
	case factor == "split" && !negative:
		return parseSplit(value)
	}
	values := strings.Split(value, ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return among{factor, values, negative}, nil
}

// negation holds if the conjunction does not.
type negation struct{ conjunction }

func (n negation) String() string { return "not(" + n.conjunction.String() + ")" }

func (n negation) bind(info Info) (selector, error) {
	holds, err := n.conjunction.bind(info)
	if err != nil {
		return nil, err
	}
	return func(index int, classes []int) bool { return !holds(index, classes) }, nil
}

// among holds if a factor has one of the values, or if negative none of them.
type among struct {
	factor   string
	values   []string
	negative bool
}

func (a among) String() string {
	sign := "="
	if a.negative {
		sign = "!="
	}
	return a.factor + sign + strings.Join(a.values, ",")
}

// factor finds a factor by name.
func (i Info) factor(name string) (int, error) {
	f := slices.IndexFunc(i.Factors, func(f Factor) bool { return f.Name == name })
	if f < 0 {
		return 0, specError("%s has no factor %q; %s", i.Name, name, have(i))
	}
	return f, nil
}

func (a among) bind(info Info) (selector, error) {
	f, err := info.factor(a.factor)
	if err != nil {
		return nil, err
	}
	wanted := make([]bool, len(info.Factors[f].Values))
	for _, value := range a.values {
		if err := want(wanted, info.Factors[f], value); err != nil {
			return nil, err
		}
	}
	return func(_ int, classes []int) bool { return wanted[classes[f]] != a.negative }, nil
}

func have(info Info) string {
	if len(info.Factors) == 0 {
		return "it has none"
	}
	names := make([]string, len(info.Factors))
	for f := range names {
		names[f] = info.Factors[f].Name
	}
	return "it has " + strings.Join(names, ", ")
}

// want marks the classes given by a text: a value's name, #class, or #first..last.
func want(wanted []bool, factor Factor, text string) error {
	if c := slices.Index(factor.Values, text); c >= 0 {
		wanted[c] = true
		return nil
	}
	if span, ok := strings.CutPrefix(text, "#"); ok {
		from, to, isSpan := strings.Cut(span, "..")
		if !isSpan {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil && 0 <= first && first <= last && last < len(wanted) {
			for c := first; c <= last; c++ {
				wanted[c] = true
			}
			return nil
		}
	}
	shown := factor.Values
	if len(shown) > 12 {
		shown = append(slices.Clone(shown[:11]), "…")
	}
	return specError("%s has no value %q; it has %s, or #0 to #%d by class", factor.Name, text, strings.Join(shown, ", "), len(factor.Values)-1)
}

// every holds for every n-th image, starting at offset.
type every struct{ n, offset int }

func (e every) String() string {
	if e.offset == 0 {
		return fmt.Sprintf("every=%d", e.n)
	}
	return fmt.Sprintf("every=%d+%d", e.n, e.offset)
}

func (e every) bind(Info) (selector, error) {
	return func(index int, _ []int) bool { return index%e.n == e.offset }, nil
}

func parseEvery(text string) (clause, error) {
	number, offset, found := strings.Cut(text, "+")
	n, err1 := strconv.Atoi(strings.TrimSpace(number))
	k, err2 := 0, error(nil)
	if found {
		k, err2 = strconv.Atoi(strings.TrimSpace(offset))
	}
	if err1 != nil || err2 != nil || n < 1 || k < 0 || k >= n {
		return nil, specError("every=%s is not of the form every=n or every=n+k with 0 ≤ k < n", text)
	}
	return every{n, k}, nil
}

// share holds for a seeded random part of the dataset; shares with the same seed are nested.
type share struct {
	part float64
	seed int64
}

func (s share) String() string {
	part := strconv.FormatFloat(s.part, 'g', -1, 64)
	if s.seed == 0 {
		return "share=" + part
	}
	return fmt.Sprintf("share=%s@%d", part, s.seed)
}

func (s share) bind(info Info) (selector, error) {
	order, n := newShuffle(s.seed, selection, 0, info.Len), int(math.Round(s.part*float64(info.Len)))
	return func(index int, _ []int) bool { return order.at(index) < n }, nil
}

func parseShare(text string) (clause, error) {
	part, seed, found := strings.Cut(text, "@")
	p, err1 := strconv.ParseFloat(strings.TrimSpace(part), 64)
	k, err2 := int64(0), error(nil)
	if found {
		k, err2 = strconv.ParseInt(strings.TrimSpace(seed), 10, 64)
	}
	if err1 != nil || err2 != nil || !(p > 0 && p < 1) {
		return nil, specError("share=%s is not of the form share=p or share=p@seed with 0 < p < 1", text)
	}
	return share{p, k}, nil
}

// Complement returns the name of the part that a selection excludes, which a model trained on the selection has not seen. If factors
// are correlated, it is the selection without the correlation, on which the model should be evaluated. ok is false if the name has no
// selection.
func Complement(name string) (rest string, ok bool) {
	base, text, err := splitSpec(name)
	if err != nil || text == "" {
		return "", false
	}
	c, err := parseClauses(text)
	if err != nil {
		return "", false
	}
	others := slices.DeleteFunc(slices.Clone(c), func(c clause) bool { _, ok := c.(correlated); return ok })
	switch {
	case len(others) == 0:
		return base, true
	case len(others) < len(c):
		return base + "[" + others.String() + "]", true
	}
	if n, only := c[0].(negation); only && len(c) == 1 {
		return base + "[" + n.conjunction.String() + "]", true
	}
	return base + "[not(" + c.String() + ")]", true
}

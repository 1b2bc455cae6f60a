package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"slotscope/model"
)

// Limits of a query.
const (
	Longest = 2_000 // bytes
	deepest = 40    // nested brackets and signs
)

// Query selects runs. The zero Query selects all that are not archived.
type Query struct {
	root node
}

// Fault is an error in a query, with its place.
type Fault struct {
	At   int    // byte offset in the text
	Near string // the faulty part of the text
	Why  string // what is wrong and what to do
}

func (f Fault) Error() string {
	if f.Near == "" {
		return f.Why
	}
	return fmt.Sprintf("%q: %s", f.Near, f.Why)
}

// Parse parses a query with the field names of a catalogue. The error is a Fault.
func (c *Catalogue) Parse(text string) (Query, error) {
	if len(text) > Longest {
		return Query{}, Fault{Why: fmt.Sprintf("the query has %d bytes, more than the %d allowed; shorten it", len(text), Longest)}
	}
	if !utf8.ValidString(text) {
		return Query{}, Fault{Why: "the query is not valid UTF-8 text; type it again"}
	}
	p := &parser{c: c, text: text}
	root, err := p.either(0)
	if err != nil {
		return Query{}, err
	}
	if p.space(); p.at < len(text) {
		return Query{}, p.fault(p.at, p.at+1, "unmatched closing bracket; remove it, or open one before it")
	}
	return Query{root}, nil
}

// parser reads text from at on.
//
//	either = all { "or" all }
//	all    = { [ "-" | "not" ] one }
//	one    = "(" either ")" | name operator value { "," value } | word | "text"
type parser struct {
	c    *Catalogue
	text string
	at   int
}

func (p *parser) fault(from, to int, why string, args ...any) Fault {
	return Fault{At: from, Near: p.text[from:min(to, len(p.text))], Why: fmt.Sprintf(why, args...)}
}

func (p *parser) space() {
	p.at += len(p.text[p.at:]) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
}

// inName reports whether a rune can be part of a word or a field's name.
func inName(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune(`()<>=!:,"`, r) }

// run consumes the runes for which ok is true.
func (p *parser) run(ok func(rune) bool) string {
	rest := p.text[p.at:]
	n := strings.IndexFunc(rest, func(r rune) bool { return !ok(r) })
	if n < 0 {
		n = len(rest)
	}
	p.at += n
	return rest[:n]
}

// keyword consumes a keyword, unless an operator follows it.
func (p *parser) keyword(words ...string) bool {
	start := p.at
	p.space()
	word := p.run(inName)
	p.space()
	if slices.Contains(words, strings.ToLower(word)) && !p.operatorAhead() {
		return true
	}
	p.at = start
	return false
}

func (p *parser) operatorAhead() bool {
	return p.at < len(p.text) && strings.ContainsRune("<>=!:", rune(p.text[p.at]))
}

func (p *parser) either(depth int) (node, error) {
	var parts []node
	for {
		start := p.at
		part, err := p.all(depth)
		if err != nil {
			return nil, err
		}
		or := p.keyword("or")
		if part == nil && (or || len(parts) > 0) {
			return nil, p.fault(start, p.at, "or needs a condition on both sides; add one, or remove it")
		}
		if part != nil {
			parts = append(parts, part)
		}
		if !or {
			break
		}
	}
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		return parts[0], nil
	}
	return anyOf(parts), nil
}

func (p *parser) all(depth int) (node, error) {
	var parts []node
	for {
		p.space()
		if p.at == len(p.text) || p.text[p.at] == ')' {
			break
		}
		if start := p.at; p.keyword("or") {
			p.at = start
			break
		}
		part, err := p.one(depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		return parts[0], nil
	}
	return allOf(parts), nil
}

func (p *parser) one(depth int) (node, error) {
	start := p.at
	if depth > deepest {
		return nil, p.fault(start, start+1, "more than %d nested brackets and signs; use fewer", deepest)
	}
	if p.text[p.at] == '-' || p.keyword("not") {
		if p.text[start] == '-' {
			p.at++
		}
		if p.at == len(p.text) || unicode.IsSpace(rune(p.text[p.at])) && p.text[start] == '-' || p.text[p.at] == ')' {
			return nil, p.fault(start, p.at, "a condition to exclude must follow, as in -failed")
		}
		part, err := p.one(depth + 1)
		if err != nil {
			return nil, err
		}
		return not{part}, nil
	}
	switch p.text[p.at] {
	case '(':
		p.at++
		part, err := p.either(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.space(); p.at == len(p.text) {
			return nil, p.fault(start, start+1, "this bracket is not closed; add )")
		}
		p.at++
		if part == nil {
			return nil, p.fault(start, p.at, "these brackets are empty; write a condition inside, or remove them")
		}
		return part, nil
	case '"':
		text, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return word{text, true}, nil
	}
	return p.condition(start)
}

// condition parses a word, or a name with operator and values.
func (p *parser) condition(start int) (node, error) {
	name := p.run(inName)
	end := p.at
	p.space()
	if !p.operatorAhead() {
		p.at = end
		if name == "" {
			return nil, p.fault(start, start+1, "a name must come before it, as in model=hrr")
		}
		return p.c.word(name), nil
	}
	op := p.operator()
	if op == "" {
		return nil, p.fault(start, p.at+1, "! is not a comparison; use !=, or - before a condition to exclude it")
	}
	if name == "" {
		return nil, p.fault(start, p.at, "a name must come before it, as in lr%s1e-3", op)
	}
	field, ok := p.c.Field(name)
	if !ok {
		return nil, p.fault(start, end, "unknown hyperparameter, score or series%s; to search for this text, put it in quotes", p.c.near(name))
	}
	values, err := p.values(start)
	if err != nil {
		return nil, err
	}
	made, why := compare(field, op, values)
	if why != "" {
		return nil, p.fault(start, p.at, "%s", why)
	}
	return made, nil
}

// operator consumes a comparison operator; "" if there is none.
func (p *parser) operator() string {
	for _, op := range []string{"<=", ">=", "!=", "<", ">", "=", ":"} {
		if strings.HasPrefix(p.text[p.at:], op) {
			p.at += len(op)
			return op
		}
	}
	return ""
}

// value is one value as typed.
type value struct {
	text   string
	quoted bool
}

func (p *parser) values(start int) (all []value, err error) {
	for {
		p.space()
		if p.at < len(p.text) && p.text[p.at] == '"' {
			text, err := p.quoted()
			if err != nil {
				return nil, err
			}
			all = append(all, value{text, true})
		} else {
			text := p.run(func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune(`(),"<>=!`, r) })
			if text == "" {
				return nil, p.fault(start, p.at, "a value must follow, as in model=hrr or lr<1e-3")
			}
			all = append(all, value{text, false})
		}
		if p.at == len(p.text) || p.text[p.at] != ',' {
			return all, nil
		}
		p.at++
	}
}

// quoted parses text between quotes; a backslash escapes the next character.
func (p *parser) quoted() (string, error) {
	start := p.at
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.at = i + 1
			if b.Len() == 0 {
				return "", p.fault(start, p.at, "the quotes are empty; write a text, or =none for runs without a value")
			}
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			b.WriteByte(p.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fault(start, len(p.text), "the quotes are not closed; add \" at the end")
}

// word returns a condition without operator: a state, a flag or text.
func (c *Catalogue) word(text string) node {
	lower := strings.ToLower(text)
	if slices.Contains(states, model.State(lower)) {
		made, _ := compare(c.must("state"), "=", []value{{lower, false}})
		return made
	}
	if f, ok := c.Field(lower); ok && f.Kind == Flag {
		made, _ := compare(f, "=", []value{{"yes", false}})
		return made
	}
	return word{text, false}
}

func (c *Catalogue) must(name string) Field {
	f, ok := c.Field(name)
	if !ok {
		panic("query: no field " + name)
	}
	return f
}

// near returns a suggestion of the field that a mistyped name most likely meant; empty if none.
func (c *Catalogue) near(name string) string {
	best, least := "", 3
	for _, f := range c.fields {
		if d := distance(strings.ToLower(name), strings.ToLower(f.Name), least); d < least {
			best, least = f.Name, d
		}
	}
	if best == "" || least >= len(name) {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance returns the edit distance between a and b in bytes; most or more if it is at least most.
func distance(a, b string, most int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// none is the value that matches runs without a value.
const none = "none"

// compare returns a condition, or an explanation if the values do not fit the field.
func compare(f Field, op string, values []value) (node, string) {
	ordered := strings.ContainsAny(op, "<>")
	if ordered && len(values) > 1 {
		return nil, fmt.Sprintf("%s takes one value; for several use = with commas, or a range as in %s=1..5", op, f.Name)
	}
	if ordered && (f.text != nil || f.Kind == Flag) {
		return nil, fmt.Sprintf("%s is not a number, so it has no order; use =, != or :", f.Name)
	}
	out := condition{field: f, op: op}
	for _, v := range values {
		one, why := f.wanted(op, v)
		if why != "" {
			return nil, why
		}
		out.wanted = append(out.wanted, one)
	}
	return out, ""
}

// wanted parses one value for a field.
func (f Field) wanted(op string, v value) (want, string) {
	w := want{typed: v}
	if strings.EqualFold(v.text, none) && !v.quoted {
		if strings.ContainsAny(op, "<>") {
			return w, fmt.Sprintf("none is not a number; use %s=none for runs without a value", f.Name)
		}
		w.none = true
		return w, ""
	}
	switch {
	case f.Kind == Set:
		if err := model.CheckTag(v.text); err != nil {
			return w, err.(model.Invalid)["tags"]
		}
		return w, ""
	case f.text != nil:
		if op != ":" && len(f.Choices) > 0 && !slices.ContainsFunc(f.Choices, func(c string) bool { return strings.EqualFold(c, v.text) }) {
			return w, fmt.Sprintf("%s cannot be %q; use one of %s", f.Name, v.text, strings.Join(f.Choices, ", "))
		}
		return w, ""
	}
	low, high, ranged := strings.Cut(v.text, "..")
	if ranged && strings.ContainsAny(op, "<>") {
		return w, fmt.Sprintf("a range needs =, as in %s=%s", f.Name, v.text)
	}
	var why string
	if w.low, why = f.parse(low); why != "" {
		return w, why
	}
	w.high = w.low
	if !ranged {
		if f.Kind == Time && !strings.ContainsAny(op, "<>") { // the whole day, not its first moment
			w.high = w.low + timeSpan(low).Seconds()
			w.open = true
		}
		return w, ""
	}
	if w.high, why = f.parse(high); why != "" {
		return w, why
	}
	if f.Kind == Time {
		w.high += timeSpan(high).Seconds()
		w.open = true
	}
	if w.low > w.high {
		return w, fmt.Sprintf("the range goes from %s down to %s; write the smaller end first", low, high)
	}
	return w, ""
}

// parse parses a number of the field.
func (f Field) parse(text string) (float64, string) {
	switch f.Kind {
	case Flag:
		switch strings.ToLower(text) {
		case "yes", "true", "on", "1":
			return 1, ""
		case "no", "false", "off", "0":
			return 0, ""
		}
		return 0, fmt.Sprintf("%q is neither yes nor no", text)
	case Time:
		for layout := range timeLayouts {
			if t, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
				return float64(t.UnixMilli()) / 1000, ""
			}
		}
		return 0, fmt.Sprintf("%q is not a time; write one as 2026-03-01 or 2026-03-01T18:30 (UTC), or use age, as in age<2d", text)
	case Duration:
		if v, ok := scaled(text, map[string]float64{"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}); ok {
			return v, ""
		}
		return 0, fmt.Sprintf("%q is not a duration; write one as 90s, 15min, 2h or 3d", text)
	}
	if v, ok := scaled(text, map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01}); ok {
		return v, ""
	}
	return 0, fmt.Sprintf("%q is not a number; write one as in %s<1e-3 or %s=10k", text, f.Name, f.Name)
}

// scaled parses a number with an optional unit.
func scaled(text string, units map[string]float64) (float64, bool) {
	factor := 1.0
	at := strings.LastIndexAny(text, "0123456789.") + 1
	if unit := text[at:]; at > 0 && unit != "" {
		f, ok := units[unit]
		if !ok {
			return 0, false
		}
		factor, text = f, text[:at]
	}
	if strings.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v*factor, 0) && !math.IsInf(v, 0) {
		return 0, false
	}
	return v * factor, true
}

var timeLayouts = map[string]time.Duration{
	time.DateOnly:         24 * time.Hour,
	"2006-01-02T15:04":    time.Minute,
	"2006-01-02T15:04:05": time.Second,
	time.RFC3339:          time.Second,
}

// timeSpan returns the duration that a time covers, such as a day for a date.
func timeSpan(text string) time.Duration {
	for layout, span := range timeLayouts {
		if _, err := time.Parse(layout, text); err == nil {
			return span
		}
	}
	return 0
}

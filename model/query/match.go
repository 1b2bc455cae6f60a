package query

import (
	"math"
	"slices"
	"strings"
	"time"

	"slotscope/model"
)

// node is a node of a query's syntax tree.
type node interface {
	match(r *model.Overview, now time.Time) bool
	write(b *strings.Builder)
	walk(visit func(node))
}

// Match reports whether a query selects a run.
func (q Query) Match(r *model.Overview, now time.Time) bool {
	return q.root == nil || q.root.match(r, now)
}

// Choose returns the runs that a query selects, in their order. Archived runs are left out unless the query uses archived or id.
func (q Query) Choose(runs []model.Overview, now time.Time) []model.Overview {
	all := q.Names("archived") || q.Names("id")
	chosen := make([]model.Overview, 0, len(runs))
	for i := range runs {
		if (all || !runs[i].Archived) && q.Match(&runs[i], now) {
			chosen = append(chosen, runs[i])
		}
	}
	return chosen
}

// Empty reports whether the query has no conditions.
func (q Query) Empty() bool { return q.root == nil }

// Names reports whether the query has a condition on a field.
func (q Query) Names(field string) (found bool) {
	if q.root == nil {
		return false
	}
	q.root.walk(func(n node) {
		if c, ok := n.(condition); ok && c.field.Name == field {
			found = true
		}
	})
	return found
}

// Fields returns the names of the fields that the query uses.
func (q Query) Fields() (names []string) {
	if q.root == nil {
		return nil
	}
	q.root.walk(func(n node) {
		if c, ok := n.(condition); ok && !slices.Contains(names, c.field.Name) {
			names = append(names, c.field.Name)
		}
	})
	return names
}

// String returns the query in canonical form.
func (q Query) String() string {
	if q.root == nil {
		return ""
	}
	var b strings.Builder
	q.root.write(&b)
	return b.String()
}

type anyOf []node

func (n anyOf) match(r *model.Overview, now time.Time) bool {
	return slices.ContainsFunc(n, func(part node) bool { return part.match(r, now) })
}

func (n anyOf) write(b *strings.Builder) {
	b.WriteByte('(')
	for i, part := range n {
		if i > 0 {
			b.WriteString(" or ")
		}
		part.write(b)
	}
	b.WriteByte(')')
}

func (n anyOf) walk(visit func(node)) { walkAll(n, visit) }

type allOf []node

func (n allOf) match(r *model.Overview, now time.Time) bool {
	return !slices.ContainsFunc(n, func(part node) bool { return !part.match(r, now) })
}

func (n allOf) write(b *strings.Builder) {
	for i, part := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		if inner, ok := part.(allOf); ok {
			b.WriteByte('(')
			inner.write(b)
			b.WriteByte(')')
			continue
		}
		part.write(b)
	}
}

func (n allOf) walk(visit func(node)) { walkAll(n, visit) }

func walkAll(parts []node, visit func(node)) {
	for _, part := range parts {
		part.walk(visit)
	}
}

type not struct{ of node }

func (n not) match(r *model.Overview, now time.Time) bool { return !n.of.match(r, now) }

func (n not) write(b *strings.Builder) {
	b.WriteByte('-')
	if inner, ok := n.of.(allOf); ok {
		b.WriteByte('(')
		inner.write(b)
		b.WriteByte(')')
		return
	}
	n.of.write(b)
}

func (n not) walk(visit func(node)) { n.of.walk(visit) }

// word matches text in a run's name and other identifying fields.
type word struct {
	text   string
	quoted bool
}

func (n word) match(r *model.Overview, _ time.Time) bool {
	c, text := &r.Config, strings.ToLower(n.text)
	for _, where := range []string{r.Name, r.ID, string(r.State), c.Model, model.ModelTitle(c.Model), c.Dataset, c.Preset, r.Engine, string(r.Tags), r.Notes} {
		if strings.Contains(strings.ToLower(where), text) {
			return true
		}
	}
	return false
}

func (n word) write(b *strings.Builder) { value(n).write(b) }

func (n word) walk(visit func(node)) { visit(n) }

func (v value) write(b *strings.Builder) {
	if !v.quoted {
		b.WriteString(v.text)
		return
	}
	b.WriteByte('"')
	b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.text))
	b.WriteByte('"')
}

// condition compares a field with values, of which any may match.
type condition struct {
	field  Field
	op     string
	wanted []want
}

// want is one value: none, text, or numbers from low to high.
type want struct {
	typed     value
	none      bool
	low, high float64
	open      bool // high itself is outside
}

func (n condition) walk(visit func(node)) { visit(n) }

func (n condition) write(b *strings.Builder) {
	b.WriteString(n.field.Name)
	b.WriteString(n.op)
	for i, w := range n.wanted {
		if i > 0 {
			b.WriteByte(',')
		}
		w.typed.write(b)
	}
}

// match reports whether any value matches, or for != whether none does. A run without a value matches only =none.
func (n condition) match(r *model.Overview, now time.Time) bool {
	if n.op == "!=" {
		return !slices.ContainsFunc(n.wanted, func(w want) bool { return n.holds(w, "=", r, now) })
	}
	return slices.ContainsFunc(n.wanted, func(w want) bool { return n.holds(w, n.op, r, now) })
}

func (n condition) holds(w want, op string, r *model.Overview, now time.Time) bool {
	f := n.field
	switch {
	case w.none:
		return !f.Has(r, now) || f.text != nil && strings.EqualFold(f.text(r), none)
	case f.Kind == Set:
		return model.Tags(f.text(r)).Has(w.typed.text)
	case f.text != nil && op == ":":
		return strings.Contains(strings.ToLower(f.text(r)), strings.ToLower(w.typed.text))
	case f.text != nil:
		return strings.EqualFold(f.text(r), w.typed.text)
	}
	v, ok := f.number(r, now)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return v < w.low
	case "<=":
		return v <= w.low
	case ">":
		return v > w.low
	case ">=":
		return v >= w.low
	}
	if math.IsNaN(w.low) {
		return math.IsNaN(v)
	}
	if w.open {
		return v >= w.low && v < w.high
	}
	return v >= w.low && v <= w.high
}

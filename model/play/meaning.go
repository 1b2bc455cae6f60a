package play

import (
	"cmp"
	"slices"
)

// Meaning is the factor values that an entry of a slot represents, on the images counted.
type Meaning struct {
	Entry  int           `json:"entry"`  // position in Model.Entries
	Values []FactorValue `json:"values"` // one for each of the first two factors that the slot is named after
}

// FactorValue is the most frequent classes of a factor among an entry's images.
type FactorValue struct {
	Factor  int     `json:"factor"`
	Classes []int   `json:"classes"` // most frequent first
	Share   float64 `json:"share"`   // fraction of the entry's images that have one of Classes
}

const (
	meaningFactors = 2    // maximum number of factors per entry
	meaningClasses = 3    // maximum number of classes per factor
	meaningFrom    = 0.25 // minimum share of an entry's images for a class other than the most frequent
)

// meaningsOf returns the meanings of a slot's entries with respect to the factors that the slot is named after. entries[n] is the entry on
// image n, and classes is [n × factors].
func meaningsOf(entries, classes []int, factors int, named []int) []Meaning {
	named = named[:min(len(named), meaningFactors)]
	images := map[int][]int{}
	for n, e := range entries {
		images[e] = append(images[e], n)
	}
	out := []Meaning{}
	if len(named) == 0 {
		return out
	}
	for e, rows := range images {
		m := Meaning{Entry: e}
		for _, f := range named {
			m.Values = append(m.Values, valueOf(rows, classes, factors, f))
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Meaning) int { return cmp.Compare(a.Entry, b.Entry) })
	return out
}

// valueOf returns the most frequent classes of factor f on rows of classes.
func valueOf(rows, classes []int, factors, f int) FactorValue {
	counts := map[int]int{}
	for _, n := range rows {
		counts[classes[n*factors+f]]++
	}
	var order []int
	for c := range counts {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	v, covered := FactorValue{Factor: f}, 0
	for i, c := range order {
		if i > 0 && (i == meaningClasses || float64(counts[c]) < meaningFrom*float64(len(rows))) {
			break
		}
		v.Classes = append(v.Classes, c)
		covered += counts[c]
	}
	v.Share = float64(covered*1000/len(rows)) / 1000
	return v
}

package data

import (
	"slices"
	"strings"
)

// split keeps the training part of a split for compositional generalisation; not(split=kind) is its test part. It looks at the factors
// with at least three values, whose classes count as ordered; a value is high in the last quarter of the classes, rounded up, and inner
// where it is one of every third classes inside of the range.
//
//	random          70 % of the images, drawn at random
//	composition     not two high values together: every value is seen, some pairs are not
//	interpolation   no inner value: what is left out lies between what was seen
//	extrapolation   no high value: what is left out lies beyond what was seen
//
// The names are those of Schott et al. 2022; which values are left out is ours, so that every dataset has each split.
type split string

var splitKinds = []string{"random", "composition", "interpolation", "extrapolation"}

func (s split) String() string { return "split=" + string(s) }

func (s split) bind(info Info) (selector, error) {
	if s == "random" {
		return share{0.7, 0}.bind(info)
	}
	held, varying := make([][]bool, len(info.Factors)), 0
	for f, n := range info.Sizes() {
		held[f] = make([]bool, n)
		if n < 3 {
			continue
		}
		varying++
		for class := range n {
			held[f][class] = s.holdsOut(class, n)
		}
	}
	allowed := 0
	if s == "composition" {
		allowed = 1
	}
	if varying <= allowed {
		return nil, specError("split=%s needs %d factors with at least three values; %s has %d", string(s), allowed+1, info.Name, varying)
	}
	return func(_ int, classes []int) bool {
		out := 0
		for f, class := range classes {
			if held[f][class] {
				out++
			}
		}
		return out <= allowed
	}, nil
}

// holdsOut says whether class of n, n ≥ 3, is one of those that the split keeps from training or from meeting.
func (s split) holdsOut(class, n int) bool {
	if s == "interpolation" {
		return class > 0 && class < n-1 && class%3 == 1
	}
	return class >= n-(n+3)/4
}

func parseSplit(text string) (clause, error) {
	if text = strings.TrimSpace(text); !slices.Contains(splitKinds, text) {
		return nil, specError("split=%s is not one of split=%s", text, strings.Join(splitKinds, ", split="))
	}
	return split(text), nil
}

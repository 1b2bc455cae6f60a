package data

import (
	"slices"
	"strings"
)

// split keeps the training part of a split for compositional generalisation; not(split=kind) is its test part. It considers factors with
// at least three values and treats their classes as ordered. High values are the last quarter of the classes, rounded up. Inner values are
// every third class from 1 on, except the last.
//
//	random          70 % of the images, drawn at random
//	composition     at most one high value: every value is seen, but some pairs are not
//	interpolation   no inner values: held-out values lie between seen ones
//	extrapolation   no high values: held-out values lie beyond seen ones
//
// The names are those of Schott et al. 2022. The choice of held-out values is ours, so that every dataset has each split.
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
		return nil, specError("split=%s needs %d factors with at least three values, but %s has %d; choose another split", string(s), allowed+1, info.Name, varying)
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

// holdsOut reports whether a class of n, n ≥ 3, is held out or, for composition, may not be combined with another such class.
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

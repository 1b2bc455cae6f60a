package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// correlated keeps an image with a probability that correlates two factors. Values are spread evenly from 0 to 1 by class, so that the most
// likely pairs lie on the diagonal of the grid; a smaller s keeps pairs closer to it.
//
//	P(keep) = exp(−(u − v)²/(2 s²)),  u = class_f/(K_f − 1),  v = class_g/(K_g − 1)       ours; the idea is that of Träuble et al. 2021
//
// On a complete grid the pairs of the subset are distributed in proportion to P, and all other factors stay independent and uniform. The
// seed determines which images are kept.
type correlated struct {
	f, g  string
	width float64 // s
	seed  int64
}

func (c correlated) String() string {
	text := fmt.Sprintf("corr(%s,%s;%s)", c.f, c.g, strconv.FormatFloat(c.width, 'g', -1, 64))
	if c.seed == 0 {
		return text
	}
	return fmt.Sprintf("%s@%d", text, c.seed)
}

func (c correlated) bind(info Info) (selector, error) {
	f, err := info.factor(c.f)
	if err != nil {
		return nil, err
	}
	g, err := info.factor(c.g)
	if err != nil {
		return nil, err
	}
	sizes := info.Sizes()
	for _, at := range []int{f, g} {
		if sizes[at] < 2 {
			return nil, specError("%s has only one value in %s and cannot be correlated; choose another factor", info.Factors[at].Name, info.Name)
		}
	}
	keep := make([]float64, sizes[f]*sizes[g])
	for i := range sizes[f] {
		for j := range sizes[g] {
			keep[i*sizes[g]+j] = c.weight(i, sizes[f], j, sizes[g])
		}
	}
	state := mix(mix(uint64(c.seed)) + correlation)
	return func(index int, classes []int) bool {
		return float64(mix(state+uint64(index))>>11)/(1<<53) < keep[classes[f]*sizes[g]+classes[g]]
	}, nil
}

// correlates returns an error if the other clauses leave only one value of a correlated factor. used marks the values of the subset.
func (c conjunction) correlates(info Info, used [][]bool) error {
	for _, clause := range c {
		k, ok := clause.(correlated)
		if !ok {
			continue
		}
		for _, name := range []string{k.f, k.g} {
			f, err := info.factor(name)
			if err != nil {
				return err
			}
			if values := slices.DeleteFunc(slices.Clone(used[f]), func(yes bool) bool { return !yes }); len(values) < 2 {
				return specError("%s has only one value in %s[%s] and cannot be correlated; select more of its values", name, info.Name, c)
			}
		}
	}
	return nil
}

// weight returns P(keep) for class i of m and class j of n.
func (c correlated) weight(i, m, j, n int) float64 {
	apart := float64(i)/float64(m-1) - float64(j)/float64(n-1)
	return math.Exp(-apart * apart / (2 * c.width * c.width))
}

// parseCorrelated parses the text after "corr(".
func parseCorrelated(text string) (clause, error) {
	inside, seed, closed := strings.Cut(text, ")")
	factors, width, hasWidth := strings.Cut(inside, ";")
	f, g, two := strings.Cut(factors, ",")
	c := correlated{f: strings.TrimSpace(f), g: strings.TrimSpace(g)}
	var err1, err2 error
	c.width, err1 = strconv.ParseFloat(strings.TrimSpace(width), 64)
	if number, ok := strings.CutPrefix(strings.TrimSpace(seed), "@"); ok {
		c.seed, err2 = strconv.ParseInt(number, 10, 64)
	} else if strings.TrimSpace(seed) != "" {
		closed = false
	}
	switch {
	case !closed || !hasWidth || !two || err1 != nil || err2 != nil || c.f == "" || c.g == "" || strings.Contains(c.g, ","):
		return nil, specError("corr(%s is not of the form corr(factor,factor;s) or corr(factor,factor;s)@seed, as in corr(shape,scale;0.2)", text)
	case c.f == c.g:
		return nil, specError("corr(%s names %s twice; correlate two different factors", text, c.f)
	case !(c.width >= 0.01 && c.width <= 10):
		return nil, specError("corr(%s: the width %v is out of range; choose one between 0.01 (nearly one to one) and 10 (nearly independent)", text, c.width)
	}
	return c, nil
}

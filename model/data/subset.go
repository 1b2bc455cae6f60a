package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"slotscope/model"
)

// subset is a part of another Set. Classes that do not occur in it are dropped from its factors, and the rest are renumbered.
type subset struct {
	base Set
	*choice
}

// choice is the result of a selection, shared by all users of the subset.
type choice struct {
	key   string // the base's identity and the selection; empty if the base has no identity
	info  Info
	index []uint32 // of each image, its index in the base; ascending
	kept  [][]int  // [F][class]: the class of the base
	back  [][]int  // [F][class of the base]: the class, or −1 if it does not occur
	whole bool     // whether images of the base with equal classes are all kept or all dropped
}

// choices caches the latest choices, since a page reopens its dataset for every image.
var choices, _ = lru.New[string, *choice](16) // fails only for a size below 1

// identified is a Set with a string that uniquely identifies its content.
type identified interface{ identity() string }

// newSubset returns the part of base that a selection describes. Closing it closes base.
func newSubset(ctx context.Context, base Set, text string) (Set, error) {
	clauses, err := parseClauses(text)
	if err != nil {
		return nil, err
	}
	key := ""
	if id, ok := base.(identified); ok {
		key = id.identity() + "\n" + clauses.String()
		if c, ok := choices.Get(key); ok {
			return subset{base, c}, nil
		}
	}
	c, err := choose(ctx, base, clauses)
	if err != nil {
		return nil, err
	}
	if key != "" {
		c.key = key
		choices.Add(key, c)
	}
	return subset{base, c}, nil
}

func choose(ctx context.Context, base Set, clauses conjunction) (*choice, error) {
	info := base.Info()
	holds, err := clauses.bind(info)
	if err != nil {
		return nil, err
	}
	c := &choice{whole: !slices.ContainsFunc(clauses, func(c clause) bool { _, ok := c.(among); return !ok })}
	used := make([][]bool, len(info.Factors))
	for f, n := range info.Sizes() {
		used[f] = make([]bool, n)
	}
	err = eachTuple(ctx, base, func(index int, classes []int) {
		if !holds(index, classes) {
			return
		}
		c.index = append(c.index, uint32(index))
		for f, class := range classes {
			used[f][class] = true
		}
	})
	if err != nil {
		return nil, err
	}
	if len(c.index) == 0 {
		return nil, specError("no image of %s matches [%s]; drop or widen a clause", info.Name, clauses)
	}
	if err := clauses.correlates(info, used); err != nil {
		return nil, err
	}
	c.index = slices.Clip(c.index)
	c.describe(info, clauses, used)
	return c, nil
}

// eachTuple calls fn with every image's classes, in order. The slice is valid until fn returns.
func eachTuple(ctx context.Context, set Set, fn func(index int, classes []int)) error {
	info := set.Info()
	factors := len(info.Factors)
	const chunk = 8192
	index, classes := make([]int, 0, chunk), make([]int, chunk*factors)
	for first := 0; first < info.Len; first += chunk {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading the factors of %s: %w", info.Name, err)
		}
		index = index[:0]
		for i := first; i < min(first+chunk, info.Len); i++ {
			index = append(index, i)
		}
		if err := set.Classes(classes[:len(index)*factors], index); err != nil {
			return err
		}
		for b, i := range index {
			fn(i, classes[b*factors:(b+1)*factors])
		}
	}
	return nil
}

// describe sets the description of the choice: that of base, with the classes that occur.
func (c *choice) describe(base Info, clauses conjunction, used [][]bool) {
	c.info = base.clone()
	c.info.Name = fmt.Sprintf("%s[%s]", base.Name, clauses)
	c.info.Title = base.Title + ", in part"
	c.info.About = fmt.Sprintf("The images of %s for which this holds: %s.", base.Title, clauses)
	c.info.Len = len(c.index)
	c.kept, c.back = make([][]int, len(used)), make([][]int, len(used))
	for f := range used {
		c.info.Factors[f].Values = nil
		c.back[f] = make([]int, len(used[f]))
		for class, occurs := range used[f] {
			c.back[f][class] = -1
			if occurs {
				c.back[f][class] = len(c.kept[f])
				c.kept[f] = append(c.kept[f], class)
				c.info.Factors[f].Values = append(c.info.Factors[f].Values, base.Factors[f].Values[class])
			}
		}
	}
	c.info.Complete = base.Complete && Grid(c.info.Sizes()).Len() == len(c.index)
}

func (s subset) Info() Info { return s.info.clone() }

func (s subset) identity() string { return s.key }

func (s subset) Images(dst []byte, index []int) error {
	if err := check(s.info, index, len(dst), s.info.H*s.info.W*s.info.C); err != nil {
		return err
	}
	return s.base.Images(dst, s.ofBase(index))
}

func (s subset) ofBase(index []int) []int {
	of := make([]int, len(index))
	for b, i := range index {
		of[b] = int(s.index[i])
	}
	return of
}

func (s subset) Classes(dst, index []int) error {
	if err := check(s.info, index, len(dst), len(s.kept)); err != nil {
		return err
	}
	if err := s.base.Classes(dst, s.ofBase(index)); err != nil {
		return err
	}
	for i, class := range dst {
		dst[i] = s.back[i%len(s.kept)][class]
	}
	return nil
}

func (s subset) Index(classes []int) (int, error) {
	if err := s.info.CheckClasses(classes); err != nil {
		return 0, err
	}
	of := make([]int, len(classes))
	for f, c := range classes {
		of[f] = s.kept[f][c]
	}
	i, err := s.base.Index(of)
	if err != nil {
		return 0, err
	}
	if at, found := slices.BinarySearch(s.index, uint32(i)); found {
		return at, nil
	}
	if !s.whole && !s.base.Info().Complete {
		return s.scan(classes) // base may have another image of these classes
	}
	return 0, noImage(s.info, classes)
}

// scan searches all images.
func (s subset) scan(classes []int) (int, error) {
	found := -1
	err := eachTuple(context.Background(), s, func(index int, have []int) {
		if found < 0 && slices.Equal(have, classes) {
			found = index
		}
	})
	if err == nil && found < 0 {
		err = noImage(s.info, classes)
	}
	return found, err
}

// noImage returns the error for classes without an image; it wraps model.ErrNotFound.
func noImage(info Info, classes []int) error {
	if len(info.Factors) == 0 {
		return fmt.Errorf("%s has no factors by which to find an image: %w", info.Name, model.ErrNotFound)
	}
	values := make([]string, len(classes))
	for f, c := range classes {
		values[f] = info.Factors[f].Name + " " + info.Factors[f].Values[c]
	}
	return fmt.Errorf("%s has no image with %s: %w", info.Name, strings.Join(values, ", "), model.ErrNotFound)
}

func (s subset) Warm(ctx context.Context) error {
	if w, ok := s.base.(Warmer); ok {
		return w.Warm(ctx)
	}
	return nil
}

func (s subset) Close() error { return s.base.Close() }

// openPart opens a name that may end with a selection. open opens names without one.
func openPart(ctx context.Context, name string, open func(base string) (Set, error)) (Set, error) {
	base, text, err := splitSpec(name)
	if err != nil {
		return nil, err
	}
	set, err := open(base)
	if err != nil || text == "" {
		return set, err
	}
	part, err := newSubset(ctx, set, text)
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return part, nil
}

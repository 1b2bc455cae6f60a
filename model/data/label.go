package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// checkLabels compares the labels of a published file, [n, F], with the order of its grid. value returns the label for a class of a
// factor.
func checkLabels(info Info, labels *array, value func(factor, class int) float64) error {
	got, err := labels.numbers()
	if err != nil {
		return err
	}
	grid := Grid(info.Sizes())
	classes := make([]int, len(grid))
	for n := range len(got) / len(grid) {
		grid.Classes(classes, n)
		for f, class := range classes {
			want, have := value(f, class), got[n*len(grid)+f]
			if !(math.Abs(want-have) <= 1e-3*max(1, math.Abs(want))) {
				return fmt.Errorf("%s, row %d: %s is %v, but %s has %v there; the images are in another order, or the file belongs to another dataset",
					labels.where, n, info.Factors[f].Name, have, info.Title, want)
			}
		}
	}
	return nil
}

// evenly returns a function from class to value for n values spaced evenly from a to b.
func evenly(a, b float64, n int) func(class int) float64 {
	return func(class int) float64 {
		if n == 1 {
			return a
		}
		return a + (b-a)*float64(class)/float64(n-1)
	}
}

// numbered returns the names of n values: 0, 1, 2 ….
func numbered(n int) []string {
	return named(n, "%.0f", func(class int) float64 { return float64(class) })
}

// column holds the value of one factor for every image of a user's own dataset.
type column struct {
	name   string
	values []string
}

// classify turns columns into factors. The sorted distinct values of a column are its classes; values sort as numbers if all are
// numbers, else as text. complete means that every combination occurs once, in the order of Grid; labels is then nil.
func classify(columns []column, length int) (factors []Factor, labels []uint16, complete bool, err error) {
	labels = make([]uint16, length*len(columns))
	for f, c := range columns {
		names := slices.Clone(c.values)
		sortValues(names)
		names = slices.Compact(names)
		if len(names) > 1<<16 {
			return nil, nil, false, fmt.Errorf("column %q has %d distinct values, but a factor can have at most 65,536; remove columns that are not factors, such as row numbers", c.name, len(names))
		}
		class := make(map[string]uint16, len(names))
		for i, name := range names {
			class[name] = uint16(i)
		}
		for n, v := range c.values {
			labels[n*len(columns)+f] = class[v]
		}
		factors = append(factors, Factor{c.name, names})
	}
	info := Info{Factors: factors}
	if len(factors) == 0 || !inGridOrder(info.Sizes(), labels, length) {
		return factors, labels, false, nil
	}
	return factors, nil, true, nil
}

// sortValues sorts names as numbers if all are numbers, else as text.
func sortValues(names []string) {
	numbers := make(map[string]float64, len(names))
	for _, name := range names {
		v, err := strconv.ParseFloat(name, 64)
		if err != nil || math.IsNaN(v) {
			slices.Sort(names)
			return
		}
		numbers[name] = v
	}
	slices.SortFunc(names, func(a, b string) int {
		if numbers[a] != numbers[b] {
			return int(math.Copysign(1, numbers[a]-numbers[b]))
		}
		return strings.Compare(a, b)
	})
}

func inGridOrder(sizes []int, labels []uint16, length int) bool {
	total := 1
	for _, s := range sizes {
		if total *= s; total > length {
			return false
		}
	}
	if total != length {
		return false
	}
	classes, grid := make([]int, len(sizes)), Grid(sizes)
	for n := range length {
		grid.Classes(classes, n)
		for f, class := range classes {
			if int(labels[n*len(sizes)+f]) != class {
				return false
			}
		}
	}
	return true
}

package metric

import (
	"fmt"
	"math"
	"slices"

	"slotscope/model"
)

// MaxCode is the largest code in a Table: codes are codebook indices, not image identifiers.
const MaxCode = 1<<31 - 1

// Table is n rows of m latents with F factors, by columns. Latents are either Codes or Values.
type Table struct {
	Codes   [][]int     // [m][n] codebook indices, 0 to MaxCode
	Values  [][]float64 // [m][n] numbers
	Factors [][]int     // [F][n] class of every factor; only equality matters
	Names   []string    // [F] of the factors; nil for "factor 0", "factor 1" …
}

// Check returns an error that names the column and row if columns differ in length, values are not finite, codes are out of range, or
// there are fewer than two rows.
func (t Table) Check() error {
	if (len(t.Codes) > 0) == (len(t.Values) > 0) {
		return fmt.Errorf("a table needs codes or values of at least one latent, but not both")
	}
	if len(t.Factors) == 0 {
		return fmt.Errorf("the table has no factors")
	}
	if t.Names != nil && len(t.Names) != len(t.Factors) {
		return fmt.Errorf("got %d names for %d factors", len(t.Names), len(t.Factors))
	}
	n := len(t.Factors[0])
	if n < 2 {
		return fmt.Errorf("the table has %d rows; a measurement needs at least two", n)
	}
	if err := sameLength("factor", t.Factors, n); err != nil {
		return err
	}
	if err := sameLength("latent", t.Codes, n); err != nil {
		return err
	}
	if err := sameLength("latent", t.Values, n); err != nil {
		return err
	}
	return t.checkEntries()
}

func sameLength[T any](what string, columns [][]T, n int) error {
	for j, c := range columns {
		if len(c) != n {
			return fmt.Errorf("%s %d has %d rows, but the first factor has %d", what, j, len(c), n)
		}
	}
	return nil
}

func (t Table) checkEntries() error {
	for j, c := range t.Codes {
		for r, v := range c {
			if v < 0 || v > MaxCode {
				return fmt.Errorf("latent %d of row %d is %d; codes are 0 to %d", j, r, v, MaxCode)
			}
		}
	}
	for j, c := range t.Values {
		for r, v := range c {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("latent %d of row %d is %v; latents must be finite", j, r, v)
			}
		}
	}
	return nil
}

func (t Table) discrete() bool { return len(t.Codes) > 0 }

func (t Table) rows() int { return len(t.Factors[0]) }

func (t Table) latents() int { return max(len(t.Codes), len(t.Values)) }

// name is the name of a factor.
func (t Table) name(i int) string {
	if t.Names == nil {
		return fmt.Sprintf("factor %d", i)
	}
	return t.Names[i]
}

// labels is a column whose values are renumbered 0 … k−1 in ascending order.
type labels struct {
	of []int32 // [n]
	k  int     // distinct values among the rows
}

func label(column []int) labels {
	values := slices.Clone(column)
	slices.Sort(values)
	values = slices.Compact(values)
	of := make([]int32, len(column))
	if last := values[len(values)-1]; values[0] >= 0 && last < 4*len(column)+1024 {
		place := make([]int32, last+1)
		for i, v := range values {
			place[v] = int32(i)
		}
		for r, v := range column {
			of[r] = place[v]
		}
		return labels{of, len(values)}
	}
	for r, v := range column {
		i, _ := slices.BinarySearch(values, v)
		of[r] = int32(i)
	}
	return labels{of, len(values)}
}

func labelAll(columns [][]int) []labels {
	out := make([]labels, len(columns))
	for j, c := range columns {
		out[j] = label(c)
	}
	return out
}

// counts is the number of rows with each label.
func (l labels) counts() []int {
	c := make([]int, l.k)
	for _, v := range l.of {
		c[v]++
	}
	return c
}

// entropy is the plug-in entropy of a column in nats.
//
//	H(s) = −Σ_v p_v ln p_v
func (l labels) entropy() float64 {
	h, n := 0.0, float64(len(l.of))
	for _, c := range l.counts() {
		p := float64(c) / n
		h -= p * math.Log(p)
	}
	return h
}

// take is the column restricted to the given rows.
func (l labels) take(rows []int) labels {
	of := make([]int32, len(rows))
	for i, r := range rows {
		of[i] = l.of[r]
	}
	return labels{of, l.k}
}

// standardize scales every column to mean 0 and population deviation 1; a constant column becomes 0.
func standardize(columns [][]float64) [][]float64 {
	out := make([][]float64, len(columns))
	for j, c := range columns {
		mean, scale := 0.0, 0.0
		for _, v := range c {
			scale = max(scale, math.Abs(v))
		}
		if scale == 0 {
			scale = 1
		}
		for _, v := range c {
			mean += v / scale / float64(len(c))
		}
		variance := 0.0
		for _, v := range c {
			variance += (v/scale - mean) * (v/scale - mean) / float64(len(c))
		}
		deviation := math.Sqrt(variance)
		if deviation < 1e-15 || slices.Min(c) == slices.Max(c) {
			deviation = 1
		}
		out[j] = make([]float64, len(c))
		for r, v := range c {
			out[j][r] = (v/scale - mean) / deviation
		}
	}
	return out
}

// kept lists the factors that have at least two values.
func kept(factors []labels) []int {
	var list []int
	for i, f := range factors {
		if f.k > 1 {
			list = append(list, i)
		}
	}
	return list
}

// undefined is n scores that were not measured.
func undefined(n int) []model.Score {
	s := make([]model.Score, n)
	for i := range s {
		s[i] = model.Undefined()
	}
	return s
}

package metric

import (
	"cmp"
	"slices"
)

// hotView presents every (slot, code) pair as a feature of 0 or 1. It stores only the column numbers of the input, and counts a node
// once for all features.
type hotView struct {
	x   design // one-hot
	s   *sample
	row []int32

	hist   []int32 // [p, K] weight of the entered rows by column and class
	column []int32 // [p] their weight by column
	counts []int32 // [K] their weight by class
	rest   []int32 // [K] scratch
	total  int32
}

func newHotView(x design, s *sample) *hotView {
	k := s.y.k
	return &hotView{x: x, s: s, hist: make([]int32, x.p*k), column: make([]int32, x.p), counts: make([]int32, k), rest: make([]int32, k)}
}

func (v *hotView) features() int { return v.x.p }

func (v *hotView) begin(weight []int32) { v.row = weighted(v.row[:0], weight) }

func (v *hotView) rows(lo, hi int) []int32 { return span(v.row, lo, hi) }

func (v *hotView) enter(lo, hi int) {
	v.total = v.s.gather(v.counts, v.row[lo:hi])
	k := int32(v.s.y.k)
	for _, r := range v.row[lo:hi] {
		w, y := v.s.weight[r], v.s.y.of[r]
		for _, c := range v.x.hot[int(r)*v.x.width : int(r+1)*v.x.width] {
			v.hist[c*k+y] += w
			v.column[c] += w
		}
	}
}

func (v *hotView) leave(lo, hi int) {
	k := int32(v.s.y.k)
	for _, r := range v.row[lo:hi] {
		y := v.s.y.of[r]
		for _, c := range v.x.hot[int(r)*v.x.width : int(r+1)*v.x.width] {
			v.hist[c*k+y] = 0
			v.column[c] = 0
		}
	}
}

func (v *hotView) cut(f int) (threshold, cost float64, ok bool) {
	ones := v.column[f]
	if ones == 0 || ones == v.total {
		return 0, 0, false
	}
	k := v.s.y.k
	with := v.hist[f*k : (f+1)*k]
	for i, c := range v.counts {
		v.rest[i] = c - with[i]
	}
	return 0.5, v.s.nats(with, ones) + v.s.nats(v.rest, v.total-ones), true
}

func (v *hotView) left(row, f int, _ float64) bool {
	return !slices.Contains(v.x.hot[row*v.x.width:(row+1)*v.x.width], int32(f))
}

func (v *hotView) divide(lo, hi, f int, threshold float64) int {
	mid := lo
	for i := lo; i < hi; i++ {
		if v.left(int(v.row[i]), f, threshold) {
			v.row[i], v.row[mid] = v.row[mid], v.row[i]
			mid++
		}
	}
	return mid
}

// numberView presents every latent as a numeric feature. Each latent keeps the rows of every node in its own order.
type numberView struct {
	x      [][]float64 // [m][n]
	s      *sample
	sorted [][]int32 // [m][n] all rows sorted by the latent
	order  [][]int32 // [m] the tree's rows, each node's sorted by the latent

	lo, hi      int
	counts      []int32 // [K] of the entered rows
	total       int32
	before, now []int32 // [K] scratch
	goes        []bool  // [n] scratch
	spare       []int32
}

// newNumberView returns a view that shares sorted, the result of byValue.
func newNumberView(x [][]float64, sorted [][]int32, s *sample) *numberView {
	k := s.y.k
	return &numberView{x: x, s: s, sorted: sorted, order: make([][]int32, len(x)), goes: make([]bool, len(x[0])),
		counts: make([]int32, k), before: make([]int32, k), now: make([]int32, k)}
}

// byValue sorts the rows by every latent.
func byValue(x [][]float64) [][]int32 {
	sorted := make([][]int32, len(x))
	for j, c := range x {
		sorted[j] = make([]int32, len(c))
		for r := range c {
			sorted[j][r] = int32(r)
		}
		slices.SortStableFunc(sorted[j], func(a, b int32) int { return cmp.Compare(c[a], c[b]) })
	}
	return sorted
}

func (v *numberView) features() int { return len(v.x) }

func (v *numberView) begin(weight []int32) {
	for j, all := range v.sorted {
		v.order[j] = v.order[j][:0]
		for _, r := range all {
			if weight[r] > 0 {
				v.order[j] = append(v.order[j], r)
			}
		}
	}
}

func (v *numberView) rows(lo, hi int) []int32 { return span(v.order[0], lo, hi) }

func (v *numberView) enter(lo, hi int) {
	v.lo, v.hi = lo, hi
	v.total = v.s.gather(v.counts, v.order[0][lo:hi])
}

func (v *numberView) leave(lo, hi int) {}

// cut moves the rows from right to left in order of value, updating both sums of w ln w.
func (v *numberView) cut(f int) (threshold, cost float64, ok bool) {
	rows, x := v.order[f][v.lo:v.hi], v.x[f]
	clear(v.before)
	copy(v.now, v.counts)
	l, left, right := int32(0), 0.0, 0.0
	for _, c := range v.counts {
		right += v.s.xlogx[c]
	}
	for i, r := range rows[:len(rows)-1] {
		w, y := v.s.weight[r], v.s.y.of[r]
		b, n := v.before[y], v.now[y]
		left += v.s.xlogx[b+w] - v.s.xlogx[b]
		right += v.s.xlogx[n-w] - v.s.xlogx[n]
		v.before[y], v.now[y] = b+w, n-w
		l += w
		here, next := x[r], x[rows[i+1]]
		if next <= here+leastBetween {
			continue
		}
		c := v.s.xlogx[l] - left + v.s.xlogx[v.total-l] - right
		if !ok || c < cost {
			threshold, cost, ok = here+(next-here)/2, c, true
		}
	}
	return threshold, cost, ok
}

func (v *numberView) left(row, f int, threshold float64) bool { return v.x[f][row] <= threshold }

func (v *numberView) divide(lo, hi, f int, threshold float64) int {
	mid := lo
	for _, r := range v.order[f][lo:hi] {
		v.goes[r] = v.left(int(r), f, threshold)
		if v.goes[r] {
			mid++
		}
	}
	for j := range v.order {
		if j == f {
			continue // sorted by f, the rows that go left are already in front
		}
		at, rows := lo, v.order[j]
		v.spare = v.spare[:0]
		for _, r := range rows[lo:hi] {
			if v.goes[r] {
				rows[at] = r
				at++
			} else {
				v.spare = append(v.spare, r)
			}
		}
		copy(rows[at:hi], v.spare)
	}
	return mid
}

// weighted appends the rows with weight above 0.
func weighted(dst []int32, weight []int32) []int32 {
	for r, w := range weight {
		if w > 0 {
			dst = append(dst, int32(r))
		}
	}
	return dst
}

// span is rows lo to hi; a negative hi selects all rows.
func span(rows []int32, lo, hi int) []int32 {
	if hi < 0 {
		return rows
	}
	return rows[lo:hi]
}

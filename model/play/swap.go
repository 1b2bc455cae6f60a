package play

import (
	"math"
	"slices"

	"slotscope/model/measure/metric"
)

// With returns a copy of a tuple with code c in slot i.
func With(tuple []int, i, c int) []int {
	out := slices.Clone(tuple)
	out[i] = c
	return out
}

// Take returns a copy of a with the given slots from b.
func Take(a, b, slots []int) []int {
	out := slices.Clone(a)
	for _, i := range slots {
		out[i] = b[i]
	}
	return out
}

// Swaps returns the m tuples of a with one slot from b.
//
//	swap_i = (a_0 … b_i … a_{m−1})            paper, “Latent component swapping”
func Swaps(a, b []int) [][]int {
	out := make([][]int, len(a))
	for i := range a {
		out[i] = With(a, i, b[i])
	}
	return out
}

// Interpolation returns the m+1 tuples from a to b, replacing one more slot in each, in an order that lists each slot once.
//
//	step_j = step_{j−1} with slot order_j of b            paper, “Latent interpolation”
func Interpolation(a, b, order []int) [][]int {
	out := make([][]int, 0, len(a)+1)
	out = append(out, slices.Clone(a))
	for _, i := range order {
		out = append(out, With(out[len(out)-1], i, b[i]))
	}
	return out
}

// Difference measures how two images of the same size differ.
type Difference struct {
	Changed float64 `json:"changed"` // fraction of pixels with a channel difference above ChangedBy
	Mean    float64 `json:"mean"`    // mean absolute difference over pixels and channels, of 255
	PSNR    float64 `json:"psnr"`    // dB; 100 if they are equal
}

// ChangedBy is the difference, of 255, above which a pixel counts as changed: about what is visible.
const ChangedBy = 8

// Compare measures x against y, both H × W × C bytes with c channels.
func Compare(x, y []byte, c int) Difference {
	changed, sum, square := 0, 0.0, 0.0
	for p := 0; p < len(x); p += c {
		most := 0
		for ch := range c {
			d := int(x[p+ch]) - int(y[p+ch])
			most = max(most, d, -d)
			sum += math.Abs(float64(d))
			square += float64(d * d)
		}
		if most > ChangedBy {
			changed++
		}
	}
	n := float64(len(x))
	return Difference{
		Changed: float64(changed) * float64(c) / n,
		Mean:    sum / n,
		PSNR:    metric.PSNR(square / n / (255 * 255)),
	}
}

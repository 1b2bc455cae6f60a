package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Axis is the x or y axis of a chart.
type Axis struct {
	Label string     // quantity and unit: "SNR, dB"
	Log   bool       // logarithmic; values ≤ 0 are omitted and counted
	Range [2]float64 // smallest and largest value shown; equal to fit the data
	Ticks []float64  // positions of labels; empty for round numbers
}

// scale maps values to pixels.
type scale struct {
	log      bool
	min, max float64
	from, to float64 // pixels of min and max
}

func (s scale) fits(v float64) bool { return finite(v) && (!s.log || v > 0) }

// at is the position of a value, which may be beyond the ends.
func (s scale) at(v float64) float64 {
	min, max := s.min, s.max
	if s.log {
		v, min, max = math.Log(v), math.Log(min), math.Log(max)
	}
	return s.from + (v-min)/(max-min)*(s.to-s.from)
}

// inside is at, clamped to the ends.
func (s scale) inside(v float64) float64 {
	low, high := s.from, s.to
	if low > high {
		low, high = high, low
	}
	if s.log && v <= 0 {
		return s.from
	}
	return min(max(s.at(v), low), high)
}

// scale chooses the range: the given one, or that of all usable values, with round ends on a linear axis.
func (a Axis) scale(values []float64, from, to float64) scale {
	s := scale{log: a.Log, min: a.Range[0], max: a.Range[1], from: from, to: to}
	if s.min < s.max && s.fits(s.min) && s.fits(s.max) {
		return s
	}
	s.min, s.max = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if s.fits(v) {
			s.min, s.max = min(s.min, v), max(s.max, v)
		}
	}
	return s.widen()
}

// widen expands an empty or single-valued range, and rounds the ends of a linear one.
func (s scale) widen() scale {
	switch {
	case s.min > s.max:
		s.min, s.max = 1, 10
	case s.log && s.min == s.max:
		s.min, s.max = s.min/2, s.max*2
	case s.log:
	default:
		if s.min == s.max {
			room := max(math.Abs(s.min)*0.1, 1e-9)
			s.min, s.max = s.min-room, s.max+room
		}
		step := roundStep((s.max - s.min) / 5)
		s.min, s.max = math.Floor(s.min/step+1e-9)*step, math.Ceil(s.max/step-1e-9)*step
	}
	return s
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power*(1+1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// ticks are the labelled values, at most room of them.
func (a Axis) ticks(s scale, room int) []float64 {
	var ticks []float64
	switch {
	case len(a.Ticks) > 0:
		ticks = slices.Clone(a.Ticks)
	case s.log:
		if ticks = logTicks(s, room); len(ticks) < 3 && s.max < 10*s.min {
			ticks = evenTicks(s, room)
		}
	default:
		ticks = evenTicks(s, room)
	}
	return slices.DeleteFunc(ticks, func(v float64) bool {
		return !s.fits(v) || v < s.min-1e-9*math.Abs(s.min) || v > s.max+1e-9*math.Abs(s.max)
	})
}

// evenTicks are multiples of a round step.
func evenTicks(s scale, room int) (ticks []float64) {
	step := roundStep((s.max - s.min) / float64(max(room, 2)))
	for i := math.Ceil(s.min/step - 1e-9); i*step <= s.max+step*1e-9; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// logTicks are powers of ten, with 2 and 5 times or 3 times them if they fit, or every n-th power if not.
func logTicks(s scale, room int) []float64 {
	first, last := int(math.Floor(math.Log10(s.min)+1e-9)), int(math.Ceil(math.Log10(s.max)-1e-9))
	for _, factors := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var ticks []float64
		for e := first; e <= last; e++ {
			for _, f := range factors {
				if v := f * math.Pow(10, float64(e)); v >= s.min*(1-1e-9) && v <= s.max*(1+1e-9) {
					ticks = append(ticks, v)
				}
			}
		}
		if len(ticks) <= max(room, 2)+1 {
			return ticks
		}
	}
	every := (last - first + max(room, 1) - 1) / max(room, 1)
	var ticks []float64
	for e := first; e <= last; e += every {
		ticks = append(ticks, math.Pow(10, float64(e)))
	}
	return ticks
}

// Number formats a value with at most four significant digits: 0.25, 1,500, 2e-5, −3, ∞; – if it is not a number.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return strings.NewReplacer("+Inf", "∞", "-Inf", "−∞").Replace(strconv.FormatFloat(v, 'f', -1, 64))
	case size != 0 && (size < 1e-3 || size >= 1e6):
		return exponent(v)
	case size >= 1000:
		return grouped(v)
	}
	return strings.Replace(strconv.FormatFloat(significant(v), 'f', -1, 64), "-", "−", 1)
}

func significant(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil || rounded == 0 {
		return 0
	}
	return rounded
}

func exponent(v float64) string {
	s := strconv.FormatFloat(significant(v), 'e', -1, 64)
	mantissa, power, _ := strings.Cut(s, "e")
	sign := ""
	if power[0] == '-' {
		sign = "−"
	}
	return strings.Replace(mantissa, "-", "−", 1) + "e" + sign + strings.TrimLeft(power[1:], "0")
}

func grouped(v float64) string {
	s := strconv.FormatFloat(math.Round(math.Abs(v)), 'f', -1, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		return "−" + s
	}
	return s
}

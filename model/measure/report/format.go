package report

import (
	"math"
	"strconv"
	"strings"
)

// Rounded formats a mean and the half-width of its interval as the paper does: the half-width to one significant digit, the mean to the
// same place, as in 0.340 and 0.007, or 41 and 4. If the interval reaches zero, which would leave at most one digit of the mean, the mean
// gets two digits but at most two decimals: 0.68 and 1.67 rather than 1 and 2. Without an interval, half is empty and the mean has plain
// decimals; without a value, both are empty.
func (s Summary) Rounded(plain int) (mean, half string) {
	switch {
	case s.N == 0 || !finite(s.Mean):
		return "", ""
	case !s.Interval() || !finite(s.Half):
		return fixed(s.Mean, plain), ""
	case s.Half < negligible:
		return fixed(s.Mean, plain), "0"
	}
	place := firstPlace(s.Half)
	if s.Half >= math.Abs(s.Mean) {
		place = min(place, max(firstPlace(s.Mean)-1, -2))
	}
	return fixed(s.Mean, -place), fixed(s.Half, -place)
}

// negligible is the largest half-width attributed to the rounding of equal values, including float32 ones.
const negligible = 1e-7

// Text is Rounded as one phrase, "0.340 ± 0.007", or a dash without a value.
func (s Summary) Text(plain int) string {
	mean, half := s.Rounded(plain)
	switch {
	case mean == "":
		return "–"
	case half == "":
		return mean
	}
	return mean + " ± " + half
}

// firstPlace is the power of ten of v's first significant digit, after rounding to that digit: −3 for 0.0068, −1 for 0.096.
func firstPlace(v float64) int {
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 0, 64), "e")
	place, _ := strconv.Atoi(exponent)
	return place
}

// fixed formats v with that many decimals (negative: rounded to tens or hundreds), with a true minus sign and never −0.
func fixed(v float64, decimals int) string {
	if !finite(v) {
		return "–"
	}
	if decimals < 0 {
		unit := math.Pow(10, float64(-decimals))
		v, decimals = math.Round(v/unit)*unit, 0
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return strings.Replace(text, "-", "−", 1)
}

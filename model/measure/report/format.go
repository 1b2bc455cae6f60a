package report

import (
	"math"
	"strconv"
	"strings"
)

// Rounded writes a mean and the half width of its interval as the paper does: the half width to one significant digit, the
// mean to the same place, as in 0.340 and 0.007, or 41 and 4. Where the interval reaches from the mean to zero or beyond, which would leave
// one digit of the mean or none, the mean has two, of at most two decimals: 0.68 and 1.67 rather than 1 and 2. Where there is no interval,
// half is empty and the mean has plain decimals; both are empty where there is no value.
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

// negligible is a half width that is nothing but the rounding of equal values, float32 ones among them.
const negligible = 1e-7

// Text is Rounded as one phrase, "0.340 ± 0.007"; a dash stands where there is nothing.
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

// firstPlace is the power of ten of v's one significant digit, after rounding to it: −3 for 0.0068, −1 for 0.096.
func firstPlace(v float64) int {
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 0, 64), "e")
	place, _ := strconv.Atoi(exponent)
	return place
}

// fixed rounds v to that many decimals, tens and hundreds for negative ones, with a true minus sign and never −0.
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

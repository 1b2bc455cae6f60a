package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count formats an integer with thousands separators: 125,000.
func Count(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural formats a count with its noun: 1 run, 2 runs.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Sentence capitalizes text and adds a full stop.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	runes := []rune(text)
	runes[0] = []rune(strings.ToUpper(string(runes[0])))[0]
	text = string(runes)
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

// Duration formats seconds in at most two units: 48 s, 25 min, 1 h 40 min, 2 d 3 h.
func Duration(seconds float64) string {
	if math.IsNaN(seconds) || seconds < 0 || seconds > 1e9 {
		return "–"
	}
	s := int(math.Round(seconds))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 600:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", s/60, s%60), " 0 s")
	case s < 3600:
		return fmt.Sprintf("%d min", (s+30)/60)
	case s < 48*3600:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", s/3600, s%3600/60), " 0 min")
	}
	return strings.TrimSuffix(fmt.Sprintf("%d d %d h", s/86400, s%86400/3600), " 0 h")
}

// Ago formats the time from t to now: 5 min ago.
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return Duration(max(0, now.Sub(t).Seconds())) + " ago"
}

// Rate formats images per second: two decimals below 10, one below 100, none above.
func Rate(v float64) string {
	switch {
	case v <= 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return Count(int(math.Round(v)))
}

// Decibels formats a PSNR in dB; nil means not measured yet.
func Decibels(v *float64) string {
	if v == nil || math.IsNaN(*v) {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// Clock formats a time for <time datetime>, as RFC 3339 in UTC.
func Clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Day formats a time for display, to the minute, in UTC.
func Day(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006 15:04")
}

// Size formats bytes in binary units: 1.5 GiB.
func Size(bytes uint64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	v, i := float64(bytes), -1
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

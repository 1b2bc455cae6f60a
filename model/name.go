package model

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LongestName is the most characters that a run's name may have.
const LongestName = 200

// CleanName trims a run's name and refuses, as Invalid, what no line can show.
func CleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", Invalid{"name": "a name must be one line"}
	case utf8.RuneCountInString(name) > LongestName:
		return "", Invalid{"name": fmt.Sprintf("a name has at most %d characters", LongestName)}
	}
	return name, nil
}

package model

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LongestName is the maximum length of a run's name, in characters.
const LongestName = 200

// CleanName trims a run's name; it returns an Invalid if the name is too long or is not one line of text.
func CleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", Invalid{"name": "a name must be one line of text"}
	case utf8.RuneCountInString(name) > LongestName:
		return "", Invalid{"name": fmt.Sprintf("a name can have at most %d characters", LongestName)}
	}
	return name, nil
}

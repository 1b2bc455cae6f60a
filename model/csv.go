package model

import "strings"

// CSVText escapes a name for a CSV file: spreadsheets treat a cell that begins with one of these characters as a formula.
func CSVText(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r\n", rune(name[0])) {
		return "'" + name
	}
	return name
}

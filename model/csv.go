package model

import "strings"

// CSVText keeps a name in a CSV file from being computed: spreadsheets take a cell for a formula if it begins with one of these characters.
func CSVText(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r\n", rune(name[0])) {
		return "'" + name
	}
	return name
}

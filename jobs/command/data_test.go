package command

import (
	"strings"
	"testing"

	"slotscope/model/data"
)

// TestDescriptionIsOfLines checks that names of factors and values from a file can neither break their line nor control the terminal.
func TestDescriptionIsOfLines(t *testing.T) {
	var out strings.Builder
	explain(&out, data.Info{Title: "mine", Len: 2, H: 64, W: 64, C: 1, About: "The pictures of a\nb.", Note: "c\x1b[31m",
		Factors: []data.Factor{{Name: "x|y\nz", Values: []string{"1\r", "\x1b[2J"}}, {Name: "one", Values: []string{"0"}}}})
	const want = "mine: 2 images of 64×64×1 bytes\nThe pictures of a b.\nc [31m\n  x|y z                  2 values: 1  …  [2J\n  one                    1 value:  0\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

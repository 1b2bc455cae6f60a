package play

import (
	"math"
	"slices"
	"strconv"

	"slotscope/model"
)

// A slot of a variational autoencoder holds a real number. The playground rounds such numbers to a grid, so that a tuple is m whole numbers
// for every model: code c represents (c − 1024)/64, from −16 to 16 in steps that are small compared to the standard deviations of the prior
// (1) and of the posteriors.
const (
	gridZero  = 1024 // the code of 0
	gridSteps = 64   // codes per unit
	gridCodes = 2*gridZero + 1
	gridMark  = gridSteps / 4 // codes between two entries of the palette: a quarter
)

// Continuous reports whether slots hold real numbers, which codes then represent, rather than codebook entries.
func (m *Model) Continuous() bool { return !m.Config.Discrete() }

// Codes returns the number of codes of a slot: k, or the size of the grid for real numbers.
func (m *Model) Codes() int {
	if m.Continuous() {
		return gridCodes
	}
	return m.Config.K
}

// Value returns the real number that a code represents, if slots are continuous.
func (m *Model) Value(c int) float64 { return float64(c-gridZero) / gridSteps }

// Text formats a code: its number, or the real number that it represents, such as "+0.25".
func (m *Model) Text(c int) string {
	if !m.Continuous() {
		return strconv.Itoa(c)
	}
	text := strconv.FormatFloat(m.Value(c), 'f', 2, 64)
	if c > gridZero {
		text = "+" + text
	}
	return text
}

// Nothing returns the initial tuple without an image: code 0, or the real number 0, in every slot.
func (m *Model) Nothing() []int {
	out := make([]int, m.Config.M)
	for i := range out {
		if m.Continuous() {
			out[i] = gridZero
		}
	}
	return out
}

// Entries returns the codes listed for a slot: all k, or the multiples of a quarter for real numbers.
func (m *Model) Entries() []int { return entriesOf(m.Config) }

func entriesOf(c model.Config) []int {
	codes, step := c.K, 1
	if !c.Discrete() {
		codes, step = gridCodes, gridMark
	}
	out := make([]int, 0, codes/step+1)
	for c := 0; c < codes; c += step {
		out = append(out, c)
	}
	return out
}

// entry returns the position in Entries of the entry nearest to a code.
func (m *Model) entry(c int) int {
	if m.Continuous() {
		return (c + gridMark/2) / gridMark
	}
	return c
}

// Kept returns the slots whose code is preserved in again: equal, or within a quarter for real numbers.
func (m *Model) Kept(codes, again []int) []int {
	near := 0
	if m.Continuous() {
		near = gridMark
	}
	var kept []int
	for i, c := range codes {
		if d := again[i] - c; max(d, -d) <= near {
			kept = append(kept, i)
		}
	}
	return kept
}

// gridCode returns the code nearest to a real number, clamped to the grid.
func gridCode(v float32) int32 {
	c := math.Round(float64(v)*gridSteps) + gridZero
	if math.IsNaN(c) {
		return gridZero
	}
	return int32(min(max(c, 0), gridCodes-1))
}

// vectors returns the entries of a slot's codebook, [k] of any length, or nil if the checkpoint has none.
func (m *Model) vectors(slot int) [][]float32 {
	all := m.codebook()
	switch {
	case m.Continuous():
		return m.marks()
	case m.Config.OwnCodebooks() && slot < len(all): // its rows are the slots' own values
		return slices.Collect(slices.Chunk(all[slot], 1))
	}
	return all
}

func (m *Model) marks() [][]float32 {
	var out [][]float32
	for _, c := range m.Entries() {
		out = append(out, []float32{float32(m.Value(c))})
	}
	return out
}

package play

import (
	"math"
	"slices"
	"strconv"

	"slotscope/model"
)

// A slot of a variational autoencoder holds a real number. The playground takes such numbers on a grid, so that a tuple is m
// whole numbers for every model: code c stands for (c − 1024)/64, which reaches from −16 to 16 in steps a fraction of the
// prior's deviation, 1, and of what the posteriors leave open.
const (
	gridZero  = 1024 // the code of 0
	gridSteps = 64   // codes per unit
	gridCodes = 2*gridZero + 1
	gridMark  = gridSteps / 4 // codes between two entries of the palette: a quarter
)

// Continuous says whether slots hold real numbers, which codes stand for; else they take codes.
func (m *Model) Continuous() bool { return !m.Config.Discrete() }

// Codes is how many codes a slot can take: k, or for real numbers the size of their grid.
func (m *Model) Codes() int {
	if m.Continuous() {
		return gridCodes
	}
	return m.Config.K
}

// Value is the real number that a code stands for, where slots hold such.
func (m *Model) Value(c int) float64 { return float64(c-gridZero) / gridSteps }

// Text is how a code is written: its number, or the real number that it stands for, as "+0.25".
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

// Nothing is the tuple to begin with where no image is at hand: code 0 everywhere, or the real number 0.
func (m *Model) Nothing() []int {
	out := make([]int, m.Config.M)
	for i := range out {
		if m.Continuous() {
			out[i] = gridZero
		}
	}
	return out
}

// Entries are the codes on offer for a slot: all k, or of a grid every quarter.
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

// entry is the place in Entries of what is nearest to a code.
func (m *Model) entry(c int) int {
	if m.Continuous() {
		return (c + gridMark/2) / gridMark
	}
	return c
}

// Kept lists the slots whose code comes back in again: the same, or a real number within a quarter.
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

// gridCode is the code nearest to a real number; what lies beyond the grid takes its end.
func gridCode(v float32) int32 {
	c := math.Round(float64(v)*gridSteps) + gridZero
	if math.IsNaN(c) {
		return gridZero
	}
	return int32(min(max(c, 0), gridCodes-1))
}

// vectors are the entries of a slot's codebook, [k] of any length, or nil where a checkpoint has none.
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

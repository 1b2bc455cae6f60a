package metric

import "math/bits"

// generator is NumPy's default generator, PCG64 seeded through SeedSequence, restricted to permutations: scores on shuffled rows use the
// same draws as the reference program.
type generator struct {
	hi, lo       uint64 // state
	incHi, incLo uint64
	spare        uint32 // upper half of the last draw
	spared       bool
}

// pcgHi and pcgLo are O'Neill's multiplier of PCG's 128-bit state.
const pcgHi, pcgLo = 0x2360ed051fc65da4, 0x4385df649fccf645

// newGenerator is numpy.random.default_rng(seed) for non-negative seeds.
func newGenerator(seed uint64) *generator {
	s := seedWords(seed)
	g := &generator{incHi: s[2]<<1 | s[3]>>63, incLo: s[3]<<1 | 1}
	g.advance()
	var carry uint64
	g.lo, carry = bits.Add64(g.lo, s[1], 0)
	g.hi, _ = bits.Add64(g.hi, s[0], carry)
	g.advance()
	return g
}

// seedWords are the four words that SeedSequence derives from a number.
func seedWords(seed uint64) (words [4]uint64) {
	pool, a := [4]uint32{uint32(seed), uint32(seed >> 32)}, uint32(0x43b0d7e5)
	hash := func(v uint32) uint32 {
		v ^= a
		a *= 0x931e8875
		v *= a
		return v ^ v>>16
	}
	for i, v := range pool {
		pool[i] = hash(v)
	}
	for from := range pool {
		for to := range pool {
			if from != to {
				v := 0xca01f9dd*pool[to] - 0x4973f715*hash(pool[from])
				pool[to] = v ^ v>>16
			}
		}
	}
	b := uint32(0x8b51f9dd)
	for i := range 8 {
		v := pool[i%4] ^ b
		b *= 0x58f38ded
		v *= b
		words[i/2] |= uint64(v^v>>16) << (32 * (i % 2))
	}
	return words
}

func (g *generator) advance() {
	hi, lo := bits.Mul64(g.lo, pcgLo)
	hi += g.hi*pcgLo + g.lo*pcgHi
	var carry uint64
	g.lo, carry = bits.Add64(lo, g.incLo, 0)
	g.hi, _ = bits.Add64(hi, g.incHi, carry)
}

// half is the next 32 bits: the lower half of a draw, then the upper.
func (g *generator) half() uint32 {
	if g.spared {
		g.spared = false
		return g.spare
	}
	g.advance()
	v := bits.RotateLeft64(g.hi^g.lo, -int(g.hi>>58))
	g.spare, g.spared = uint32(v>>32), true
	return uint32(v)
}

// upTo is one of 0 … most: it takes the lowest bits that most needs, and repeats while they exceed it.
func (g *generator) upTo(most uint32) uint32 {
	mask := uint32(1)<<bits.Len32(most) - 1
	for {
		if v := g.half() & mask; v <= most {
			return v
		}
	}
}

// order is generator.permutation(n).
func (g *generator) order(n int) []int {
	rows := make([]int, n)
	for r := range rows {
		rows[r] = r
	}
	for i := n - 1; i > 0; i-- {
		j := g.upTo(uint32(i))
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}

// orders are several permutations of n rows, drawn one after another.
func (g *generator) orders(count, n int) [][]int {
	out := make([][]int, count)
	for i := range out {
		out[i] = g.order(n)
	}
	return out
}

package metric

// referenceSplit divides n rows into nine tenths and a held-out tenth, with the same rows as the reference: the first ⌈n/10⌉ of NumPy's
// permutation of n, seeded with 42, are held out.
//
//	train_test_split(test_size=0.1, random_state=42)            Hsu et al. 2024, dci.py
func referenceSplit(n int) (train, test []int) {
	order, random := make([]int, n), newTwister(42)
	for i := range order {
		order[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := random.upTo(uint32(i))
		order[i], order[j] = order[j], order[i]
	}
	cut := (n + 9) / 10
	return order[cut:], order[:cut]
}

// twister is the MT19937 generator of Matsumoto and Nishimura (1998).
type twister struct {
	state [624]uint32
	next  int
}

func newTwister(seed uint32) *twister {
	t := &twister{next: 624}
	t.state[0] = seed
	for i := 1; i < 624; i++ {
		t.state[i] = 1812433253*(t.state[i-1]^t.state[i-1]>>30) + uint32(i)
	}
	return t
}

// upTo draws one of 0 … most: it takes the lowest bits that most needs, and repeats while they exceed it.
func (t *twister) upTo(most uint32) uint32 {
	mask := most
	for shift := 1; shift < 32; shift *= 2 {
		mask |= mask >> shift
	}
	for {
		if v := t.draw() & mask; v <= most {
			return v
		}
	}
}

func (t *twister) draw() uint32 {
	if t.next == 624 {
		t.twist()
	}
	y := t.state[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (t *twister) twist() {
	for i := range t.state {
		y := t.state[i]&0x80000000 | t.state[(i+1)%624]&0x7fffffff
		t.state[i] = t.state[(i+397)%624] ^ y>>1
		if y&1 == 1 {
			t.state[i] ^= 0x9908b0df
		}
	}
	t.next = 0
}

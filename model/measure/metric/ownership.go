package metric

import (
	"math/rand/v2"
	"slices"
	"strings"

	"slotscope/model"
)

// Thresholds of ownership, in NMI above chance.
const (
	ownedFrom  = 0.5 // minimum NMI of the factor that owns a slot,
	ownedAbove = 0.2 // and its minimum lead over the second factor;
	namedFrom  = 0.3 // minimum NMI of a factor that names a slot without an owner
)

// Own determines which factors the latents of a table represent. seed determines shuffles and the noise that breaks ties.
func Own(t Table, seed int64) model.Ownership {
	nmi := aboveChanceNMI(t, seed)
	return OwnersOf(nmi, activity(t))
}

// OwnersOf applies the ownership rule to an NMI matrix [F][m]; active [m] marks the slots that vary.
//
//	owned    NMI₁ ≥ 0.5 and NMI₁ − NMI₂ ≥ 0.2            NMI₁ ≥ NMI₂ ≥ … are the slot's values over factors
//	several  otherwise, named after all factors with NMI ≥ 0.3
//	mixed    none of these
//	unused   the slot takes a single code
func OwnersOf(nmi [][]model.Score, active []bool) model.Ownership {
	o := model.Ownership{NMI: nmi, Slots: make([]model.Owner, len(active)), Coverage: model.Undefined()}
	owned, slots, varying := make([]bool, len(nmi)), make([][]int, len(nmi)), 0
	for j, on := range active {
		if o.Slots[j] = ownerOf(nmi, j, on); o.Slots[j].First >= 0 {
			slots[o.Slots[j].First] = append(slots[o.Slots[j].First], j)
		}
		if f := o.Slots[j].Factor(); f >= 0 {
			owned[f] = true
		}
	}
	for f, row := range nmi {
		if slices.ContainsFunc(row, model.Score.Defined) {
			varying++
		}
		if len(slots[f]) > 0 {
			o.Groups = append(o.Groups, model.Group{Factor: f, Slots: slots[f], Owned: owned[f]})
		}
	}
	if varying > 0 {
		o.Coverage = model.Score(float64(o.Owned()) / float64(varying))
	}
	return o
}

// ownerOf applies the rule to one column of the matrix.
func ownerOf(nmi [][]model.Score, slot int, active bool) model.Owner {
	if !active {
		return model.Owner{Kind: model.Unused, First: -1, Factors: []int{}}
	}
	var order []int // factors with positive NMI, largest first
	for f, row := range nmi {
		if row[slot].Defined() && row[slot] > 0 {
			order = append(order, f)
		}
	}
	at := func(i int) float64 {
		if i >= len(order) {
			return 0
		}
		return float64(nmi[order[i]][slot])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := nmi[a][slot], nmi[b][slot]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	named := order[:len(order):len(order)]
	for len(named) > 0 && at(len(named)-1) < namedFrom {
		named = named[:len(named)-1]
	}
	switch {
	case len(order) == 0:
		return model.Owner{Kind: model.Mixed, First: -1, Factors: []int{}}
	case at(0) >= ownedFrom && at(0)-at(1) >= ownedAbove:
		return model.Owner{Kind: model.Owned, First: order[0], Factors: order[:1:1]}
	case len(named) == 0:
		return model.Owner{Kind: model.Mixed, First: order[0], Factors: []int{}}
	}
	return model.Owner{Kind: model.Several, First: order[0], Factors: named}
}

// OwnerName is the name of a slot: "shape", "shape + wall hue", "partly shape", "mixed" or "unused". names are the factors' names.
func OwnerName(o model.Owner, names []string) string {
	switch {
	case o.Kind == model.Mixed || o.Kind == model.Unused:
		return string(o.Kind)
	case o.Kind == model.Several && len(o.Factors) == 1:
		return "partly " + plain(names[o.Factors[0]])
	}
	all := make([]string, len(o.Factors))
	for i, f := range o.Factors {
		all[i] = plain(names[f])
	}
	return strings.Join(all, " + ")
}

// plain formats a factor's name as words.
func plain(name string) string { return strings.ReplaceAll(name, "_", " ") }

// aboveChanceNMI is the NMI matrix [F][m] minus the information that independent codes share by chance on as many rows.
//
//	max(0, (I(s; z) − E) / (H(s) − E))            E is the mean of I over shuffled codes; 0 for numbers
//
// Without the correction, a slot with 500 codes has an NMI of 0.2 with any factor on 4,096 rows. On 10,000 rows with 20 codes per slot,
// the correction is less than 0.01. Ross's estimator, which is used for numbers, has no such bias.
func aboveChanceNMI(t Table, seed int64) [][]model.Score {
	factors := labelAll(t.Factors)
	if !t.discrete() {
		return relate(t, factors, seed).nmi
	}
	nmi, codes := make([][]model.Score, len(factors)), labelAll(t.Codes)
	for f := range factors {
		nmi[f] = undefined(len(codes))
	}
	for j, z := range codes {
		chance := shuffledInformation(z, factors, uint64(seed), uint64(j))
		for _, f := range kept(factors) {
			told, h := mutual(factors[f], z), factors[f].entropy()
			nmi[f][j] = 0
			if room := h - chance[f]; room > 1e-9 && told > chance[f] {
				nmi[f][j] = model.Score(min(1, (told-chance[f])/room))
			}
		}
	}
	return nmi
}

const shuffles = 3

// shuffledInformation is the mean of I(s; z) over shuffles of z, for every factor.
func shuffledInformation(z labels, factors []labels, seed, slot uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 'o'<<32|slot))
	mean, mixed := make([]float64, len(factors)), labels{slices.Clone(z.of), z.k}
	for range shuffles {
		rng.Shuffle(len(mixed.of), func(a, b int) { mixed.of[a], mixed.of[b] = mixed.of[b], mixed.of[a] })
		for _, f := range kept(factors) {
			mean[f] += mutual(factors[f], mixed) / shuffles
		}
	}
	return mean
}

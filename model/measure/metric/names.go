package metric

import (
	"cmp"
	"slices"

	"slotscope/model"
)

// CodeNames says what each code of each slot stands for: the value of the slot's own factor that is most frequent among the
// rows that take the code, and how frequent.
//
//	P(s = a | z_i = c) = n(s = a, z_i = c) / n(z_i = c)
//
// The result is [m], the codes of a slot most used first. The slot's own factor is the first that it is named after; mixed and unused slots
// name no codes.
func CodeNames(t Table, owners []model.Owner) []model.CodeNames {
	all := make([]model.CodeNames, len(t.Codes))
	for i, codes := range t.Codes {
		if all[i].Factor = -1; len(owners[i].Factors) == 0 {
			continue
		}
		all[i].Factor = owners[i].Factors[0]
		joint := map[int]map[int]int{}
		for n, c := range codes {
			if joint[c] == nil {
				joint[c] = map[int]int{}
			}
			joint[c][t.Factors[all[i].Factor][n]]++
		}
		for c, values := range joint {
			all[i].Codes = append(all[i].Codes, nameOf(c, values))
		}
		slices.SortFunc(all[i].Codes, func(a, b model.CodeName) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
		})
	}
	return all
}

// nameOf takes the most frequent value, of equally frequent ones the smallest.
func nameOf(code int, values map[int]int) model.CodeName {
	name, most := model.CodeName{Code: code}, 0
	for v, n := range values {
		name.Count += n
		if n > most || n == most && v < name.Value {
			name.Value, most = v, n
		}
	}
	name.Share = float64(most) / float64(name.Count)
	return name
}

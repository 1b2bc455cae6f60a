package metric

import (
	"cmp"
	"slices"

	"slotscope/model"
)

// CodeNames names each code of each slot by the most frequent value of the slot's own factor among the rows with that code, with its
// share of those rows.
//
//	P(s = a | z_i = c) = n(s = a, z_i = c) / n(z_i = c)
//
// The result is [m], each slot's codes by descending frequency. The slot's own factor is the first factor in its name; mixed and unused
// slots have no code names.
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

// nameOf returns the most frequent value, or the smallest of equally frequent ones.
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

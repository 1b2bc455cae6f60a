package metric

import "slotscope/model"

// mig is the mutual information gap of each factor: how much more information the best latent has about it than the second best.
//
//	MIG_i = (I_i(1) − I_i(2)) / H_i            Chen et al. 2018, eq. 6
//
// mi is [F][m]. A single latent is compared with 0.
func mig(mi [][]float64, h []float64) []float64 {
	gaps := make([]float64, len(mi))
	for i, row := range mi {
		first, second := topTwo(row)
		gaps[i] = (first - second) / h[i]
	}
	return gaps
}

// dcimig assigns each latent to the factor it has the most information about, and scores each factor by the largest gap of its latents.
//
//	Σ_i max{ g_j : i*(j) = i } / Σ_i H_i            Sepliarskaia et al. 2019; g_j = best − second best over factors
func dcimig(mi [][]float64, h []float64) float64 {
	best := make([]float64, len(mi))
	for _, column := range transposed(mi) {
		first, second := topTwo(column)
		own := 0
		for i, v := range column {
			if v > column[own] {
				own = i
			}
		}
		best[own] = max(best[own], first-second)
	}
	return sum(best) / sum(h)
}

// modularity is, for each latent, how far its information is about one factor only; 0 if it has none.
//
//	1 − (Σ_i I_ij² − max_i I_ij²) / ((F − 1) max_i I_ij²)            Ridgeway & Mozer 2018, eq. 2
//
// It is nil for a single factor. Noise scores about 0.7.
func modularity(mi [][]float64) []float64 {
	if len(mi) < 2 {
		return nil
	}
	scores := make([]float64, len(mi[0]))
	for j, column := range transposed(mi) {
		top, all := 0.0, 0.0
		for _, v := range column {
			top, all = max(top, v*v), all+v*v
		}
		if top > 0 {
			scores[j] = 1 - (all-top)/(top*float64(len(mi)-1))
		}
	}
	return scores
}

// infoMC is InfoM and InfoC of a matrix [F][m] over the latents that vary. Latents without information are excluded from InfoM; with
// strict they count as 0, which is right for noise after a bias correction.
func infoMC(nmi [][]float64, varying []bool, strict bool) (m, c model.Score) {
	var p [][]float64
	for j, column := range transposed(nmi) {
		if varying[j] {
			p = append(p, column) // [a][F]
		}
	}
	if len(p) == 0 {
		return 0, 0
	}
	return concentration(p, !strict), concentration(transposed(p), false)
}

// concentration is the mean share of the largest entry of each row, scaled so that even rows are 0; undefined for a single column. Rows
// of zeros count as even, or are excluded if omit is set.
func concentration(rows [][]float64, omit bool) model.Score {
	width := len(rows[0])
	if width < 2 {
		return model.Undefined()
	}
	shares, count := 0.0, 0
	for _, row := range rows {
		largest, all := peak(width, func(i int) float64 { return row[i] })
		switch {
		case all > 0:
			shares += largest / all
		case omit:
			continue
		default:
			shares += 1 / float64(width)
		}
		count++
	}
	if count == 0 {
		return model.Undefined()
	}
	return aboveChance(shares/float64(count), width)
}

// corrected are InfoM and InfoC of the information above its bias, over entropies corrected to match.
func (v information) corrected(bias func(i, j int) float64, room func(i, j int) float64) (m, c model.Score) {
	nmi := make([][]float64, len(v.plugin))
	for i, row := range v.plugin {
		nmi[i] = make([]float64, len(row))
		for j, mi := range row {
			if h := room(i, j); h > crumb {
				nmi[i][j] = gated(mi, bias(i, j), v.n) / h
			}
		}
	}
	return infoMC(nmi, v.varying, true)
}

// scores adds MIG, DCIMIG, modularity, and InfoM and InfoC by three estimators.
func (v information) scores(to map[string]model.Score) {
	to["mig"], to["mig_mm"] = model.Score(mean(mig(v.plugin, v.h))), model.Score(mean(mig(v.mm, v.hMM)))
	to["dcimig"] = model.Score(dcimig(v.plugin, v.h))
	to["modularity"], to["modularity_active"] = model.Undefined(), model.Undefined()
	if latents := modularity(v.plugin); latents != nil {
		to["modularity"], to["modularity_active"] = model.Score(mean(latents)), 0
		var active []float64
		for j, on := range v.varying {
			if on {
				active = append(active, latents[j])
			}
		}
		if active != nil {
			to["modularity_active"] = model.Score(mean(active))
		}
	}
	nmi := make([][]float64, len(v.plugin))
	for i, row := range v.plugin {
		for _, mi := range row {
			nmi[i] = append(nmi[i], mi/v.h[i])
		}
	}
	to["infom_plugin"], to["infoc_plugin"] = infoMC(nmi, v.varying, false)
	to["infom_mm"], to["infoc_mm"] = v.corrected(
		func(i, j int) float64 { return v.plugin[i][j] - v.mm[i][j] },
		func(i, _ int) float64 { return v.hMM[i] })
	to["infom_adj"], to["infoc_adj"] = v.corrected(
		func(i, j int) float64 { return v.chance[i][j] },
		func(i, j int) float64 { return v.h[i] - v.chance[i][j] })
}

package report

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"slotscope/model"
	"slotscope/model/measure/metric"
)

// UDRKey is the key of the unsupervised disentanglement ranking, which is defined for a run among the other seeds of its group.
const UDRKey = "udr"

// Latents is a run's representation of images that are the same for all runs on a dataset.
type Latents = metric.Latents

// compared caches the most recent comparisons, because a page rebuilds its report for every request.
var compared, _ = lru.New[[sha256.Size]byte, model.UDR](512) // fails only for a size below one

// agree measures how far the seeds of a group agree slot by slot. It ignores runs without saved latents, or with latents of other images.
//
//	UDR_b = median over a ≠ b of s(R(a, b))            Duan et al. 2020; metric.UDR
func (g *Group) agree() {
	s := Scored{Metric: udr}
	entries, models, err := g.comparable()
	if err == nil && len(models) > 1 {
		var scores model.UDR
		if scores, err = comparison(models); err == nil {
			var chance []float64
			for i, e := range entries {
				s.Seeds, s.Values = append(s.Seeds, e.Run.Config.Seed), append(s.Values, float64(scores.Models[i]))
				chance = append(chance, float64(scores.Chance[i].Mean))
			}
			s.Chance = Summarise(chance)
		}
	}
	if err != nil {
		g.Problem = fmt.Sprintf("UDR is missing: %v.", err)
	}
	s.Summary = Summarise(s.Values)
	g.Scores = append(g.Scores, s)
}

// comparable returns the runs whose latents are of the same images as those of the first run that has any.
func (g *Group) comparable() (entries []Entry, models []metric.Model, err error) {
	var index []int
	for _, e := range g.Entries {
		if e.Agreement == nil {
			continue
		}
		l, err := e.Agreement()
		if err != nil {
			return nil, nil, fmt.Errorf("reading the latents of run %s: %w", e.Run.ID, err)
		}
		if l == nil || index != nil && !slices.Equal(index, l.Index) {
			continue
		}
		index, entries, models = l.Index, append(entries, e), append(models, l.Model)
	}
	return entries, models, nil
}

// comparison is metric.UDR with a cache.
func comparison(models []metric.Model) (model.UDR, error) {
	text, err := json.Marshal(models)
	if err != nil {
		return model.UDR{}, fmt.Errorf("comparing runs: %w", err)
	}
	key := sha256.Sum256(text)
	if scores, ok := compared.Get(key); ok {
		return scores, nil
	}
	scores, err := metric.UDR(context.Background(), models, 0)
	if err == nil {
		compared.Add(key, scores)
	}
	return scores, err
}

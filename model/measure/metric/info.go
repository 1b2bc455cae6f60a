package metric

import (
	"context"

	"slotscope/model"
)

// Info is InfoMEC without its details.
type Info struct {
	M, E, C model.Score     // modularity, explicitness in sample, compactness; as in model.Metrics
	NMI     [][]model.Score // [F][m] I(s; z) / H(s)
}

// MeasureInfo computes only InfoM, InfoE and InfoC, with the same values as Measure: no forests, no held-out and no shuffled fits.
// It takes about a twentieth of the time of Measure and ignores Trees.
func MeasureInfo(ctx context.Context, t Table, o Options) (Info, error) {
	if err := t.Check(); err != nil {
		return Info{}, err
	}
	m := newMeasurement(t, o)
	if err := m.affordable(); err != nil {
		return Info{}, err
	}
	m.planRelations()
	m.planFits(inSample)
	if err := m.run(ctx); err != nil {
		return Info{}, err
	}
	return Info{M: m.relations.infoM(), E: meanScore(m.fits[inSample], m.kept), C: m.relations.infoC(), NMI: m.relations.nmi}, nil
}

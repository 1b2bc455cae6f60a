package play

import (
	"context"
	"fmt"
	"math"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Slots holds the vectors that a checkpoint of the HRR model binds: its m symbols and k codebook entries, of d components each.
type Slots struct {
	Symbols [][]float64 // [m][d]
	Entries [][]float64 // [k][d], C = φ(S)·√(1/d), or the entries as they were learned
}

// Slots returns the vectors of a checkpoint; the error wraps model.ErrNotFound if it has none.
func (l *Library) Slots(ctx context.Context, src Source) (Slots, error) {
	m, release, err := l.Use(ctx, src)
	if err != nil {
		return Slots{}, err
	}
	defer release()
	s := m.slots()
	if len(s.Symbols) == 0 || len(s.Entries) == 0 {
		return Slots{}, fmt.Errorf("%s is a %s model, which has no symbols and codebook entries to bind: %w", src.Title, src.Config.Model, model.ErrNotFound)
	}
	return s, nil
}

func slotsOf(file checkpoint.File, generated func() [][]float32) Slots {
	entries, scale := generated(), math.Sqrt(1/float64(max(1, file.Config.D)))
	if free, ok := file.Tensors["codebook"]; ok && len(free.Shape) == 2 {
		entries, scale = rows(free), 1
	}
	s := Slots{Entries: scaled(entries, scale)}
	if symbols, ok := file.Tensors["symbols"]; ok && len(symbols.Shape) == 2 {
		s.Symbols = scaled(rows(symbols), 1)
	}
	return s
}

func scaled(vectors [][]float32, by float64) [][]float64 {
	all := make([][]float64, len(vectors))
	for i, v := range vectors {
		all[i] = make([]float64, len(v))
		for n, x := range v {
			all[i][n] = float64(x) * by
		}
	}
	return all
}

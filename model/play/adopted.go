package play

import (
	"context"

	"slotscope/model/adopt"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// adopted is a model that runs as an external program. Real-valued slots are mapped to the grid by code = (number − offset)/unit.
type adopted struct {
	model        *adopt.Model
	offset, unit []float32 // [m]
}

func openAdopted(ctx context.Context, file checkpoint.File) (*Model, error) {
	a, err := adopt.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	offset, unit := adopt.Scales(file)
	m := newModel(adopted{a, offset, unit}, file, ae.Image{H: a.Image[0], W: a.Image[1], C: a.Image[2]})
	m.Engine = "external"
	return m, nil
}

func (a adopted) encode(images []byte, batch int) ([]int32, error) {
	s, err := a.model.Encode(images, batch)
	if err != nil || s.Codes != nil {
		return s.Codes, err
	}
	codes := make([]int32, len(s.Numbers))
	for i, v := range s.Numbers {
		j := i % len(a.unit)
		codes[i] = gridCode((v - a.offset[j]) / a.unit[j])
	}
	return codes, nil
}

func (a adopted) decode(codes []int32, batch int) ([]byte, error) {
	s := adopt.Slots{Codes: codes}
	if a.model.Codes == 0 {
		s = adopt.Slots{Numbers: make([]float32, len(codes))}
		for i, c := range codes {
			j := i % len(a.unit)
			s.Numbers[i] = a.offset[j] + a.unit[j]*float32(c-gridZero)/gridSteps
		}
	}
	images, err := a.model.Decode(s, batch)
	out := make([]byte, len(images))
	for i, v := range images {
		out[i] = byte(255*float64(v) + 0.5)
	}
	return out, err
}

func (a adopted) finalize() { a.model.Close() }

package play

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

// Truth compares a swap with its true image T, the dataset's image with A's factors except for those of the swapped slots, which are from B.
type Truth struct {
	Factors        []int   `json:"factors"`        // of the swapped slots
	Index          int     `json:"index"`          // of T in the dataset
	PSNR           float64 `json:"psnr"`           // dB, of the decoded swap against T
	Reconstruction float64 `json:"reconstruction"` // dB, of A's reconstruction against A
	Before         float64 `json:"before"`         // dB, of A's reconstruction against T
	Hit            bool    `json:"hit"`            // see metric.SwapHit
}

// Truth swaps slots of image b into image a and compares the result with the true image. It returns a model.Invalid if a slot has no factor in
// the usage, or if the dataset does not have every combination of its factors.
func (m *Model) Truth(ctx context.Context, set data.Set, u *Usage, a, b int, slots []int) (Truth, error) {
	t := Truth{}
	factors, err := u.factorsOf(slots)
	if err != nil {
		return t, err
	}
	info := set.Info()
	if !info.Complete {
		return t, model.Invalid{"dataset": fmt.Sprintf("%s does not have every combination of its factors, so the true image of a swap may not exist", info.Name)}
	}
	pixels, err := m.images(set, a, b)
	if err != nil {
		return t, err
	}
	classes, f := make([]int, 2*len(info.Factors)), len(info.Factors)
	if err := set.Classes(classes, []int{a, b}); err != nil {
		return t, fmt.Errorf("reading the factors of %s: %w", info.Name, err)
	}
	for _, i := range factors {
		classes[i] = classes[f+i]
	}
	if t.Index, err = set.Index(classes[:f]); err != nil {
		return t, err
	}
	truth, err := m.images(set, t.Index)
	if err != nil {
		return t, err
	}
	codes, err := m.Encode(ctx, pixels)
	if err != nil {
		return t, err
	}
	swapped := slices.Clone(codes[0])
	for _, j := range slots {
		swapped[j] = codes[1][j]
	}
	decoded, err := m.Decode(ctx, Strip, [][]int{codes[0], swapped})
	if err != nil {
		return t, err
	}
	c := m.Image.C
	t.Factors, t.Reconstruction = factors, Compare(decoded[0], pixels[:m.Size()], c).PSNR
	t.Before, t.PSNR = Compare(decoded[0], truth, c).PSNR, Compare(decoded[1], truth, c).PSNR
	t.Hit = metric.SwapHit(t.PSNR, t.Reconstruction, t.Before)
	return t, nil
}

// factorsOf returns the factors that slots are named after, ascending. A mixed slot is allowed only together with a slot that is named after
// its first factor. Otherwise it returns a model.Invalid.
func (u *Usage) factorsOf(slots []int) (factors []int, err error) {
	if len(slots) == 0 {
		return nil, model.Invalid{"slots": "give at least one slot, such as slots=7.8"}
	}
	for _, j := range slots {
		if j < 0 || j >= len(u.Labels) {
			return nil, model.Invalid{"slots": fmt.Sprintf("slot %d does not exist; choose 0–%d", j, len(u.Labels)-1)}
		}
		if o := u.Ownership.Slots[j]; len(o.Factors) > 0 {
			factors = append(factors, o.First)
		}
	}
	var none []string
	for _, j := range slots {
		if o := u.Ownership.Slots[j]; len(o.Factors) == 0 && !slices.Contains(factors, o.First) {
			none = append(none, fmt.Sprint(j))
		}
	}
	if len(none) > 0 {
		return nil, model.Invalid{"slots": fmt.Sprintf("slot %s has no factor, so its swap has no true image; choose slots named after factors", strings.Join(none, ", "))}
	}
	slices.Sort(factors)
	return slices.Compact(factors), nil
}

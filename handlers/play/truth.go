package play

import (
	"fmt"
	"net/http"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/play"
)

// truth returns the true image of swapping some slots of B into A, from the dataset, and whether the decoded swap matches it.
func (p *Play) truth(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	slots, err := play.ParseCodes(r.URL.Query().Get("slots"))
	if err != nil {
		return model.Invalid{"slots": "give the slots to swap, separated by dots, such as slots=7.8"}
	}
	if s.a.index < 0 || s.b.index < 0 {
		return model.Invalid{"a": "a true image exists only for dataset images; choose a and b by index"}
	}
	usage, err := p.counted(rm)
	if err != nil {
		return err
	}
	set, err := p.Library.Set(r.Context(), rm.source.Config.Dataset)
	if err != nil {
		return err
	}
	t, err := rm.model.Truth(r.Context(), set, usage, s.a.index, s.b.index, slots)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, struct {
		play.Truth
		Original string `json:"original"`
	}{t, fmt.Sprintf("/api/play/%s/original.png?index=%d", rm.source.Key, t.Index)})
}

// counted returns the code counts, which determine the factors that own slots, or model.ErrConflict while counting.
func (p *Play) counted(rm playRoom) (*play.Usage, error) {
	usage := p.Library.Usage(rm.source).Usage
	if usage == nil {
		return nil, fmt.Errorf("codes are still being counted; try again in a moment: %w", model.ErrConflict)
	}
	return usage, nil
}

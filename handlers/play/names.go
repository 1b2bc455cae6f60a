package play

import (
	"cmp"
	"net/http"

	"slotscope/handlers"
	"slotscope/model/play"
)

// names returns the user-chosen names of slots, groups and codes of the checkpoint's run.
func (p *Play) names(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	names, err := p.Library.Names(rm.source)
	if err != nil {
		return err
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"names": names})
}

// rename changes one name or pin, and returns the updated slots and groups.
func (p *Play) rename(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	var change play.NameChange
	if err := handlers.ReadJSON(w, r, 1<<16, &change); err != nil {
		return err
	}
	usage := p.Library.Usage(rm.source)
	known := cmp.Or(usage.Usage, usage.Early)
	var factors []string
	if known != nil {
		factors = known.Factors
	}
	names, err := p.Library.Rename(rm.model, rm.source, factors, change)
	if err != nil {
		return err
	}
	slots := rm.slots(known, rm.dataset(r.Context()), names)
	return handlers.JSON(w, http.StatusOK, map[string]any{"names": names, "slots": slots, "groups": rm.groups(s, known, slots, names)})
}

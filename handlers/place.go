package handlers

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/views"
)

// Placer says where runs can be computed.
type Placer interface {
	Placements() model.Placements
	// CheckPlacement says as model.Invalid, by "executor" or the name of what is asked for, what cannot be.
	CheckPlacement(at model.Placement) error
}

// asked are the entries of a form that ask SLURM for something, with SLURM's own names.
var asked = []struct{ entry, name string }{{"slurm_partition", "partition"}, {"slurm_account", "account"}, {"slurm_time", "time"}, {"slurm_gpus", "gpus"}, {"slurm_lines", "line"}}

// Placed is where a posted form has its runs computed; nothing is asked of SLURM where it is not chosen.
func Placed(form url.Values) model.Placement {
	at := model.Placement{Executor: form.Get("executor")}
	if at.Executor != model.Slurm {
		return at
	}
	at.Asks = model.Asks{}
	for _, a := range asked {
		if form.Has(a.entry) {
			at.Asks[a.name] = typed(form.Get(a.entry))
		}
	}
	return at
}

// typed are the lines of an entry that are not empty; without any the entry leaves its option to the cluster.
func typed(entry string) []string {
	values := []string{}
	for line := range strings.Lines(entry) {
		if line = strings.TrimSpace(line); line != "" {
			values = append(values, line)
		}
	}
	return values
}

// PlaceIn is where programs have runs computed: executor, and what SLURM is asked for, as in "partition=gpu".
type PlaceIn struct {
	Executor string   `json:"executor"`
	Slurm    []string `json:"slurm"`
}

func (in PlaceIn) Placement() model.Placement {
	return model.Placement{Executor: in.Executor, Asks: model.AsksOf(in.Slurm...)}
}

// PlaceView draws the part of a form as it was typed; before anything was, as the server has it.
func PlaceView(p Placer, form url.Values, bad model.Invalid) views.PlaceView {
	if p == nil {
		return views.PlaceView{}
	}
	v := views.PlaceView{Placements: p.Placements(), Bad: bad}
	get := form.Get
	if !form.Has("executor") {
		present := asksBy(v.Asks)
		get = func(entry string) string { return present.Get(entry) }
		v.Executor = v.Default
	} else {
		v.Executor = get("executor")
	}
	v.Partition, v.Account, v.Time, v.GPUs, v.Lines = get("slurm_partition"), get("slurm_account"), get("slurm_time"), get("slurm_gpus"), get("slurm_lines")
	return v
}

// asksBy are asks as a form has them.
func asksBy(asks model.Asks) url.Values {
	form := url.Values{}
	for _, a := range asked {
		form.Set(a.entry, strings.Join(asks[a.name], "\n"))
	}
	return form
}

// PlaceEntries keeps the entries of a query that belong to the part of a form.
func PlaceEntries(q url.Values) url.Values {
	kept := url.Values{}
	for entry := range maps.Keys(q) {
		if entry == "executor" || slices.ContainsFunc(asked, func(a struct{ entry, name string }) bool { return a.entry == entry }) {
			kept[entry] = q[entry]
		}
	}
	return kept
}

// CheckPlace adds to bad what is wrong with where runs are to be computed.
func CheckPlace(p Placer, at model.Placement, bad model.Invalid) error {
	if p == nil {
		return nil
	}
	return Collect(bad, p.CheckPlacement(at))
}

package handlers

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/views"
)

// Placer lists and checks the places where runs can execute.
type Placer interface {
	Placements() model.Placements
	// CheckPlacement returns a model.Invalid, keyed by "executor" or the SLURM option, for each value that is not allowed.
	CheckPlacement(at model.Placement) error
}

// asked maps the form's fields to the names of SLURM options.
var asked = []struct{ entry, name string }{{"slurm_partition", "partition"}, {"slurm_account", "account"}, {"slurm_time", "time"}, {"slurm_gpus", "gpus"}, {"slurm_lines", "line"}}

// Placed returns the placement in a posted form; SLURM options apply only if SLURM is chosen.
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

// typed returns the non-empty lines of a field; an empty result leaves the option to the cluster.
func typed(entry string) []string {
	values := []string{}
	for line := range strings.Lines(entry) {
		if line = strings.TrimSpace(line); line != "" {
			values = append(values, line)
		}
	}
	return values
}

// PlaceIn is the placement in an API request: executor and SLURM options, e.g. "partition=gpu".
type PlaceIn struct {
	Executor string   `json:"executor"`
	Slurm    []string `json:"slurm"`
}

// Placement converts the request's fields.
func (in PlaceIn) Placement() model.Placement {
	return model.Placement{Executor: in.Executor, Asks: model.AsksOf(in.Slurm...)}
}

// PlaceView returns the view of the placement fields with the user's input, or the server's defaults before any input.
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

// asksBy converts SLURM options to form fields.
func asksBy(asks model.Asks) url.Values {
	form := url.Values{}
	for _, a := range asked {
		form.Set(a.entry, strings.Join(asks[a.name], "\n"))
	}
	return form
}

// PlaceEntries returns the placement fields of a query.
func PlaceEntries(q url.Values) url.Values {
	kept := url.Values{}
	for entry := range maps.Keys(q) {
		if entry == "executor" || slices.ContainsFunc(asked, func(a struct{ entry, name string }) bool { return a.entry == entry }) {
			kept[entry] = q[entry]
		}
	}
	return kept
}

// CheckPlace adds the errors of a placement to bad.
func CheckPlace(p Placer, at model.Placement, bad model.Invalid) error {
	if p == nil {
		return nil
	}
	return Collect(bad, p.CheckPlacement(at))
}

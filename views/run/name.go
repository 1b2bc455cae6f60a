package run

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"slotscope/model"
)

// NamedSeries is a series with its display title.
type NamedSeries struct {
	Name  string // in points and URLs
	Title string
	Unit  string
	Group string // heading of its chart on the run page; empty for the main charts
}

// Names lists every series that any model measures, in the order of the run page; titles are unique.
var Names = sync.OnceValue(func() []NamedSeries {
	var all []NamedSeries
	titles := map[string]bool{}
	for _, p := range panelsOfAll() {
		for i, name := range p.Series {
			s := NamedSeries{Name: name, Title: p.Title, Unit: p.Unit, Group: p.Group}
			if strings.HasPrefix(s.Unit, "of ") {
				s.Unit = "" // the total differs between runs
			}
			switch {
			case len(p.Labels) == 0:
			case strings.Contains(p.Title, p.Labels[i]):
				s.Title = p.Labels[i]
			default:
				s.Title += ", " + p.Labels[i]
			}
			if slices.ContainsFunc(all, func(o NamedSeries) bool { return o.Name == name }) {
				continue
			}
			if titles[s.Title] {
				s.Title = cmp.Or(s.Group, name) + ": " + s.Title
			}
			titles[s.Title] = true
			all = append(all, s)
		}
	}
	return all
})

// NameOf returns a series with its display title; a series that no model measures keeps its name as title.
func NameOf(name string) NamedSeries {
	if i := slices.IndexFunc(Names(), func(s NamedSeries) bool { return s.Name == name }); i >= 0 {
		return Names()[i]
	}
	return NamedSeries{Name: name, Title: name, Group: "Other"}
}

// panelsOfAll returns the charts of every model, HRR first, without scaled charts.
func panelsOfAll() (all []Panel) {
	for _, name := range slices.Concat([]string{"hrr"}, model.ModelNames()) {
		cfg, err := model.Default(name, "tiny", "")
		if err != nil {
			continue
		}
		cfg.Engine = "xla:cuda" // include the GPU charts
		for _, p := range (RunView{Run: model.Run{Config: cfg}}).panels() {
			if p.Scale == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

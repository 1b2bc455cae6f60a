// Package verdict judges how a run is going by fixed rules over its series: healthy, collapsing, diverging. The run page shows the
// verdict and lists the rules; anything else that reacts to a run's health asks here too, so that all agree.
package verdict

import (
	"slices"

	"slotscope/model"
)

// Kind is what the rules say of a run.
type Kind string

const (
	None       Kind = "none"       // no points yet
	Early      Kind = "early"      // too few steps
	Healthy    Kind = "healthy"    // no rule speaks against the run
	Plateau    Kind = "plateau"    // PSNR rises no more
	Behind     Kind = "behind"     // worse than every earlier run of the same configuration
	Collapsing Kind = "collapsing" // codebook or latents fall out of use
	Diverging  Kind = "diverging"  // the loss grows, or is not finite
)

// Title is the kind as the page writes it.
func (k Kind) Title() string {
	return map[Kind]string{None: "No points yet", Early: "Too early to judge", Healthy: "Healthy", Plateau: "Plateau",
		Behind: "Behind earlier runs", Collapsing: "Collapsing", Diverging: "Diverging"}[k]
}

// Bad says whether going on is unlikely to help: what alerts report and early stopping acts on.
func (k Kind) Bad() bool { return k == Collapsing || k == Diverging }

// Verdict is what the rules say of a run at a step.
type Verdict struct {
	Kind  Kind     `json:"kind"`
	Title string   `json:"title"`
	Rule  string   `json:"rule"`  // key of the rule that decided
	Why   string   `json:"why"`   // what that rule found, with the value and the limit; empty for a healthy run
	Facts []string `json:"facts"` // entries in use, InfoM, owned factors, PSNR, each compared with earlier runs
	Step  int      `json:"step"`  // last step that was looked at
}

// Progress is what the rules look at.
type Progress struct {
	Config model.Config
	State  model.State
	Series map[string][]model.Sample // those of Names, by step; may be thinned to extremes and last values of spans
	// Earlier are the newest values, up to the same step, of earlier runs of the same configuration, by series.
	Earlier []map[string]float64
}

// Names are the series that the rules look at.
func Names() []string {
	return []string{total, window, used, active, psnr, infoM, owned, coverage}
}

const (
	total    = "total"
	window   = "perplexity/window"
	used     = "perplexity/used"
	active   = "latent/active"
	psnr     = "psnr/eval"
	infoM    = "infom/eval"
	owned    = "owned/factors"
	coverage = "owned/coverage"
)

// Compared are the series that are compared with earlier runs; more is better for each.
func Compared() []string { return []string{psnr, infoM} }

// Judge applies Rules in order; the first that holds decides.
func Judge(p Progress) Verdict {
	v := Verdict{Step: p.last(), Facts: append([]string{}, p.facts()...)}
	for _, r := range rules {
		if why, holds := r.holds(p); holds {
			v.Kind, v.Title, v.Rule, v.Why = r.Kind, r.Kind.Title(), r.Key, why
			return v
		}
	}
	panic("verdict: the last rule holds for every run")
}

// Last is the last step of any series, 0 for none.
func (p Progress) Last() int { return p.last() }

func (p Progress) last() (step int) {
	for _, s := range p.Series {
		if len(s) > 0 {
			step = max(step, s[len(s)-1].Step)
		}
	}
	return step
}

// SameConfiguration says whether two runs may be compared at the same step: they differ at most in seed, engine and how often they
// save and measure, and in their number of steps where the learning rate does not depend on it.
func SameConfiguration(a, b model.Config) bool {
	for _, f := range model.Fields() {
		ignored := f.Group == "cadence" || slices.Contains([]string{"seed", "engine"}, f.Name) || f.Name == "steps" && a.LRSchedule == ""
		if !ignored && f.Get(a) != f.Get(b) {
			return false
		}
	}
	return true
}

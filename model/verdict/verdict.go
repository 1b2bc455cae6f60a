// Package verdict judges a run's health by fixed rules over its series: healthy, collapsing, diverging and so on. The run page shows the
// verdict and lists the rules; alerts and early stopping use the same rules.
package verdict

import "slotscope/model"

// Kind is the rules' judgement of a run.
type Kind string

const (
	None       Kind = "none"       // no points yet
	Early      Kind = "early"      // too few steps
	Healthy    Kind = "healthy"    // no other rule applies
	Plateau    Kind = "plateau"    // PSNR no longer rises
	Behind     Kind = "behind"     // worse than every earlier run of the same configuration
	Collapsing Kind = "collapsing" // codebook or latents fall out of use
	Diverging  Kind = "diverging"  // the loss grows, or is not finite
)

// Title returns the kind's title for pages.
func (k Kind) Title() string {
	return map[Kind]string{None: "No points yet", Early: "Too early to judge", Healthy: "Healthy", Plateau: "Plateau",
		Behind: "Behind earlier runs", Collapsing: "Collapsing", Diverging: "Diverging"}[k]
}

// Bad reports whether further training is unlikely to help; alerts report it and early stopping acts on it.
func (k Kind) Bad() bool { return k == Collapsing || k == Diverging }

// Verdict is the judgement of a run at a step.
type Verdict struct {
	Kind  Kind     `json:"kind"`
	Title string   `json:"title"`
	Rule  string   `json:"rule"`  // key of the deciding rule
	Why   string   `json:"why"`   // that rule's finding, with value and limit; empty for a healthy run
	Facts []string `json:"facts"` // entries in use, InfoM, owned factors, PSNR, each compared with earlier runs
	Step  int      `json:"step"`  // last step considered
}

// Progress is the rules' input.
type Progress struct {
	Config model.Config
	State  model.State
	Series map[string][]model.Sample // the series in Names, by step; may be reduced to extremes and last values of spans
	// Earlier are the newest values, up to the same step, of earlier runs of the same configuration, by series.
	Earlier []map[string]float64
}

// Names returns the series that the rules use.
func Names() []string {
	return []string{total, window, used, rank, active, psnr, infoM, owned, coverage}
}

const (
	total    = "total"
	window   = "perplexity/window"
	used     = "perplexity/used"
	rank     = "faithfulness/rank_codebook"
	active   = "latent/active"
	psnr     = "psnr/eval"
	infoM    = "infom/eval"
	owned    = "owned/factors"
	coverage = "owned/coverage"
)

// Compared returns the series that are compared with earlier runs; higher is better for each.
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

// Last returns the last step of any series, 0 if there is none.
func (p Progress) Last() int { return p.last() }

func (p Progress) last() (step int) {
	for _, s := range p.Series {
		if len(s) > 0 {
			step = max(step, s[len(s)-1].Step)
		}
	}
	return step
}

// SameConfiguration reports whether two runs can be compared at the same step: they differ at most in seed, engine and cadence, and in
// the number of steps if the learning rate does not depend on it.
func SameConfiguration(a, b model.Config) bool {
	for _, f := range model.Fields() {
		ignored := f.Group == "cadence" || f.Computing() || f.Name == "seed" || f.Name == "steps" && a.LRSchedule == ""
		if !ignored && f.Get(a) != f.Get(b) {
			return false
		}
	}
	return true
}

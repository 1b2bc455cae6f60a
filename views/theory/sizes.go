package theory

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"slotscope/model"
	"slotscope/model/paper/theory"
	"slotscope/views"
)

// Sizes are the entries of the form, and the parameters of the page's URL.
type Sizes struct {
	M, D, K  int
	Rate     float64 // R, nats
	Ratio    float64 // ρ = τ²·d/m of the posterior floor's variance τ² per component
	Variance float64 // of the values' components, times d
	Sources  []string
}

// PaperSizes are the paper's sizes, with the rate of its smallest dataset.
var PaperSizes = Sizes{M: 9, D: 512, K: 512, Rate: 13.08, Ratio: 1, Variance: 1}

// Limits are the allowed ranges by parameter; they keep a response within a few tenths of a second.
var Limits = map[string][2]float64{"m": {1, 64}, "d": {8, 4096}, "k": {2, 65536}, "R": {0, 200}, "rho": {0.001, 1000}, "var": {0.01, 100}}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// text returns the entries as text, by parameter.
func (e Sizes) text() map[string]string {
	return map[string]string{"m": strconv.Itoa(e.M), "d": strconv.Itoa(e.D), "k": strconv.Itoa(e.K), "R": plain(e.Rate), "rho": plain(e.Ratio), "var": plain(e.Variance)}
}

// Query returns the entries as a URL query.
func (e Sizes) Query() url.Values {
	q := url.Values{"run": e.Sources}
	for name, text := range e.text() {
		q.Set(name, text)
	}
	if len(e.Sources) == 0 {
		q.Del("run")
	}
	return q
}

// Rate is the rate that the images of a dataset need.
type Rate struct {
	Dataset string
	Nats    float64
}

// Source is a checkpoint to choose from.
type Source struct {
	Key, Run, Title string // Run and Title may be empty
	Step            int
}

// Point has a checkpoint's measured values and bounds.
type Point struct {
	Label    string
	Config   model.Config
	Why      string // why the fields after Capacity are unset, a sentence; empty if they are set
	Capacity theory.Capacity
	Joint    *model.JointEntropy // of the images' codes; nil if not measured
	Cosine   *float64            // mean between raw retrievals from z and their entries, from the run's evaluation; nil if not measured
	Trained  theory.Trained      // at the form's ρ
}

// Outside explains why the theory does not apply to a model, a sentence; empty if it does.
func Outside(c model.Config) string {
	switch {
	case c.Model != "hrr":
		return fmt.Sprintf("A %s model does not bundle its slots, so the theory does not apply.", c.Model)
	case c.Binding != "":
		return fmt.Sprintf("This model binds by %s, not by circular convolution, so the theory does not apply.", c.Binding)
	}
	return ""
}

// StillCounting explains why a model's codes have not been counted: its images are still being encoded, or failed.
func StillCounting(done, of int, failed error) string {
	if failed != nil {
		return views.Sentence("failed to count its codes: " + failed.Error())
	}
	return fmt.Sprintf("Counting its codes: %s of %s images. Reload the page in a moment.", views.Count(done), views.Count(of))
}

// outside reports whether the codes carry more than the channel term of the bound. This holds even if the entropy is a lower bound.
func (p Point) outside() bool { return p.Joint != nil && p.Joint.Nats > p.Capacity.Channel }

// entropy formats the joint entropy, with ≥ if it is a lower bound.
func (p Point) entropy() string {
	switch {
	case p.Joint == nil:
		return "not measured"
	case p.Joint.LowerBound:
		return "≥ " + rounded(p.Joint.Nats)
	}
	return rounded(p.Joint.Nats)
}

// known returns the points that have values.
func known(points []Point) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Why != "" })
}

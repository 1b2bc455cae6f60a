// Package theory serves the theory page: capacity, noise and correlation.
package theory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"gonum.org/v1/gonum/floats"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/paper/theory"
	"slotscope/model/play"
	"slotscope/views"
	ui "slotscope/views/theory"
)

// Theory serves the page of the paper's bounds on what the latent can hold. The URL query has the form's entries.
type Theory struct {
	Datasets handlers.DatasetList
	Library  SlotLibrary  // checkpoints shown on the curves; nil if none
	Scores   ScoreService // evaluation scores of runs; nil if none
}

// ScoreService reads the scores of runs; the error wraps model.ErrNotFound if a run has none.
type ScoreService interface {
	Scores(ctx context.Context, id string) (model.Scores, error)
}

// SlotLibrary provides checkpoints with their slots and code usage; *play.Library implements it.
type SlotLibrary interface {
	List() []play.Source
	Find(name string) (play.Source, error)
	Usage(src play.Source) play.Counting
	Slots(ctx context.Context, src play.Source) (play.Slots, error)
}

// Routes registers /theory and its figures.
func (h Theory) Routes(r chi.Router) {
	r.Get("/theory", handlers.Handle(h.page))
	r.Get("/theory/{file}", handlers.Handle(h.file))
}

// theoryEntries are the parameters of the page.
type theoryEntries struct {
	m, d, k  int
	rate     float64 // R, nats
	ratio    float64 // ρ = τ²·d/m of the posterior floor's variance τ² per component
	variance float64 // of the values' components, times d
	sources  []string
}

// theoryDefaults are the paper's sizes, with the rate of its smallest dataset.
var theoryDefaults = theoryEntries{m: 9, d: 512, k: 512, rate: 13.08, ratio: 1, variance: 1}

// theoryLimits are the allowed ranges; they keep a response within a few tenths of a second.
var theoryLimits = map[string][2]float64{"m": {1, 64}, "d": {8, 4096}, "k": {2, 65536}, "R": {0, 200}, "rho": {0.001, 1000}, "var": {0.01, 100}}

// mostSources is the maximum number of checkpoints shown at once.
const mostSources = 6

func (h Theory) page(w http.ResponseWriter, r *http.Request) error {
	e, bad := readTheory(r.URL.Query())
	if _, isForm := r.URL.Query()["m"]; !isForm && h.Library != nil {
		if list := h.hrrSources(); len(e.sources) == 0 && len(list) > 0 {
			e.sources = []string{list[0].Key}
		}
	}
	points, err := h.points(r.Context(), e)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(bad) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return handlers.DrawStatus(w, r, status, ui.Theory(h.view(r.Context(), e, bad, r.URL.Query(), points)))
}

// file sends one figure of the page.
func (h Theory) file(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := handlers.SplitFigure(chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	draw, ok := theoryFigures[name]
	if !ok {
		return fmt.Errorf("unknown figure %q of the theory page: %w", name, model.ErrNotFound)
	}
	e, bad := readTheory(r.URL.Query())
	if err := bad.OrNil(); err != nil {
		return err
	}
	points, err := h.points(r.Context(), e)
	if err != nil {
		return err
	}
	return handlers.SendFigure(w, r, draw(e, points), kind)
}

// readTheory parses the entries; invalid ones keep their defaults and are reported.
func readTheory(q url.Values) (theoryEntries, model.Invalid) {
	e, bad := theoryDefaults, model.Invalid{}
	for name, to := range map[string]*int{"m": &e.m, "d": &e.d, "k": &e.k} {
		if v, ok := theoryNumber(q, name, bad); ok {
			if v != math.Trunc(v) {
				bad[name] = fmt.Sprintf("got %s; enter a whole number", q.Get(name))
				continue
			}
			*to = int(v)
		}
	}
	for name, to := range map[string]*float64{"R": &e.rate, "rho": &e.ratio, "var": &e.variance} {
		if v, ok := theoryNumber(q, name, bad); ok {
			*to = v
		}
	}
	for _, s := range q["run"] {
		if s != "" && !slices.Contains(e.sources, s) && len(e.sources) < mostSources {
			e.sources = append(e.sources, s)
		}
	}
	return e, bad
}

func theoryNumber(q url.Values, name string, bad model.Invalid) (v float64, ok bool) {
	text := strings.TrimSpace(q.Get(name))
	if text == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	limit := theoryLimits[name]
	if err != nil || !(v >= limit[0] && v <= limit[1]) {
		bad[name] = fmt.Sprintf("got %q; enter a number from %s to %s", text, plain(limit[0]), plain(limit[1]))
		return 0, false
	}
	return v, true
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (e theoryEntries) text() map[string]string {
	return map[string]string{"m": strconv.Itoa(e.m), "d": strconv.Itoa(e.d), "k": strconv.Itoa(e.k), "R": plain(e.rate), "rho": plain(e.ratio), "var": plain(e.variance)}
}

// query returns the entries as a URL query.
func (e theoryEntries) query() url.Values {
	q := url.Values{"run": e.sources}
	for name, text := range e.text() {
		q.Set(name, text)
	}
	if len(e.sources) == 0 {
		q.Del("run")
	}
	return q
}

// hrrSources returns the checkpoints that the theory applies to.
func (h Theory) hrrSources() []play.Source {
	if h.Library == nil {
		return nil
	}
	return slices.DeleteFunc(h.Library.List(), func(s play.Source) bool { return s.Config.Model != "hrr" })
}

// theoryPoint has a checkpoint's measured values and bounds.
type theoryPoint struct {
	label    string
	cfg      model.Config
	key      string
	why      string // why the fields below are unset, a sentence; empty if they are set
	capacity theory.Capacity
	joint    *model.JointEntropy // of the images' codes; nil if not measured
	cosine   *float64            // mean between raw retrievals from z and their entries, from the run's evaluation; nil if not measured
	snr      []float64           // of every slot, retrieved from ẑ, the bundle of its codes
	pair     theory.Pair
	tc       float64 // nats, at the form's ρ
	bound    float64
}

// outside reports whether the codes carry more than the channel term of the bound. This holds even if the entropy is a lower bound.
func (p theoryPoint) outside() bool { return p.joint != nil && p.joint.Nats > p.capacity.Channel }

// entropy formats the joint entropy, with ≥ if it is a lower bound.
func (p theoryPoint) entropy() string {
	switch {
	case p.joint == nil:
		return "not measured"
	case p.joint.LowerBound:
		return "≥ " + rounded(p.joint.Nats)
	}
	return rounded(p.joint.Nats)
}

// sampledTuples is the number of tuples of codes drawn per checkpoint, each slot by its own code usage.
const sampledTuples = 48

func (h Theory) points(ctx context.Context, e theoryEntries) ([]theoryPoint, error) {
	var points []theoryPoint
	for _, name := range e.sources {
		if h.Library == nil {
			break
		}
		src, err := h.Library.Find(name)
		if err != nil {
			return nil, err
		}
		p, err := h.point(ctx, src, e.ratio)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func (h Theory) point(ctx context.Context, src play.Source, ratio float64) (theoryPoint, error) {
	c := src.Config
	p := theoryPoint{label: src.Title, cfg: c, key: src.Key, capacity: theory.CapacityOf(c.M, c.D, c.K)}
	if p.label == "" {
		p.label = src.Key
	}
	if c.Model != "hrr" {
		p.why = fmt.Sprintf("A %s model does not bundle its slots, so the theory does not apply.", c.Model)
		return p, nil
	}
	if c.Binding != "" {
		p.why = fmt.Sprintf("This model binds by %s, not by circular convolution, so the theory does not apply.", c.Binding)
		return p, nil
	}
	count := h.Library.Usage(src)
	if count.Usage == nil {
		p.why = stillCounting(count)
		return p, nil
	}
	slots, err := h.Library.Slots(ctx, src)
	if err != nil {
		return p, err
	}
	p.joint = count.Usage.Joint
	p.measure(slots, count.Usage.Counts, ratio)
	return p, h.evaluated(ctx, src, &p)
}

func stillCounting(c play.Counting) string {
	if c.Err != nil {
		return handlers.Sentence("failed to count its codes: " + c.Err.Error())
	}
	return fmt.Sprintf("Counting its codes: %s of %s images. Reload the page in a moment.", views.Count(c.Done), views.Count(c.Of))
}

// evaluated adds the scores of an evaluation of the same checkpoint, if there is one.
func (h Theory) evaluated(ctx context.Context, src play.Source, p *theoryPoint) error {
	if h.Scores == nil || src.Run == "" {
		return nil
	}
	s, err := h.Scores.Scores(ctx, src.Run)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("scores of run %s: %w", src.Run, err)
	}
	if err != nil || s.Step != src.Step {
		return nil // not evaluated, or at another step: the table shows "not evaluated"
	}
	if s.Usage != nil && s.Usage.Joint != nil {
		p.joint = s.Usage.Joint
	}
	if s.Faithfulness != nil {
		c := float64(s.Faithfulness.CosRetrieval)
		p.cosine = &c
	}
	return nil
}

// measure computes the values of a checkpoint from its vectors and each slot's code usage. The noise variance of its own retrievals,
// Σᵢ‖vᵢ‖²/d² per component, is multiplied by ratio.
func (p *theoryPoint) measure(s play.Slots, counts [][]int, ratio float64) {
	samples := theory.SampleValues(s.Entries, counts, sampledTuples, 1)
	if p.cfg.Inverse != "exact" {
		p.snr = theory.SlotSNR(s.Symbols, samples)
	}
	n := float64(len(samples))
	for _, values := range samples {
		tau2 := ratio * energy(values) / float64(p.cfg.D)
		pair := theory.Pairs(values)
		p.pair.Frobenius2 += pair.Frobenius2 / n
		p.pair.Operator += pair.Operator / n
		p.tc += theory.TotalCorrelation(values, tau2) / n
		p.bound += theory.DeltaOf(values).Bound(tau2) / n
	}
}

// energy returns Σᵢ‖vᵢ‖² of a sample's values; m for HRR vectors.
func energy(values [][]float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += floats.Dot(v, v)
	}
	return sum
}

// known returns the points that have values.
func known(points []theoryPoint) []theoryPoint {
	return slices.DeleteFunc(slices.Clone(points), func(p theoryPoint) bool { return p.why != "" })
}

// Package theory serves the theory page: capacity, noise and correlation.
package theory

import (
	"cmp"
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

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/paper/theory"
	"slotscope/model/play"
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

// mostSources is the maximum number of checkpoints shown at once.
const mostSources = 6

func (h Theory) page(w http.ResponseWriter, r *http.Request) error {
	e, bad := readTheory(r.URL.Query())
	if _, isForm := r.URL.Query()["m"]; !isForm && h.Library != nil {
		if list := h.hrrSources(); len(e.Sources) == 0 && len(list) > 0 {
			e.Sources = []string{list[0].Key}
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
	return handlers.DrawStatus(w, r, status, ui.Theory(ui.NewTheory(e, bad, r.URL.Query(), h.rates(r.Context()), h.sources(), points)))
}

// file sends one figure of the page.
func (h Theory) file(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := handlers.SplitFigure(chi.URLParam(r, "file"))
	if err != nil {
		return err
	}
	draw, ok := ui.FigureNamed(name)
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
func readTheory(q url.Values) (ui.Sizes, model.Invalid) {
	e, bad := ui.PaperSizes, model.Invalid{}
	for name, to := range map[string]*int{"m": &e.M, "d": &e.D, "k": &e.K} {
		if v, ok := theoryNumber(q, name, bad); ok {
			if v != math.Trunc(v) {
				bad[name] = fmt.Sprintf("got %s; enter a whole number", q.Get(name))
				continue
			}
			*to = int(v)
		}
	}
	for name, to := range map[string]*float64{"R": &e.Rate, "rho": &e.Ratio, "var": &e.Variance} {
		if v, ok := theoryNumber(q, name, bad); ok {
			*to = v
		}
	}
	for _, s := range q["run"] {
		if s != "" && !slices.Contains(e.Sources, s) && len(e.Sources) < mostSources {
			e.Sources = append(e.Sources, s)
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
	limit := ui.Limits[name]
	if err != nil || !(v >= limit[0] && v <= limit[1]) {
		bad[name] = fmt.Sprintf("got %q; enter a number from %v to %v", text, limit[0], limit[1])
		return 0, false
	}
	return v, true
}

// hrrSources returns the checkpoints that the theory applies to.
func (h Theory) hrrSources() []play.Source {
	if h.Library == nil {
		return nil
	}
	return slices.DeleteFunc(h.Library.List(), func(s play.Source) bool { return s.Config.Model != "hrr" })
}

// sources returns the checkpoints to choose from.
func (h Theory) sources() []ui.Source {
	var all []ui.Source
	for _, s := range h.hrrSources() {
		all = append(all, ui.Source{Key: s.Key, Run: s.Run, Title: s.Title, Step: s.Step})
	}
	return all
}

// rates returns the rates that the images of the available datasets need.
func (h Theory) rates(ctx context.Context) []ui.Rate {
	var all []ui.Rate
	for _, info := range h.Datasets.List(ctx) {
		var cardinalities []int
		for _, f := range info.Factors {
			cardinalities = append(cardinalities, len(f.Values))
		}
		if rate := math.Round(100*theory.Rate(cardinalities)) / 100; rate > 0 {
			all = append(all, ui.Rate{Dataset: info.Name, Nats: rate})
		}
	}
	return all
}

// sampledTuples is the number of tuples of codes drawn per checkpoint, each slot by its own code usage.
const sampledTuples = 48

func (h Theory) points(ctx context.Context, e ui.Sizes) ([]ui.Point, error) {
	var points []ui.Point
	for _, name := range e.Sources {
		if h.Library == nil {
			break
		}
		src, err := h.Library.Find(name)
		if err != nil {
			return nil, err
		}
		p, err := h.point(ctx, src, e.Ratio)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func (h Theory) point(ctx context.Context, src play.Source, ratio float64) (ui.Point, error) {
	c := src.Config
	p := ui.Point{Label: cmp.Or(src.Title, src.Key), Config: c, Capacity: theory.CapacityOf(c.M, c.D, c.K)}
	if p.Why = ui.Outside(c); p.Why != "" {
		return p, nil
	}
	count := h.Library.Usage(src)
	if count.Usage == nil {
		p.Why = ui.StillCounting(count.Done, count.Of, count.Err)
		return p, nil
	}
	slots, err := h.Library.Slots(ctx, src)
	if err != nil {
		return p, err
	}
	p.Joint = count.Usage.Joint
	p.Trained = theory.TrainedOf(slots.Symbols, slots.Entries, count.Usage.Counts, sampledTuples, c.Inverse == "exact", ratio)
	return p, h.evaluated(ctx, src, &p)
}

// evaluated adds the scores of an evaluation of the same checkpoint, if there is one.
func (h Theory) evaluated(ctx context.Context, src play.Source, p *ui.Point) error {
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
		p.Joint = s.Usage.Joint
	}
	if s.Faithfulness != nil {
		c := float64(s.Faithfulness.CosRetrieval)
		p.Cosine = &c
	}
	return nil
}

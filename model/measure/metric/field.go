package metric

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"slotscope/model"
)

const (
	// MaxRows is the maximum number of rows of a table for the scores of other papers.
	MaxRows = 1_000_000

	maxShares   = 50 << 20 // maximum number of probabilities of one probe
	leastHalves = 20       // minimum number of rows for intervals from half-samples
	wideNumber  = 1e100    // maximum magnitude of numbers that are squared
)

// Extra is the optional content of a file besides its table.
type Extra struct {
	Models     []Model     // for UDR, on their own rows
	Curves     []Curve     // of probes with increasing capacity
	Selections []Selection // parts of the table to score separately
}

// Selection is a subset of a table's latents and factors, by index.
type Selection struct {
	Latents []int `json:"latents"`
	Factors []int `json:"factors"`
}

// Field computes the scores of other papers: what papers on disentanglement report besides InfoMEC. The result does not depend on the
// number of workers.
//
// A score that cannot be computed is undefined and has a sentence in Problems; other scores are not affected. If ctx ends, Field returns
// early with an error that wraps ctx.Err().
func Field(ctx context.Context, t Table, extra Extra, o Options) (model.FieldScores, error) {
	if err := Measurable(t); err != nil {
		return model.FieldScores{}, err
	}
	f := newFieldWork(t, extra, o)
	f.plan()
	err := f.run(ctx)
	return f.out, err
}

// Measurable returns an error if a table is invalid or has too many rows.
func Measurable(t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	if t.rows() > MaxRows {
		return fmt.Errorf("the table has %d rows (limit %d); draw some at random, typically 10,000", t.rows(), MaxRows)
	}
	return nil
}

// fieldWork is the state of measuring one table. Tasks write to separate variables, or under the lock.
type fieldWork struct {
	t     Table
	extra Extra
	o     Options
	w     *world

	orders [][]int // permutations of the rows for the chance levels

	lock   sync.Mutex
	out    model.FieldScores
	tasks  []fieldTask
	finish []func() // in order, once all tasks are done
	draws  map[string][]float64
}

// fieldTask computes some scores; failures are recorded under its name.
type fieldTask struct {
	of   []string
	cost float64
	do   func(ctx context.Context) error
}

func newFieldWork(t Table, extra Extra, o Options) *fieldWork {
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	w := newWorld(t)
	f := &fieldWork{t: t, extra: extra, o: o, w: w, draws: map[string][]float64{}, orders: newGenerator(chanceSeed+uint64(o.Seed)).orders(chanceDraws, w.n)}
	f.out = model.FieldScores{Discrete: w.discrete(), Rows: w.n, Seed: o.Seed, KeptFactors: w.kept, VaryingLatents: w.varying, ActiveLatents: w.active,
		MI: [][]float64{}, MIMillerMadow: [][]float64{}, MIExpected: [][]float64{}, FactorEntropy: []float64{}, FactorEntropyMM: []float64{},
		LatentEntropy: []float64{}, Scores: map[string]model.Score{}, Chance: map[string]model.Spread{}, Intervals: map[string]model.Interval{},
		Problems: map[string]string{}}
	for _, name := range fieldNames(w.discrete()) {
		f.out.Scores[name] = model.Undefined()
	}
	return f
}

// fieldNames lists the scores of a table.
func fieldNames(discrete bool) []string {
	names := []string{"mig", "mig_mm", "dcimig", "modularity", "modularity_active", "infom_plugin", "infoc_plugin", "infom_mm", "infoc_mm",
		"infom_adj", "infoc_adj", "sap", "factorvae_limit", "irs", "irs_max", "explicitness", "factorvae", "betavae",
		"low_label_100", "low_label_1000", "dci_es", "size", "redundancy_pairs"}
	if discrete {
		return append(names, "sap_index")
	}
	return append(names, "sap_std")
}

// plan lists the tasks.
func (f *fieldWork) plan() {
	f.planRedundancy()
	f.planExtra()
	f.out.Size = sizes(f.w)
	if len(f.w.factors) == 0 {
		f.problem("factors", "Every factor has a single value among these rows, so no score can be compared with factors.")
		return
	}
	f.out.Scores["size"] = f.out.Size.All
	f.planCheap()
	f.planExplicitness()
	f.planLowLabel()
	f.planVotes()
	f.planCapacity()
}

func sizes(w *world) model.Size {
	s := model.Size{All: model.Score(float64(len(w.factors)) / float64(w.latents())), Active: model.Undefined()}
	varying := 0
	for _, on := range w.varying {
		if on {
			varying++
		}
	}
	if varying > 0 {
		s.Active = model.Score(float64(len(w.factors)) / float64(varying))
	}
	return s
}

func (f *fieldWork) add(cost float64, do func(context.Context) error, of ...string) {
	f.tasks = append(f.tasks, fieldTask{of, cost, do})
}

func (f *fieldWork) problem(name, sentence string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.out.Problems[name] = sentence
}

// run executes the tasks on the workers, expensive ones first, and combines the results.
func (f *fieldWork) run(ctx context.Context) error {
	slices.SortStableFunc(f.tasks, func(a, b fieldTask) int { return int(math.Copysign(1, b.cost-a.cost)) })
	of, done := 0.0, 0.0
	for _, t := range f.tasks {
		of += t.cost
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.o.Workers)
	for _, t := range f.tasks {
		group.Go(func() error {
			if ctx.Err() == nil {
				if err := guarded(ctx, t.do); err != nil && ctx.Err() == nil {
					for _, name := range t.of {
						f.problem(name, err.Error())
					}
				}
			}
			if ctx.Err() != nil {
				return fmt.Errorf("measuring: %w", context.Cause(ctx))
			}
			f.lock.Lock()
			defer f.lock.Unlock()
			if done += t.cost; f.o.Progress != nil {
				f.o.Progress(done, of)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, put := range f.finish {
		put()
	}
	f.sumUp()
	return nil
}

// guarded converts a panic into an error, so that a bug in one score does not affect the others.
func guarded(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("This score failed on these rows (%v).", p)
		}
	}()
	return do(ctx)
}

// sumUp summarizes repeats as spreads and removes values that are not finite.
func (f *fieldWork) sumUp() {
	for name, draws := range f.draws {
		if draws = slices.DeleteFunc(draws, math.IsNaN); len(draws) > 0 {
			f.out.Chance[name] = spreadOf(slices.Sorted(slices.Values(draws)), chanceFloor)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.out.Scores)) {
		if v := float64(f.out.Scores[name]); math.IsInf(v, 0) {
			f.out.Scores[name] = model.Undefined()
			f.out.Problems[name] = "The latents are too large or too close together for this score; rescale them."
		}
	}
}

// chance records a score of shuffled factors.
func (f *fieldWork) chance(name string, v float64) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.draws[name] = append(f.draws[name], v)
}

// cheap computes the scores that are deterministic and fast enough to repeat on shuffled factors and half-samples.
func (w *world) cheap() map[string]model.Score {
	to := map[string]model.Score{}
	w.information().scores(to)
	if w.n > 2 {
		if w.discrete() {
			to["sap"] = w.sap(w.sapMatrix(nil))
		} else {
			to["sap"], to["sap_std"] = w.sap(w.sapMatrix(w.values)), w.sap(w.sapMatrix(w.scaledByTraining()))
		}
	}
	if !w.discrete() {
		fraction, _ := w.irs(0.99)
		most, _ := w.irs(1)
		to["irs"], to["irs_max"] = model.Score(fraction), model.Score(most)
	}
	to["factorvae_limit"] = w.limitScore()
	return to
}

// limitScore is undefined for one factor, and 0 if no latent is active.
func (w *world) limitScore() model.Score {
	switch {
	case len(w.factors) < 2:
		return model.Undefined()
	case !slices.Contains(w.active, true):
		return 0
	}
	_, _, score := w.factorLimit()
	return model.Score(score)
}

// planCheap measures the cheap scores on the table, on shuffled factors, and on half-samples.
func (f *fieldWork) planCheap() {
	if reason := tooWide(f.w); reason != "" {
		f.problem("numbers", reason)
		f.add(1, func(context.Context) error { f.keepInformation(); return nil }, "mig")
		return
	}
	f.add(1, func(context.Context) error { f.keepInformation(); return nil }, "mig", "dcimig", "modularity", "infom_plugin")
	f.add(1, f.keepSAP, "sap")
	f.add(1, func(context.Context) error { f.keepIRS(); return nil }, "irs")
	f.add(1, func(context.Context) error { f.keepLimit(); return nil }, "factorvae_limit")
	for repeat := range chanceDraws {
		f.add(1, func(context.Context) error {
			for name, v := range f.w.shuffled(f.orders[repeat]).cheap() {
				f.chance(name, float64(v))
			}
			return nil
		}, "chance")
	}
	if f.w.n >= leastHalves {
		f.planHalves()
	}
}

// tooWide explains why the numbers cannot be squared; empty if they can.
func tooWide(w *world) string {
	for j, x := range w.values {
		for r, v := range x {
			if math.Abs(v) > wideNumber {
				return fmt.Sprintf("Latent %d of row %d is %g. Scores that square latents need magnitudes up to %g; rescale the latents. Other scores are not affected.", j, r, v, wideNumber)
			}
		}
	}
	return ""
}

// leastScore is the lower bound of scores that can be below 0.
var leastScore = map[string]float64{"irs": math.Inf(-1), "irs_max": math.Inf(-1), "mig": math.Inf(-1)}

func (f *fieldWork) planHalves() {
	found := make([]map[string]model.Score, halves)
	for repeat := range halves {
		f.add(0.5, func(context.Context) error {
			half := f.w.take(halfSample(f.w.n, stream(f.o.Seed, forHalves, repeat)))
			if len(half.factors) == len(f.w.factors) {
				found[repeat] = half.cheap()
			}
			return nil
		}, "intervals")
	}
	f.finish = append(f.finish, func() {
		draws := map[string][]float64{}
		for _, scores := range found {
			for name, v := range scores {
				draws[name] = append(draws[name], float64(v))
			}
		}
		for name, x := range draws {
			if i, ok := halvesInterval(f.out.Scores[name], x, leastScore[name], 1); ok {
				f.out.Intervals[name] = i
			}
		}
	})
}

func (f *fieldWork) keepInformation() {
	v, scores := f.w.information(), map[string]model.Score{}
	v.scores(scores)
	f.lock.Lock()
	defer f.lock.Unlock()
	maps.Copy(f.out.Scores, scores)
	f.out.MI, f.out.MIMillerMadow, f.out.MIExpected = v.plugin, v.mm, v.chance
	f.out.FactorEntropy, f.out.FactorEntropyMM, f.out.LatentEntropy = v.h, v.hMM, v.latent
	f.out.MIGFactors = scoresOf(mig(v.plugin, v.h))
	if latents := modularity(v.plugin); latents != nil {
		f.out.ModularityLatents = scoresOf(latents)
	}
}

func (f *fieldWork) keepSAP(context.Context) error {
	if f.w.n < 3 {
		return fmt.Errorf("Prediction needs at least 3 rows for training and testing; the table has %d.", f.w.n)
	}
	put := func(name string, latents [][]float64) [][]model.Score {
		a := f.w.sapMatrix(latents)
		f.lock.Lock()
		defer f.lock.Unlock()
		f.out.Scores[name] = f.w.sap(a)
		return scoreRows(a)
	}
	if !f.w.discrete() {
		f.out.SAP, f.out.SAPStandard = put("sap", f.w.values), put("sap_std", f.w.scaledByTraining())
		return nil
	}
	f.out.SAP, f.out.SAPIndex = put("sap", nil), put("sap_index", f.indices())
	return nil
}

// indices are the codes as numbers.
func (f *fieldWork) indices() [][]float64 {
	out := make([][]float64, len(f.t.Codes))
	for j, c := range f.t.Codes {
		out[j] = make([]float64, len(c))
		for r, v := range c {
			out[j][r] = float64(v)
		}
	}
	return out
}

func (f *fieldWork) keepIRS() {
	if f.w.discrete() {
		return
	}
	score, matrix := f.w.irs(0.99)
	most, largest := f.w.irs(1)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.out.Scores["irs"], f.out.Scores["irs_max"] = model.Score(score), model.Score(most)
	f.out.IRS, f.out.IRSMax = scoreRows(matrix), scoreRows(largest)
}

func (f *fieldWork) keepLimit() {
	score := f.w.limitScore()
	f.lock.Lock()
	defer f.lock.Unlock()
	f.out.Scores["factorvae_limit"] = score
	if len(f.w.factors) < 2 {
		return
	}
	f.out.BetaVAEDifference = scoreRows(f.w.betaDifference())
	if slices.Contains(f.w.active, true) {
		f.out.FactorVAERatio, f.out.FactorVAEVotes, _ = f.w.factorLimit()
	}
}

func (f *fieldWork) planRedundancy() {
	f.add(3, func(context.Context) error {
		r := f.w.redundancy(f.o.Seed)
		f.lock.Lock()
		defer f.lock.Unlock()
		f.out.Redundancy, f.out.Scores["redundancy_pairs"] = &r, r.PairSum
		if f.w.latents() > maxLatents {
			f.out.Problems["redundancy_pairs"] = fmt.Sprintf("The table has %d latents; pairs are compared only up to %d latents.", f.w.latents(), maxLatents)
		}
		return nil
	}, "redundancy")
}

// planExtra scores the extra content of the file.
func (f *fieldWork) planExtra() {
	for _, c := range f.extra.Curves {
		f.out.CurveExplicitness = append(f.out.CurveExplicitness, c.explicitness())
	}
	if len(f.extra.Models) > 0 {
		f.add(5, func(ctx context.Context) (err error) {
			f.out.UDR, err = udr(ctx, f.extra.Models, f.o.Seed)
			return err
		}, "udr")
	}
	if len(f.extra.Selections) > 0 {
		f.out.Selections = make([]map[string]model.Score, len(f.extra.Selections))
	}
	for at, s := range f.extra.Selections {
		f.add(1, func(context.Context) error {
			part, err := f.t.selected(s)
			if err != nil {
				return fmt.Errorf("Selection %d: %w", at, err)
			}
			if w := newWorld(part); len(w.factors) > 0 {
				f.out.Selections[at] = w.cheap()
			}
			return nil
		}, fmt.Sprintf("selection %d", at))
	}
}

// selected is a subset of the columns of a table.
func (t Table) selected(s Selection) (Table, error) {
	part := Table{}
	for _, j := range s.Latents {
		if j < 0 || j >= t.latents() {
			return part, fmt.Errorf("no latent %d; choose 0 to %d", j, t.latents()-1)
		}
		if t.discrete() {
			part.Codes = append(part.Codes, t.Codes[j])
		} else {
			part.Values = append(part.Values, t.Values[j])
		}
	}
	for _, i := range s.Factors {
		if i < 0 || i >= len(t.Factors) {
			return part, fmt.Errorf("no factor %d; choose 0 to %d", i, len(t.Factors)-1)
		}
		part.Factors = append(part.Factors, t.Factors[i])
	}
	return part, part.Check()
}

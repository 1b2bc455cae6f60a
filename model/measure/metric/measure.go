package metric

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"slotscope/model"
)

// Options configure a measurement; the zero value is valid.
type Options struct {
	Seed     int64                  // of forests, splits, shuffles and the noise that breaks ties
	Trees    int                    // per forest; 0 for 100
	Workers  int                    // number of parallel workers; 0 for one per core
	Progress func(done, of float64) // called with the completed and total work, in arbitrary units; may be nil
}

// Measure computes InfoMEC and DCI of a table. The result does not depend on the number of workers.
//
// Factors with a single value are ignored. If ctx ends, Measure returns early with an error that wraps ctx.Err().
func Measure(ctx context.Context, t Table, o Options) (model.Metrics, error) {
	if err := t.Check(); err != nil {
		return model.Metrics{}, err
	}
	m := newMeasurement(t, o)
	if err := m.affordable(); err != nil {
		return model.Metrics{}, err
	}
	m.plan()
	if err := m.run(ctx); err != nil {
		return model.Metrics{}, err
	}
	return m.scores(), nil
}

// measurement is the state of measuring one table: shared inputs, tasks and results.
type measurement struct {
	t       Table
	o       Options
	factors []labels
	slots   []labels // of codes
	kept    []int

	relations relations
	ownership model.Ownership
	fits      [3][]model.Score // InfoE of each kind, [F]
	views     []*forests       // one-hot and numbers, or numbers alone
	tasks     []task
}

// The kinds of InfoE.
const (
	inSample = iota
	onHeldOut
	onShuffled
)

// task is a part of the work that can run in parallel with the others.
type task struct {
	cost float64 // relative to other tasks
	do   func(ctx context.Context) error
}

// forests is one view of the latents: the forest of every kept factor, in chunks.
type forests struct {
	of     []forest
	chunks [][]chunk
}

func newMeasurement(t Table, o Options) *measurement {
	if o.Trees == 0 {
		o.Trees = defaultTrees
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	m := &measurement{t: t, o: o, factors: labelAll(t.Factors), slots: labelAll(t.Codes)}
	m.kept = kept(m.factors)
	for kind := range m.fits {
		m.fits[kind] = undefined(len(m.factors))
	}
	return m
}

// affordable returns an error if a factor has so many values that its regression would not fit into memory, which means that it is
// probably not a class.
func (m *measurement) affordable() error {
	columns := m.t.latents() + 1
	for _, s := range m.slots {
		columns += s.k - 1
	}
	for i, f := range m.factors {
		if size := columns * f.k; size > maxWeights {
			return fmt.Errorf("%s has %d values and the latents have %d columns, which needs a regression with %d weights (limit %d); "+
				"check that the factors are classes and the latents are codes", m.t.name(i), f.k, columns, size, maxWeights)
		}
	}
	return nil
}

// plan lists the tasks, large ones first.
func (m *measurement) plan() {
	m.planFits(inSample, onHeldOut, onShuffled)
	numbers := m.t.Values
	if m.t.discrete() {
		x := oneHot(m.slots)
		m.planForests(func(s *sample) view { return newHotView(x, s) })
		for _, c := range m.t.Codes {
			column := make([]float64, len(c))
			for r, v := range c {
				column[r] = float64(v)
			}
			numbers = append(numbers, column)
		}
	}
	numbers = standardize(numbers)
	sorted := byValue(numbers)
	m.planForests(func(s *sample) view { return newNumberView(numbers, sorted, s) })
	m.planRelations()
}

func (m *measurement) planRelations() {
	m.tasks = append(m.tasks, task{1, func(context.Context) error {
		m.relations = relate(m.t, m.factors, m.o.Seed)
		m.ownership = Own(m.t, m.o.Seed)
		return nil
	}})
}

// planFits adds the regressions of some kinds of InfoE, one for each kept factor.
func (m *measurement) planFits(kinds ...int) {
	x := designOf(m.t)
	for _, i := range m.kept {
		for _, kind := range kinds {
			m.tasks = append(m.tasks, task{float64(m.factors[i].k), func(ctx context.Context) (err error) {
				m.fits[kind][i], err = m.fit(ctx, kind, x, m.factors[i])
				return err
			}})
		}
	}
}

// fit computes one kind of InfoE of one factor.
func (m *measurement) fit(ctx context.Context, kind int, x design, s labels) (model.Score, error) {
	switch kind {
	case onHeldOut:
		return heldOut(ctx, x, s, m.o.Seed)
	case onShuffled:
		return shuffled(ctx, x, s, m.o.Seed)
	}
	return explicitness(ctx, x, s)
}

func (m *measurement) planForests(look func(*sample) view) {
	all := &forests{}
	train, test := referenceSplit(m.t.rows())
	table := xlogx(len(train))
	for _, i := range m.kept {
		f := forest{y: m.factors[i], train: train, test: test, seed: uint64(m.o.Seed), view: look, xlogx: table,
			stream: uint64(len(m.views)*len(m.factors) + i)}
		chunks := make([]chunk, (m.o.Trees+chunkTrees-1)/chunkTrees)
		for c := range chunks {
			m.tasks = append(m.tasks, task{1, func(ctx context.Context) (err error) {
				chunks[c], err = f.grow(ctx, c*chunkTrees, min((c+1)*chunkTrees, m.o.Trees))
				return err
			}})
		}
		all.of, all.chunks = append(all.of, f), append(all.chunks, chunks)
	}
	m.views = append(m.views, all)
}

// run executes the tasks on the workers.
func (m *measurement) run(ctx context.Context) error {
	of, done := 0.0, 0.0
	for _, t := range m.tasks {
		of += t.cost
	}
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.o.Workers)
	for _, t := range m.tasks {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("measuring: %w", context.Cause(ctx))
			}
			err := t.do(ctx)
			lock.Lock()
			defer lock.Unlock()
			if done += t.cost; err == nil && m.o.Progress != nil {
				m.o.Progress(done, of)
			}
			return err
		})
	}
	return group.Wait()
}

func (m *measurement) scores() model.Metrics {
	t := m.t
	s := model.Metrics{
		Discrete: t.discrete(), Rows: t.rows(), Latents: t.latents(), Seed: m.o.Seed,
		InfoM: m.relations.infoM(), InfoC: m.relations.infoC(),
		InfoE: meanScore(m.fits[inSample], m.kept), InfoEFactors: m.fits[inSample],
		InfoEHeldOut: meanScore(m.fits[onHeldOut], m.kept), InfoEHeldOutFactors: m.fits[onHeldOut],
		InfoEShuffled: meanScore(m.fits[onShuffled], m.kept), InfoEShuffledFactors: m.fits[onShuffled],
		NMI: m.relations.nmi, ActiveLatents: m.relations.active, KeptFactors: append([]int{}, m.kept...),
		DCI: m.dci(), Ownership: &m.ownership,
	}
	for i, f := range m.factors {
		s.Factors = append(s.Factors, t.name(i))
		s.Values = append(s.Values, f.k)
	}
	for _, c := range m.slots {
		s.Codes = append(s.Codes, c.k)
	}
	return s
}

func (m *measurement) dci() model.DCI {
	d := model.DCI{Trees: m.o.Trees, OneHot: noDCI(), SlotSum: noDCI(), Slots: noDCI()}
	if len(m.kept) == 0 {
		return d
	}
	f := len(m.factors)
	if m.t.discrete() {
		r, accuracy := m.views[0].verdicts()
		bySlot := slotSum(r, m.slots)
		d.OneHot = scoreDCI(r, bySlot, accuracy, m.kept, f)
		d.SlotSum = scoreDCI(bySlot, bySlot, accuracy, m.kept, f)
	}
	r, accuracy := m.views[len(m.views)-1].verdicts()
	d.Slots = scoreDCI(r, r, accuracy, m.kept, f)
	return d
}

// verdicts are the importances [p][F'] and accuracies [F'] of all kept factors.
func (v *forests) verdicts() (r [][]float64, accuracy []float64) {
	columns := make([][]float64, len(v.of))
	accuracy = make([]float64, len(v.of))
	for i, f := range v.of {
		columns[i], accuracy[i] = f.verdict(v.chunks[i])
	}
	return transposed(columns), accuracy
}

// Unmeasured is the result for a table that Measure rejects: every score is undefined.
func Unmeasured(t Table) model.Metrics {
	nothing := model.Undefined()
	return model.Metrics{Discrete: t.discrete(), Rows: t.rows(), Latents: t.latents(), InfoM: nothing, InfoE: nothing, InfoC: nothing,
		InfoEHeldOut: nothing, InfoEShuffled: nothing, DCI: model.DCI{OneHot: noDCI(), SlotSum: noDCI(), Slots: noDCI()}}
}

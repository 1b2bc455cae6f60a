package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"slotscope/model"
)

// Found is the existing run of an item.
type Found struct {
	Run     model.Run
	Scores  *model.Scores // nil before the run is scored
	Problem string        // why its evaluation failed, or why it does not match the item; empty otherwise
}

// Evaluated reports whether InfoMEC and DCI are measured or cannot be measured.
func (f Found) Evaluated() bool { return f.Scores != nil && f.Scores.Evaluated() }

// Lookup returns an item's run; false if there is none.
type Lookup func(id string) (Found, bool)

// Stage is the progress of an item.
type Stage string

const (
	Planned    Stage = "planned"     // no run yet
	Live       Stage = "live"        // queued, running or stopping
	Halted     Stage = "halted"      // stopped or interrupted; can be resumed
	Unmeasured Stage = "to evaluate" // finished, not evaluated
	Failed     Stage = "failed"      // the run or its evaluation failed
	Done       Stage = "done"        // finished and evaluated
	Out        Stage = "out"         // its setting lost the race; it is not started or resumed
)

// Standing is an item with its progress.
type Standing struct {
	Item
	Found
	Stage Stage
	Parts []int // parts that report it; empty for a run that only serves a choice
	Later bool  // a race has not reached its seed yet
}

// Ended reports whether no further work is done on the item automatically.
func (s Standing) Ended() bool { return s.Stage == Failed || s.Stage == Done || s.Stage == Out }

// Choice is the result of Select for a model on a dataset.
type Choice struct {
	Part           int
	Model, Dataset string
	Axis           Axis
	InfoM          []float64 // mean over each value's seeds; NaN if none has an InfoM
	Seeds          []int     // number of seeds in each mean
	Chosen         string    // chosen value; empty while undecided
	Problem        string    // why no value can be chosen; empty otherwise
}

// Board is the progress of a plan, given the existing runs.
type Board struct {
	Plan    Plan
	Items   []Standing // known items; each run once
	Choices []Choice
	Waiting int // runs whose setting depends on a pending choice
}

// Look compares a plan with the existing runs.
func (p Plan) Look(find Lookup) Board {
	l := looker{plan: p, find: find, at: map[string]int{}, wanted: map[string]bool{}, board: Board{Plan: p}}
	for i, part := range p.Parts {
		for _, dataset := range part.Datasets {
			for _, name := range part.Models {
				l.part(i, part, dataset, name)
			}
		}
	}
	l.settle()
	return l.board
}

type looker struct {
	plan   Plan
	find   Lookup
	at     map[string]int  // position of items by id
	wanted map[string]bool // items that some part wants now (true) or later (false); others have lost a race
	board  Board
}

// wants records that a part wants an item, now or later.
func (l *looker) wants(id string, now bool) { l.wanted[id] = l.wanted[id] || now }

// settle marks items that wait for a race, and items that have lost it in every part that includes them.
func (l *looker) settle() {
	for i := range l.board.Items {
		s := &l.board.Items[i]
		now, wanted := l.wanted[s.ID]
		s.Later = wanted && !now
		if !wanted && (s.Stage == Planned || s.Stage == Halted) {
			s.Stage = Out
		}
	}
}

// part adds the items of one model on one dataset: first those of the choice, then those that depend on it.
func (l *looker) part(i int, part Part, dataset, name string) {
	chosen := map[string]string{}
	if a, ok := part.axis(name); ok {
		c := l.choose(i, part, dataset, name, a)
		l.board.Choices = append(l.board.Choices, c)
		if c.Chosen == "" {
			l.board.Waiting += len(part.Seeds) * len(part.settings(name))
			return
		}
		chosen[a.Field] = c.Chosen
	}
	var settings []map[string]string
	for _, set := range part.settings(name) {
		all := maps.Clone(chosen)
		maps.Copy(all, set)
		settings = append(settings, all)
	}
	if part.Race != nil && len(settings) > 1 {
		l.race(i, part, dataset, name, settings)
		return
	}
	for _, set := range settings {
		for _, seed := range part.Seeds {
			if item, err := l.plan.Item(i, name, dataset, seed, set); err == nil {
				l.add(item)
				l.wants(item.ID, true)
			}
		}
	}
}

// choose adds the runs of Select; the choice is made once all of them have ended.
func (l *looker) choose(i int, part Part, dataset, name string, a Axis) Choice {
	c := Choice{Part: i, Model: name, Dataset: dataset, Axis: a}
	open, best := false, -1
	for j, value := range a.Values {
		sum, n := 0.0, 0
		for _, seed := range part.Select.Seeds {
			item, err := l.plan.selecting(i, name, dataset, seed, a.Field, value)
			if err != nil {
				continue
			}
			s := l.add(item)
			l.wants(item.ID, true)
			open = open || !s.Ended()
			if v := infoM(s.Found); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		c.InfoM, c.Seeds = append(c.InfoM, sum/float64(n)), append(c.Seeds, n) // NaN for n = 0
		if n > 0 && (best < 0 || c.InfoM[j] > c.InfoM[best]) {
			best = j
		}
	}
	switch {
	case open:
	case best < 0:
		c.Problem = fmt.Sprintf("%s cannot be chosen: no run of %s on %s has an InfoM", a.Field, name, dataset)
	default:
		c.Chosen = a.Values[best]
	}
	return c
}

func infoM(f Found) float64 {
	if f.Scores == nil || f.Scores.Metrics == nil || !f.Scores.Metrics.InfoM.Defined() {
		return math.NaN()
	}
	return float64(f.Scores.Metrics.InfoM)
}

// add adds an item, once, and returns its progress and the parts that report it.
func (l *looker) add(item Item) Standing {
	i, known := l.at[item.ID]
	if !known {
		i = len(l.board.Items)
		l.at[item.ID] = i
		s := Standing{Item: item, Stage: Planned}
		if found, ok := l.find(item.ID); ok {
			s.Found = found
			s.Stage = stageOf(item, &s.Found)
		}
		l.board.Items = append(l.board.Items, s)
	}
	s := &l.board.Items[i]
	if !item.Selecting && !slices.Contains(s.Parts, item.Part) {
		s.Parts = append(s.Parts, item.Part)
	}
	return *s
}

func stageOf(item Item, f *Found) Stage {
	switch {
	case f.Run.Config.WithoutComputing() != item.Config.WithoutComputing():
		f.Problem = fmt.Sprintf("the configuration of run %s was changed and no longer matches the plan", item.ID)
		return Failed
	case f.Run.State == model.Failed:
		f.Problem = cmp.Or(f.Run.Reason, "the run failed")
		return Failed
	case f.Run.State == model.Stopped || f.Run.State == model.Interrupted:
		return Halted
	case f.Run.State != model.Finished:
		return Live
	case f.Evaluated():
		return Done
	case f.Problem != "":
		return Failed
	}
	return Unmeasured
}

// Count returns the number of items in the given stages.
func (b Board) Count(stages ...Stage) int {
	n := 0
	for _, s := range b.Items {
		if slices.Contains(stages, s.Stage) {
			n++
		}
	}
	return n
}

// Total returns the number of runs, including those that wait for a choice.
func (b Board) Total() int { return len(b.Items) + b.Waiting }

// Over reports whether nothing is left to do. It ignores runs that wait for a choice, which then cannot be made.
func (b Board) Over() bool { return b.Count(Planned, Live, Halted, Unmeasured) == 0 }

// Problems returns a sentence for each choice that cannot be made.
func (b Board) Problems() []string {
	var all []string
	for _, c := range b.Choices {
		if c.Problem != "" {
			all = append(all, c.Problem)
		}
	}
	return all
}

// Steps returns the number of completed steps and the total number of steps, over all runs.
func (b Board) Steps() (done, total int) {
	each := 0
	for _, s := range b.Items {
		step := min(s.Run.Step, s.Config.Steps)
		done += step
		if s.Stage == Out {
			total += step
			continue
		}
		total += s.Config.Steps
		each = max(each, s.Config.Steps)
	}
	return done, total + b.Waiting*each
}

// Left estimates the remaining seconds, with runs in sequence, from the median speed of runs of the same preset and model, else of the
// same preset, else of all; known is false before any has been measured.
func (b Board) Left() (seconds float64, known bool) {
	pace := map[string]*speed{}
	for _, s := range b.Items {
		if s.Run.ImagesPerSecond <= 0 {
			continue
		}
		for _, key := range []string{"", s.Config.Preset, s.Config.Preset + " " + s.Config.Model} {
			if pace[key] == nil {
				pace[key] = &speed{}
			}
			pace[key].add(s)
		}
	}
	all := pace[""]
	if all == nil {
		return 0, false
	}
	for _, s := range b.Items {
		if s.Ended() {
			continue
		}
		p := cmp.Or(pace[s.Config.Preset+" "+s.Config.Model], pace[s.Config.Preset], all)
		left := max(0, s.Config.Steps-s.Run.Step) * s.Config.Batch
		seconds += float64(left)/p.images() + all.evaluation()
	}
	_, total := b.Steps()
	if b.Waiting > 0 && b.Total() > 0 {
		batch := b.Items[0].Config.Batch
		seconds += float64(b.Waiting) * (float64(total/b.Total()*batch)/all.images() + all.evaluation())
	}
	return seconds, true
}

// speed accumulates the speed of runs.
type speed struct {
	rates     []float64 // images per second
	evaluated int
	seconds   float64 // total duration of evaluations
}

func (p *speed) add(s Standing) {
	p.rates = append(p.rates, s.Run.ImagesPerSecond)
	if s.Evaluated() && s.Scores.Seconds > 0 {
		p.evaluated++
		p.seconds += s.Scores.Seconds
	}
}

// images returns the median rate: a run that was paused or disturbed at its end reports a rate far below its own.
func (p *speed) images() float64 {
	rates := slices.Sorted(slices.Values(p.rates))
	middle := len(rates) / 2
	if len(rates)%2 == 1 {
		return rates[middle]
	}
	return (rates[middle-1] + rates[middle]) / 2
}

func (p *speed) evaluation() float64 {
	if p.evaluated == 0 {
		return 0
	}
	return p.seconds / float64(p.evaluated)
}

// EvalFlags returns the flags of `slotscope eval` for the item: the number of images from its configuration, other flags from the plan,
// and only the metrics for a run that only serves a choice.
func (s Standing) EvalFlags() []string {
	flags := []string{"--images", strconv.Itoa(s.Config.EvalImages)}
	for _, name := range slices.Sorted(maps.Keys(s.eval)) {
		flags = append(flags, "--"+name, strconv.Itoa(s.eval[name]))
	}
	if len(s.Parts) == 0 {
		flags = append(flags, "--noise", "0", "--pairs", "0", "--heldout=false") // the last value of a flag wins
	}
	return flags
}

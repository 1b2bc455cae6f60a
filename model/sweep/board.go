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

// Found is what there is of an item's run.
type Found struct {
	Run     model.Run
	Scores  *model.Scores // nil before the run is scored
	Problem string        // why its evaluation failed, or why it is not the item's run; empty otherwise
}

// Evaluated says whether InfoMEC and DCI are measured, or cannot be.
func (f Found) Evaluated() bool { return f.Scores != nil && f.Scores.Evaluated() }

// Lookup finds an item's run; false where there is none.
type Lookup func(id string) (Found, bool)

// Stage says how far an item is.
type Stage string

const (
	Planned    Stage = "planned"     // there is no run yet
	Live       Stage = "live"        // queued, running or stopping
	Halted     Stage = "halted"      // stopped or interrupted: it can go on
	Unmeasured Stage = "to evaluate" // finished, its metrics are not measured
	Failed     Stage = "failed"      // it failed, or its evaluation did
	Done       Stage = "done"        // finished and evaluated
	Out        Stage = "out"         // its setting has lost the race: it is not begun, or not gone on with
)

// Standing is an item and how it stands.
type Standing struct {
	Item
	Found
	Stage Stage
	Parts []int // whose results it is; empty for a run that only serves a choice
	Later bool  // a race has not come to its seed yet
}

// Ended says whether nothing more happens to the item by itself.
func (s Standing) Ended() bool { return s.Stage == Failed || s.Stage == Done || s.Stage == Out }

// Choice is what Select found for a model on a dataset.
type Choice struct {
	Part           int
	Model, Dataset string
	Axis           Axis
	InfoM          []float64 // mean of each value's seeds; NaN where none has one
	Seeds          []int     // that stand behind each mean
	Chosen         string    // empty while undecided
	Problem        string    // why it cannot be decided; empty otherwise
}

// Board is a plan held against the runs that there are.
type Board struct {
	Plan    Plan
	Items   []Standing // what is known so far; each run once
	Choices []Choice
	Waiting int // runs whose setting hangs on a choice
}

// Look holds a plan against the runs that there are.
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
	at     map[string]int  // of items, by id
	wanted map[string]bool // items that some part wants, now or (false) later; others have lost a race
	board  Board
}

// wants enters that a part wants an item, now or later.
func (l *looker) wants(id string, now bool) { l.wanted[id] = l.wanted[id] || now }

// settle says which items wait for a race, and which have lost it in every part that has them.
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

// part looks at one model on one dataset: the choice first, then what follows from it.
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

// choose looks at the runs of Select; the choice falls once all of them have ended.
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
		c.Problem = fmt.Sprintf("no run of %s on %s has an InfoM to choose %s by", name, dataset, a.Field)
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

// add enters an item, once, says how it stands and whose results it is.
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
	cfg := f.Run.Config
	cfg.Engine = item.Config.Engine
	switch {
	case cfg != item.Config:
		f.Problem = fmt.Sprintf("run %s was changed: its configuration no longer matches the plan", item.ID)
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

// Count is how many items stand so.
func (b Board) Count(stages ...Stage) int {
	n := 0
	for _, s := range b.Items {
		if slices.Contains(stages, s.Stage) {
			n++
		}
	}
	return n
}

// Total is how many runs there are to do in all, those that wait for a choice included.
func (b Board) Total() int { return len(b.Items) + b.Waiting }

// Over says whether nothing is left to do: runs that wait for a choice which cannot be made will never come.
func (b Board) Over() bool { return b.Count(Planned, Live, Halted, Unmeasured) == 0 }

// Problems are sentences on choices that cannot be made.
func (b Board) Problems() []string {
	var all []string
	for _, c := range b.Choices {
		if c.Problem != "" {
			all = append(all, c.Problem)
		}
	}
	return all
}

// Steps is how many steps are done, and how many there are to do, over all runs.
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

// Left estimates the seconds to the end, one run after another, from how fast runs of the same model have been, or else any;
// false before any has been measured.
func (b Board) Left() (seconds float64, known bool) {
	pace := map[string]*speed{}
	all := &speed{}
	for _, s := range b.Items {
		if s.Run.ImagesPerSecond > 0 {
			all.add(s)
			if pace[s.Config.Model] == nil {
				pace[s.Config.Model] = &speed{}
			}
			pace[s.Config.Model].add(s)
		}
	}
	if all.runs == 0 {
		return 0, false
	}
	for _, s := range b.Items {
		if s.Ended() {
			continue
		}
		p := cmp.Or(pace[s.Config.Model], all)
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

// speed is how fast runs have been.
type speed struct {
	runs      int
	inverse   float64 // sum of seconds per image
	evaluated int
	seconds   float64 // of evaluations
}

func (p *speed) add(s Standing) {
	p.runs++
	p.inverse += 1 / s.Run.ImagesPerSecond
	if s.Evaluated() && s.Scores.Seconds > 0 {
		p.evaluated++
		p.seconds += s.Scores.Seconds
	}
}

func (p *speed) images() float64 { return float64(p.runs) / p.inverse }

func (p *speed) evaluation() float64 {
	if p.evaluated == 0 {
		return 0
	}
	return p.seconds / float64(p.evaluated)
}

// EvalFlags are the flags of `slotscope eval` for the item: as many images as its configuration says, what the plan says of the
// rest, and for a run that only serves a choice nothing beyond the metrics.
func (s Standing) EvalFlags() []string {
	flags := []string{"--images", strconv.Itoa(s.Config.EvalImages)}
	for _, name := range slices.Sorted(maps.Keys(s.eval)) {
		flags = append(flags, "--"+name, strconv.Itoa(s.eval[name]))
	}
	if len(s.Parts) == 0 {
		flags = append(flags, "--noise", "0", "--pairs", "0", "--heldout=false") // the last of a flag counts
	}
	return flags
}

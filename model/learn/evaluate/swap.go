package evaluate

import (
	"context"
	"fmt"
	"slices"

	"slotscope/model"
)

// owners returns the factor that owns each slot, −1 if none does.
func owners(slots []model.Owner) []int {
	own := make([]int, len(slots))
	for j, s := range slots {
		own[j] = s.Factor()
	}
	return own
}

// edit replaces one slot of image a with that of image b; both are rows of the evaluation set.
type edit struct{ a, b, slot int }

// swap copies single slots of one image into another, as in the paper, and compares the probe's classes of the decoded images before and
// after.
func (e *evaluation) swap(ctx context.Context) error {
	if e.o.Pairs <= 0 || e.probe == nil {
		return nil
	}
	p := e.probe
	s := &model.Swap{Pairs: e.o.Pairs, ProbeAccuracy: e.probeAccuracy, ProbeImages: e.probeImages, ProbeReconstructions: e.probeReconstructions}
	t := newTally(owners(e.scores.Metrics.Ownership.Slots), len(p.sizes))
	edits := e.edits(t.own)
	before, err := e.unedited(ctx, edits)
	if err != nil {
		return err
	}
	done, f := 0, len(p.sizes)
	for batch := range slices.Chunk(edits, batchSize) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("evaluation: %w", err)
		}
		classes, err := p.read(e.edited(batch))
		if err != nil {
			return err
		}
		for i, x := range batch {
			t.add(x.slot, before[x.a], classes[i*f:(i+1)*f])
		}
		done += len(batch)
		e.o.Progress("swapping slots", "edits", float64(done), float64(len(edits)))
	}
	t.report(s)
	e.scores.Swap = s
	return nil
}

// edits returns the edits of random pairs that change the slot, and also the slot's own factor if it has one.
func (e *evaluation) edits(own []int) []edit {
	var list []edit
	rng, f := e.random(forPairs, 0), len(e.info.Factors)
	for range e.o.Pairs {
		a, b := rng.IntN(len(e.index)), rng.IntN(len(e.index))
		for j, i := range own {
			if e.slots.differ(a, b, j, e.net.m) && (i < 0 || e.classes[a*f+i] != e.classes[b*f+i]) {
				list = append(list, edit{a, b, j})
			}
		}
	}
	return list
}

// unedited returns the classes that the probe reads from the decoded images before editing, by row of the evaluation set.
func (e *evaluation) unedited(ctx context.Context, edits []edit) (map[int][]int32, error) {
	var rows []int
	for _, x := range edits {
		rows = append(rows, x.a)
	}
	slices.Sort(rows)
	before, f := map[int][]int32{}, len(e.probe.sizes)
	for batch := range slices.Chunk(slices.Compact(rows), batchSize) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		e.o.Progress("swapping slots", "edits", 0, float64(len(edits)))
		classes, err := e.probe.read(e.slots.take(batch, e.net.m))
		if err != nil {
			return nil, err
		}
		for i, r := range batch {
			before[r] = classes[i*f : (i+1)*f]
		}
	}
	return before, nil
}

// edited returns the slots of a batch of images with one edit each.
func (e *evaluation) edited(edits []edit) slots {
	var rows []int
	for _, x := range edits {
		rows = append(rows, x.a)
	}
	s := e.slots.take(rows, e.net.m)
	for i, x := range edits {
		s.put(i, x.slot, e.slots, x.b, e.net.m)
	}
	return s
}

// tally counts what edits changed, by slot.
type tally struct {
	own                        []int
	edits, exact, none, others []int
	changed                    [][]int // [m][F]
}

func newTally(own []int, factors int) *tally {
	m := len(own)
	t := &tally{own: own, edits: make([]int, m), exact: make([]int, m), none: make([]int, m), others: make([]int, m)}
	for range m {
		t.changed = append(t.changed, make([]int, factors))
	}
	return t
}

func (t *tally) add(slot int, before, after []int32) {
	mine, others := false, false
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		t.changed[slot][i]++
		if i == t.own[slot] {
			mine = true
		} else {
			others = true
		}
	}
	t.edits[slot]++
	switch {
	case others:
		t.others[slot]++
	case mine:
		t.exact[slot]++
	default:
		t.none[slot]++
	}
}

// report sums over the slots that have their own factor, and lists all slots.
func (t *tally) report(s *model.Swap) {
	exact, none, others := 0, 0, 0
	for j, own := range t.own {
		n := t.edits[j]
		slot := model.SlotSwap{Factor: own, Edits: n, Exact: share(t.exact[j], n), None: share(t.none[j], n), Others: share(t.others[j], n)}
		for _, c := range t.changed[j] {
			slot.Leakage = append(slot.Leakage, share(c, n))
		}
		s.Slots = append(s.Slots, slot)
		if own >= 0 {
			s.Edits, exact, none, others = s.Edits+n, exact+t.exact[j], none+t.none[j], others+t.others[j]
		}
	}
	s.Exact, s.None, s.Others = share(exact, s.Edits), share(none, s.Edits), share(others, s.Edits)
}

package evaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

// truth compares swaps with the true images, if the dataset has them.
func (e *evaluation) truth(ctx context.Context) error {
	if e.o.Pairs <= 0 || e.scores.Metrics == nil {
		return nil
	}
	if !e.info.Complete {
		e.scores.NoTruth = fmt.Sprintf("Swaps are compared with the true image, which may not exist because %s does not contain every combination of its factors.", e.info.Name)
		return nil
	}
	pairs := e.pairs()
	if len(pairs) == 0 {
		e.scores.NoTruth = fmt.Sprintf("Comparing swaps with the truth needs two images that differ in every factor; the %d images drawn have none. Evaluate more images.", len(e.index))
		return nil
	}
	w := truthWork{
		set: e.set, info: e.info, m: e.net.m, index: e.index, classes: e.classes, slots: e.slots, owners: *e.scores.Metrics.Ownership,
		decode: e.decoded, progress: func(done, of int) {
			e.o.Progress("comparing swaps with the truth", "pairs", float64(done), float64(of))
		},
	}
	s, err := w.run(ctx, pairs)
	e.scores.SwapTruth = s
	return err
}

// pairs returns random pairs of rows of the evaluation set that differ in every varying factor; fewer than requested if they are rare.
func (e *evaluation) pairs() (list [][2]int) {
	rng, f := e.random(forTruth, 0), len(e.info.Factors)
	for tries := 0; len(list) < e.o.Pairs && tries < 1000*e.o.Pairs; tries++ {
		a, b := rng.IntN(len(e.index)), rng.IntN(len(e.index))
		differ := true
		for i, k := range e.info.Sizes() {
			differ = differ && (k < 2 || e.classes[a*f+i] != e.classes[b*f+i])
		}
		if differ {
			list = append(list, [2]int{a, b})
		}
	}
	return list
}

// decoded decodes n rows of slots to images in [0, 1], [n, H·W·C], and returns the classes that the probe reads, [n, F]; nil without a probe.
func (e *evaluation) decoded(s slots, n int) (images []float32, classes []int32, err error) {
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	decode := e.net.decode
	if e.probe != nil {
		decode = e.probe.draw
	}
	for rows := range slices.Chunk(all, batchSize) {
		err := call("decoding swaps", decode, []any{e.net.tensor(s.take(rows, e.net.m))}, func(out []*tensors.Tensor) {
			images = add(images, out[0], len(rows))
			if e.probe != nil {
				classes = add(classes, out[1], len(rows))
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return images, classes, nil
}

// truthWork holds the inputs for comparing swaps with the truth.
type truthWork struct {
	set     data.Set
	info    data.Info
	m       int
	index   []int // [n] dataset indices of the images
	classes []int // [n, F]
	slots   slots // [n, m]
	owners  model.Ownership
	// decode maps n rows of slots to images in [0, 1] and the classes that a probe reads from them, or nil.
	decode   func(s slots, n int) (images []float32, classes []int32, err error)
	progress func(done, of int)
}

// trial is a set of slots that are swapped together to change one factor.
type trial struct {
	factor int
	slots  []int
	group  bool

	hits, unchanged int
	psnr            float64
	leaks           []int // [F]
}

// trials returns the slots that a factor owns, one trial each, then the groups with such a slot.
func (w truthWork) trials() (list []*trial) {
	for j, o := range w.owners.Slots {
		if f := o.Factor(); f >= 0 {
			list = append(list, &trial{factor: f, slots: []int{j}, leaks: make([]int, len(w.info.Factors))})
		}
	}
	for _, g := range w.owners.Groups {
		if g.Owned {
			list = append(list, &trial{factor: g.Factor, slots: g.Slots, group: true, leaks: make([]int, len(w.info.Factors))})
		}
	}
	return list
}

// run tries every pair. Intervals of shares are over pairs, since the trials of a pair are correlated.
func (w truthWork) run(ctx context.Context, pairs [][2]int) (*model.SwapTruth, error) {
	trials := w.trials()
	var single, group, baseline []float64 // a share or a PSNR per pair
	probed, size, f := false, w.info.H*w.info.W*w.info.C, len(w.info.Factors)
	each := 1 + len(trials) // images per pair
	for together := range slices.Chunk(pairs, max(1, batchSize/each)) {
		images, classes, err := w.swaps(ctx, together, trials)
		if err != nil {
			return nil, err
		}
		probed = classes != nil
		for i, pair := range together {
			hits, reconstruction, err := w.try(ctx, pair[0], pair[1], trials, part(images, i, each*size), part(classes, i, each*f))
			if err != nil {
				return nil, err
			}
			baseline = append(baseline, reconstruction)
			single, group = append(single, shareOf(trials, hits, false)), append(group, shareOf(trials, hits, true))
			w.progress(len(baseline), len(pairs))
		}
	}
	return w.report(trials, len(pairs), single, group, baseline, probed), nil
}

// swaps decodes the swaps of pairs that together fill a batch.
func (w truthWork) swaps(ctx context.Context, pairs [][2]int, trials []*trial) (images []float32, classes []int32, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("evaluation: %w", err)
	}
	var s slots
	for _, pair := range pairs {
		s.append(w.swapped(pair[0], pair[1], trials), 1+len(trials), w.m)
	}
	return w.decode(s, len(pairs)*(1+len(trials)))
}

// shareOf returns the share of hits among single slots or groups; 0 if there are none.
func shareOf(trials []*trial, hits []bool, group bool) float64 {
	n, of := 0.0, 0.0
	for i, t := range trials {
		if t.group == group {
			of++
			if hits[i] {
				n++
			}
		}
	}
	return n / max(1, of)
}

// try compares the decoded swaps of one pair with the truth and adds the results to trials. It returns which hit, and the PSNR of A's
// reconstruction.
func (w truthWork) try(ctx context.Context, a, b int, trials []*trial, images []float32, classes []int32) (hits []bool, reconstruction float64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, fmt.Errorf("evaluation: %w", err)
	}
	size, f := w.info.H*w.info.W*w.info.C, len(w.info.Factors)
	real, err := w.real(a, b, trials)
	if err != nil {
		return nil, 0, err
	}
	before := images[:size]
	reconstruction = metric.PSNROf(before, real[0])
	hits = make([]bool, len(trials))
	for i, t := range trials {
		swap, truth := images[(i+1)*size:(i+2)*size], real[1+t.factor]
		psnr := metric.PSNROf(swap, truth)
		t.psnr += psnr
		if hits[i] = metric.SwapHit(psnr, reconstruction, metric.PSNROf(before, truth)); hits[i] {
			t.hits++
		}
		if metric.MSE(swap, real[0]) <= metric.MSE(swap, truth) {
			t.unchanged++
		}
		for g := 0; g < f && classes != nil; g++ {
			if classes[(i+1)*f+g] != classes[g] {
				t.leaks[g]++
			}
		}
	}
	return hits, reconstruction, nil
}

// swapped returns A's slots unchanged, then with the slots of each trial from B.
func (w truthWork) swapped(a, b int, trials []*trial) slots {
	var s slots
	for range 1 + len(trials) {
		s.codes, s.numbers = append(s.codes, part(w.slots.codes, a, w.m)...), append(s.numbers, part(w.slots.numbers, a, w.m)...)
	}
	for i, t := range trials {
		for _, j := range t.slots {
			s.put(i+1, j, w.slots, b, w.m)
		}
	}
	return s
}

// real returns the dataset's image A, then for each factor of a trial the image with A's factors and that one from B, in [0, 1]; nil for
// other factors.
func (w truthWork) real(a, b int, trials []*trial) ([][]float32, error) {
	f, size := len(w.info.Factors), w.info.H*w.info.W*w.info.C
	places, index := []int{0}, []int{w.index[a]} // positions in the result and dataset indices
	for _, t := range trials {
		if slices.Contains(places, 1+t.factor) {
			continue
		}
		classes := slices.Clone(w.classes[a*f : (a+1)*f])
		classes[t.factor] = w.classes[b*f+t.factor]
		at, err := w.set.Index(classes)
		if err != nil {
			return nil, fmt.Errorf("finding the true image for a swap of %s: %w", w.info.Factors[t.factor].Name, err)
		}
		places, index = append(places, 1+t.factor), append(index, at)
	}
	pixels := make([]byte, len(index)*size)
	if err := w.set.Images(pixels, index); err != nil {
		return nil, fmt.Errorf("reading images of %s: %w", w.info.Name, err)
	}
	images := make([][]float32, 1+f)
	for i, place := range places {
		images[place] = unit(pixels[i*size : (i+1)*size])
	}
	return images, nil
}

// unit maps bytes to [0, 1].
func unit(pixels []byte) []float32 {
	out := make([]float32, len(pixels))
	for i, v := range pixels {
		out[i] = float32(v) / 255
	}
	return out
}

func (w truthWork) report(trials []*trial, pairs int, single, group, baseline []float64, probed bool) *model.SwapTruth {
	s := &model.SwapTruth{
		Pairs: pairs, Tolerance: model.TruthTolerance, Single: shareInterval(single), Group: shareInterval(group),
		Coverage: w.owners.Coverage, Baseline: meanInterval(baseline).Value,
	}
	rest := trials
	for j, o := range w.owners.Slots {
		none := model.TruthShare{Factor: -1, Slots: []int{j}, Hits: meanInterval(nil), PSNR: model.Undefined(), Unchanged: model.Undefined(), LeaksMost: -1}
		if o.Factor() >= 0 {
			none, rest = rest[0].share(pairs, probed), rest[1:]
		}
		s.Slots = append(s.Slots, none)
	}
	for _, t := range rest {
		s.Groups = append(s.Groups, t.share(pairs, probed))
	}
	return s
}

func (t *trial) share(pairs int, probed bool) model.TruthShare {
	n := float64(pairs)
	s := model.TruthShare{
		Factor: t.factor, Slots: t.slots, Owned: true, Hits: share(t.hits, pairs), PSNR: model.Score(t.psnr / n),
		Unchanged: model.Score(float64(t.unchanged) / n), LeaksMost: -1,
	}
	for f, count := range t.leaks {
		if !probed {
			break
		}
		s.Leak = append(s.Leak, model.Score(float64(count)/n))
		if leak := float64(count) / n; f != t.factor && leak >= model.LeakFrom && (s.LeaksMost < 0 || s.Leak[f] > s.Leak[s.LeaksMost]) {
			s.LeaksMost = f
		}
	}
	return s
}

// shareInterval returns the mean of shares, one per pair, with its 95% interval over pairs; Wilson's interval if all shares are 0 or all
// are 1.
func shareInterval(shares []float64) model.Interval {
	i := meanInterval(shares)
	if i.Value == 0 || i.Value == 1 {
		return share(int(i.Value)*len(shares), len(shares))
	}
	i.Low, i.High = max(0, i.Low), min(1, i.High)
	return i
}

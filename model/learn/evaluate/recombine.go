package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

// mostCombinations is the size of the largest training set whose factor combinations are indexed.
const mostCombinations = 5_000_000

// recombine decodes codes of training images into factor combinations that the training set leaves out, and into ones that it has, which
// measures the cost of recombination alone. unseen is the evaluation of the images left out.
func (e *evaluation) recombine(ctx context.Context, unseen *evaluation) (r *model.Recombination, why string, err error) {
	if e.o.Pairs <= 0 || e.scores.Metrics == nil {
		return nil, "", nil
	}
	if twice := ambiguous(e.info, unseen.info); twice != "" {
		return nil, fmt.Sprintf("Recombination is not measured because two values of %s have the same name.", twice), nil
	}
	known, why, err := combinationsOf(ctx, e.set)
	if why != "" || err != nil {
		return nil, why, err
	}
	w := recombining{e, known, slotsOfFactors(*e.scores.Metrics.Ownership, len(e.info.Factors)), e.encodePictures, e.decodePictures}
	r = &model.Recombination{Tolerance: model.TruthTolerance}
	left := w.trials(unseen, true)
	if len(left) == 0 {
		return nil, fmt.Sprintf("No image of %s can be recombined from two training images: each has a factor value that does not occur in training.", unseen.info.Name), nil
	}
	if r.Unseen, err = w.run(ctx, unseen, left); err == nil {
		r.Seen, err = w.run(ctx, e, w.trials(e, false))
	}
	return r, "", err
}

// ambiguous returns a factor with two values of the same name, which cannot be matched between sets; empty if none.
func ambiguous(sets ...data.Info) string {
	for _, info := range sets {
		for _, f := range info.Factors {
			if values := slices.Sorted(slices.Values(f.Values)); len(slices.Compact(values)) < len(f.Values) {
				return f.Name
			}
		}
	}
	return ""
}

// slotsOfFactors returns the slots of each factor, [F]; nil for a factor that owns none.
func slotsOfFactors(o model.Ownership, factors int) [][]int {
	of := make([][]int, factors)
	for _, g := range o.Groups {
		if g.Owned {
			of[g.Factor] = g.Slots
		}
	}
	return of
}

// recombining recombines images of e.set.
type recombining struct {
	*evaluation
	known *combinations
	slots [][]int // [F] slots of each factor

	encode func(ctx context.Context, of *evaluation, index []int) (pictures, error) // images of a part's set
	decode func(s slots, n int) ([]float32, error)                                  // the first n rows of slots, [n, H·W·C] in [0, 1]
}

// recombination is one target: row of a part's evaluation set, to be recombined from images a and b of the training set.
type recombination struct{ row, a, b, factor int }

// trials returns one recombination per target of a part, at most Options.Pairs; if unseen, only targets missing from the training set.
func (w recombining) trials(of *evaluation, unseen bool) (list []recombination) {
	purpose := uint64(0)
	if unseen {
		purpose = 1
	}
	rng, f := w.random(forRecombination, purpose), len(w.info.Factors)
	translate := translation(of.info, w.info)
	target := make([]int, f)
	for row := range of.index {
		if len(list) == w.o.Pairs {
			break
		}
		for i := range target {
			target[i] = translate[i][of.classes[row*f+i]]
		}
		if _, there := w.known.find(target); unseen && there {
			continue
		}
		if t, ok := w.trial(rng, target); ok {
			t.row = row
			list = append(list, t)
		}
	}
	return list
}

// translation maps each factor's classes in one set to the classes of the same values in another, −1 if the value is missing there.
func translation(from, to data.Info) [][]int {
	out := make([][]int, len(from.Factors))
	for i, f := range from.Factors {
		for _, value := range f.Values {
			out[i] = append(out[i], slices.Index(to.Factors[i].Values, value))
		}
	}
	return out
}

// trial finds A and B in the training set for a target's classes, with a factor drawn at random among those that have both.
func (w recombining) trial(rng *rand.Rand, target []int) (t recombination, ok bool) {
	if slices.Contains(target, -1) {
		return t, false // neither A nor B has that value
	}
	classes := slices.Clone(target)
	for _, f := range rng.Perm(len(target)) {
		for _, class := range rng.Perm(w.known.sizes[f]) {
			if class == target[f] {
				continue
			}
			classes[f] = class
			a, there := w.known.find(classes)
			if !there {
				continue
			}
			if b, there := w.known.donor(rng, classes, f, target[f]); there {
				return recombination{a: a, b: b, factor: f}, true
			}
		}
		classes[f] = target[f]
	}
	return t, false
}

// run decodes every trial of a part.
func (w recombining) run(ctx context.Context, of *evaluation, trials []recombination) (model.Recombined, error) {
	var t tallied
	for batch := range slices.Chunk(trials, batchSize) {
		if err := w.try(ctx, of, batch, &t); err != nil {
			return model.Recombined{}, err
		}
		w.o.Progress("recombining codes", "pictures", float64(len(t.reconstructed)), float64(len(trials)))
	}
	return t.report(), nil
}

// tallied accumulates the results of trials: PSNRs in dB, and counts over trials whose factor owns slots.
type tallied struct {
	recombined, reconstructed []float64
	hits, unchanged           int
}

func (t tallied) report() model.Recombined {
	r := model.Recombined{Targets: len(t.reconstructed), Owned: len(t.recombined), Hits: share(t.hits, len(t.reconstructed)),
		PSNR: meanInterval(t.recombined), Reconstruction: meanInterval(t.reconstructed), Unchanged: model.Undefined()}
	if r.Owned > 0 {
		r.Unchanged = model.Score(float64(t.unchanged) / float64(r.Owned))
	}
	return r
}

// try encodes A, B and T of a batch of trials, recombines and compares.
func (w recombining) try(ctx context.Context, of *evaluation, batch []recombination, t *tallied) error {
	var as, bs, ts []int
	for _, r := range batch {
		as, bs, ts = append(as, r.a), append(bs, r.b), append(ts, of.index[r.row])
	}
	a, err := w.encode(ctx, w.evaluation, as)
	if err != nil {
		return err
	}
	b, err := w.encode(ctx, w.evaluation, bs)
	if err != nil {
		return err
	}
	truth, err := w.encode(ctx, of, ts)
	if err != nil {
		return err
	}
	for i, r := range batch {
		for _, j := range w.slots[r.factor] {
			a.slots.put(i, j, b.slots, i, w.net.m)
		}
	}
	recombined, err := w.decode(a.slots, len(batch))
	if err != nil {
		return err
	}
	size := len(truth.images) / len(batch)
	for i, r := range batch {
		at := func(images []float32) []float32 { return images[i*size : (i+1)*size] }
		t.reconstructed = append(t.reconstructed, metric.PSNROf(at(truth.rebuilt), at(truth.images)))
		if w.slots[r.factor] != nil {
			t.add(at(recombined), at(truth.images), at(a.images), at(a.rebuilt))
		}
	}
	return nil
}

// add compares a recombined image with T, given A and its reconstruction.
func (t *tallied) add(picture, truth, a, rebuilt []float32) {
	psnr := metric.PSNROf(picture, truth)
	t.recombined = append(t.recombined, psnr)
	if metric.SwapHit(psnr, metric.PSNROf(rebuilt, a), metric.PSNROf(rebuilt, truth)) {
		t.hits++
	}
	if metric.MSE(picture, a) <= metric.MSE(picture, truth) {
		t.unchanged++
	}
}

// pictures holds images in [0, 1] and their reconstructions, [n, H·W·C], and their slots, [batchSize, m].
type pictures struct {
	images, rebuilt []float32
	slots           slots
}

// encodePictures reads, encodes and reconstructs at most batchSize images of a part's set.
func (e *evaluation) encodePictures(ctx context.Context, of *evaluation, index []int) (p pictures, err error) {
	pixels, err := of.read(ctx, index)
	if err != nil {
		return p, err
	}
	p.images = unit(pixels[:len(pixels)/batchSize*len(index)])
	err = call("encoding images to recombine", e.net.represent, []any{e.net.images(pixels)}, func(out []*tensors.Tensor) {
		p.slots, p.rebuilt = e.net.slotsOf(out[1]), add[float32](nil, out[3], len(index))
	})
	return p, err
}

// decodePictures decodes batchSize rows of slots and keeps the first n.
func (e *evaluation) decodePictures(s slots, n int) (images []float32, err error) {
	err = call("decoding recombined codes", e.net.decode, []any{e.net.tensor(s)}, func(out []*tensors.Tensor) {
		images = add(images, out[0], n)
	})
	return images, err
}

// combinations indexes the images of a set by their factor combination.
type combinations struct {
	sizes []int    // [F]
	keys  []uint64 // by image: its classes as digits of one number
	order []uint32 // images by key
}

// combinationsOf indexes a whole set; why is a sentence if the set is too large.
func combinationsOf(ctx context.Context, set data.Set) (c *combinations, why string, err error) {
	info := set.Info()
	c = &combinations{sizes: info.Sizes()}
	all := 1.0
	for _, n := range c.sizes {
		all *= float64(n)
	}
	if info.Len > mostCombinations || all > 1<<62 {
		return nil, fmt.Sprintf("Recombination is measured on training sets of at most %d images; %s has %d.", mostCombinations, info.Name, info.Len), nil
	}
	const chunk = 8192
	f := len(c.sizes)
	classes := make([]int, chunk*f)
	for first := 0; first < info.Len; first += chunk {
		if err := ctx.Err(); err != nil {
			return nil, "", fmt.Errorf("reading the factors of %s: %w", info.Name, err)
		}
		index := make([]int, min(chunk, info.Len-first))
		for i := range index {
			index[i] = first + i
		}
		if err := set.Classes(classes[:len(index)*f], index); err != nil {
			return nil, "", fmt.Errorf("reading the factors of %s: %w", info.Name, err)
		}
		for i := range index {
			c.keys = append(c.keys, c.key(classes[i*f:(i+1)*f]))
			c.order = append(c.order, uint32(first+i))
		}
	}
	slices.SortStableFunc(c.order, func(a, b uint32) int { return cmp.Compare(c.keys[a], c.keys[b]) })
	return c, "", nil
}

// key encodes classes as one number, with the first factor as the highest digit.
func (c *combinations) key(classes []int) (k uint64) {
	for f, class := range classes {
		k = k*uint64(c.sizes[f]) + uint64(class)
	}
	return k
}

// classes is the inverse of key.
func (c *combinations) classes(k uint64, into []int) {
	for f := len(c.sizes) - 1; f >= 0; f-- {
		into[f] = int(k % uint64(c.sizes[f]))
		k /= uint64(c.sizes[f])
	}
}

// find returns an image with these classes; it finds none if a class is −1.
func (c *combinations) find(classes []int) (image int, ok bool) {
	if slices.Contains(classes, -1) {
		return 0, false
	}
	at, ok := slices.BinarySearchFunc(c.order, c.key(classes), func(i uint32, k uint64) int { return cmp.Compare(c.keys[i], k) })
	if !ok {
		return 0, false
	}
	return int(c.order[at]), true
}

// donorTries is the number of random images tried when searching for a donor.
const donorTries = 2000

// donor returns a random image with a class of factor f that differs from classes in every other varying factor.
func (c *combinations) donor(rng *rand.Rand, classes []int, f, class int) (image int, ok bool) {
	have := make([]int, len(classes))
	for range donorTries {
		image = rng.IntN(len(c.keys))
		c.classes(c.keys[image], have)
		ok = have[f] == class
		for g := range have {
			ok = ok && (g == f || c.sizes[g] < 2 || have[g] != classes[g])
		}
		if ok {
			return image, true
		}
	}
	return 0, false
}

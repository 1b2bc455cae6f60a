package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
	"slotscope/model/paper/layer"
)

const (
	probeImages = 10000 // training images of the probe
	probeTests  = 1000  // test images, different from the training images
	probeRate   = 2e-3  // Adam's learning rate, with half-cosine decay to 0
	probeHidden = 128   // units between its linear layers
)

var probeWidths = []int{16, 32, 32} // channels of its convolutions

// probe reads the factors from an image: three convolutions 4/2/1 and two linear layers, trained on images of the dataset with known
// factors. It never sees the model.
type probe struct {
	net    *net
	sizes  []int // [F]
	total  int   // Σ sizes
	params []layer.Param
	scope  *store.Context

	step *store.Exec // images, targets [B, total], rate and Adam's corrections → loss
	look *store.Exec // images → classes [B, F]
	draw operation   // slots → decoded images in [0, 1], and their classes [B, F]
	seen *store.Exec // images in [0, 1] → classes; nil unless the model is adopted
}

func newProbe(n *net, info data.Info) (p *probe, err error) {
	defer compute.Recovered("building the probe", &err)
	p = &probe{net: n, sizes: info.Sizes(), scope: n.store.In("probe")}
	in, h, w := info.C, info.H, info.W
	for i, out := range probeWidths {
		p.params = append(p.params, layer.Conv(fmt.Sprintf("conv%d", i), in, out, 4))
		in, h, w = out, h/2, w/2
	}
	for _, k := range p.sizes {
		p.total += k
	}
	p.params = append(p.params, layer.Linear("fc1", in*h*w, probeHidden)...)
	p.params = append(p.params, layer.Linear("fc2", probeHidden, p.total)...)
	for _, q := range p.params {
		p.scope.VariableWithValue(q.Name, q.Tensor(n.engine.Backend, forProbe))
		for _, kind := range moments {
			p.scope.In(kind).VariableWithValue(q.Name, layer.ZeroTensor(n.engine.Backend, shapes.Make(dtypes.Float32, q.Shape...))).SetTrainable(false)
		}
	}
	if p.step, err = store.NewExec(n.engine.Backend, n.store, p.stepGraph); err != nil {
		return nil, err
	}
	if p.look, err = store.NewExec(n.engine.Backend, n.store, func(_ *store.Context, images *Node) *Node {
		return p.classes(ae.Unit(images))
	}); err != nil {
		return nil, err
	}
	if n.adopted != nil {
		p.draw = asked(p.readAdopted)
		return p, p.newSeen()
	}
	p.draw, err = store.NewExec(n.engine.Backend, n.store, func(_ *store.Context, slots *Node) []*Node {
		images := Sigmoid(n.built.Decode(n.model, slots))
		return []*Node{images, p.classes(images)}
	})
	return p, err
}

const weights = "" // kind of a probe's variables that are not moments

var moments = []string{"m", "v"} // kinds of Adam's moments

// logits maps x, [B, H, W, C] in [0, 1], to [B, Σ sizes].
func (p *probe) logits(x *Node) *Node {
	g, batch := x.Graph(), x.Shape().Dim(0)
	x = AddScalar(x, -0.5)
	for i := range probeWidths {
		kernel := layer.Value(p.scope, g, fmt.Sprintf("conv%d.weight", i))
		x = layer.LeakyReLU(Convolve(x, kernel).Strides(2).PaddingPerDim([][2]int{{1, 1}, {1, 1}}).Done(), 0.1)
	}
	return layer.Dense(p.scope, "fc2", layer.LeakyReLU(layer.Dense(p.scope, "fc1", Reshape(x, batch, -1)), 0.1))
}

// of returns factor i's part of [B, Σ sizes].
func (p *probe) of(x *Node, i int) *Node {
	start := 0
	for _, k := range p.sizes[:i] {
		start += k
	}
	return Slice(x, AxisRange(), AxisRange(start, start+p.sizes[i]))
}

// classes returns the most likely class of every factor, [B, F].
func (p *probe) classes(x *Node) *Node {
	logits := p.logits(x)
	columns := make([]*Node, len(p.sizes))
	for i := range columns {
		columns[i] = InsertAxes(ArgMax(p.of(logits, i), -1, dtypes.Int32), -1)
	}
	return Concatenate(columns, 1)
}

// stepGraph builds one step of Adam on the cross-entropy summed over factors.
func (p *probe) stepGraph(_ *store.Context, inputs []*Node) *Node {
	images, targets, rate, correct1, correct2 := inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]
	logits := p.logits(ae.Unit(images))
	loss := Scalar(logits.Graph(), dtypes.Float32, 0)
	for i := range p.sizes {
		loss = Sub(loss, MulScalar(ReduceAllSum(Mul(p.of(targets, i), LogSoftmax(p.of(logits, i)))), 1.0/batchSize))
	}
	g := loss.Graph()
	values := make([]*Node, len(p.params))
	for i, q := range p.params {
		values[i] = layer.Value(p.scope, g, q.Name)
	}
	for i, grad := range Gradient(loss, values...) {
		name := p.params[i].Name
		m, v := p.scope.In("m").GetVariable(name), p.scope.In("v").GetVariable(name)
		mean := Add(MulScalar(m.ValueGraph(g), 0.9), MulScalar(grad, 0.1))
		square := Add(MulScalar(v.ValueGraph(g), 0.999), MulScalar(Square(grad), 0.001))
		m.SetValueGraph(mean)
		v.SetValueGraph(square)
		step := Div(Mul(mean, correct1), AddScalar(Mul(Sqrt(square), correct2), 1e-8))
		p.scope.GetVariable(name).SetValueGraph(Sub(values[i], Mul(step, rate)))
	}
	return loss
}

// given loads the probe given in Options.Reader and measures its accuracy by factor.
func (e *evaluation) given(ctx context.Context, p *probe, index []int) ([]float64, error) {
	if err := p.restore(*e.o.Reader, weights); err != nil {
		return nil, fmt.Errorf("the given probe does not fit %s: %w", e.info.Name, err)
	}
	return e.accuracy(ctx, p, index)
}

// errNoProbe means that no probe is stored for the dataset and that the evaluation must not train one.
var errNoProbe = errors.New("no probe is stored for this dataset")

// learn loads the probe of the dataset, or trains it on random images, and returns its accuracy by factor on other images. The probe
// depends only on the dataset, not on the run: it is trained once and stored in Options.Probes.
func (e *evaluation) learn(ctx context.Context, p *probe) (accuracy []float64, images int, err error) {
	tests := min(probeTests, max(1, e.info.Len/10))
	images = min(probeImages, e.info.Len-tests)
	if images < 1 {
		return nil, 0, fmt.Errorf("%s has too few images (%d) to train a probe", e.info.Name, e.info.Len)
	}
	index, err := data.Draw(probeSeed^forProbe<<32, images+tests, e.info.Len)
	if err != nil {
		return nil, 0, err
	}
	if e.o.Reader != nil {
		accuracy, err = e.given(ctx, p, index[images:])
		return accuracy, images, err
	}
	store, err := e.openProbes()
	if err != nil {
		return nil, 0, err
	}
	defer store.close()
	if store != nil {
		accuracy, found, err := store.take(ctx, e, p)
		if found || err != nil {
			return accuracy, images, err
		}
	}
	if e.o.KeptProbe {
		return nil, 0, errNoProbe
	}
	if err := e.trainProbe(ctx, p, store, index[:images]); err != nil {
		return nil, 0, err
	}
	if accuracy, err = e.accuracy(ctx, p, index[images:]); err != nil {
		return nil, 0, err
	}
	return accuracy, images, store.keep(p, e.o.Probe, accuracy)
}

// trainProbe takes the remaining steps. If ctx ends, it saves the unfinished probe.
func (e *evaluation) trainProbe(ctx context.Context, p *probe, store *probeStore, index []int) error {
	sampler, err := data.NewSampler(probeSeed, min(batchSize, len(index)), len(index))
	if err != nil {
		return err
	}
	from := store.resume(p)
	for step := from + 1; step <= e.o.Probe; step++ {
		rows := sampler.Batch(step)
		for b, r := range rows {
			rows[b] = index[r]
		}
		if err := e.probeStep(ctx, p, step, rows); err != nil {
			if ctx.Err() != nil && step-1 > from {
				err = errors.Join(err, store.keepHalf(p, step-1))
			}
			return err
		}
		e.o.Progress("training the probe", "steps", float64(step), float64(e.o.Probe))
		if step%probeEvery == 0 {
			if err := store.keepHalf(p, step); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *evaluation) probeStep(ctx context.Context, p *probe, step int, rows []int) error {
	pixels, classes, err := e.known(ctx, rows)
	if err != nil {
		return err
	}
	targets := make([]float32, batchSize*p.total)
	for b := range batchSize {
		at := b * p.total
		for i, k := range p.sizes {
			targets[at+classes[b%len(rows)*len(p.sizes)+i]] = 1
			at += k
		}
	}
	rate := float32(probeRate * 0.5 * (1 + math.Cos(math.Pi*float64(step-1)/float64(e.o.Probe))))
	correct1 := float32(1 / (1 - math.Pow(0.9, float64(step))))
	correct2 := float32(1 / math.Sqrt(1-math.Pow(0.999, float64(step))))
	inputs := []any{e.net.images(pixels), tensors.FromFlatDataAndDimensions(targets, batchSize, p.total), rate, correct1, correct2}
	return call("training the probe", p.step, inputs, func([]*tensors.Tensor) {})
}

// known returns images and their classes, [rows, F]. It fills the batch by repeating rows.
func (e *evaluation) known(ctx context.Context, rows []int) (pixels []byte, classes []int, err error) {
	full := make([]int, batchSize)
	for b := range full {
		full[b] = rows[b%len(rows)]
	}
	if pixels, err = e.read(ctx, full); err != nil {
		return nil, nil, err
	}
	classes = make([]int, len(rows)*len(e.info.Factors))
	if err := e.set.Classes(classes, rows); err != nil {
		return nil, nil, fmt.Errorf("reading the factors of %s: %w", e.info.Name, err)
	}
	return pixels, classes, nil
}

// accuracy returns the share of images whose class the probe predicts correctly, by factor.
func (e *evaluation) accuracy(ctx context.Context, p *probe, index []int) ([]float64, error) {
	right := make([]float64, len(p.sizes))
	for done := 0; done < len(index); done += batchSize {
		rows := index[done:min(len(index), done+batchSize)]
		pixels, classes, err := e.known(ctx, rows)
		if err != nil {
			return nil, err
		}
		err = call("testing the probe", p.look, []any{e.net.images(pixels)}, func(out []*tensors.Tensor) {
			for at, c := range tensors.MustCopyFlatData[int32](out[0])[:len(classes)] {
				if int(c) == classes[at] {
					right[at%len(right)]++
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for f := range right {
		right[f] /= float64(len(index))
	}
	return right, nil
}

// learnProbe loads or trains the probe that reads noisy and swapped images, if it is needed.
func (e *evaluation) learnProbe(ctx context.Context) (err error) {
	if e.o.Probe <= 0 || e.o.Pairs <= 0 && e.o.Noise <= 0 || len(e.index) < 2 || e.scores.Metrics == nil {
		return nil
	}
	if e.probe, err = newProbe(e.net, e.info); err != nil {
		return err
	}
	e.probeAccuracy, e.probeImages, err = e.learn(ctx, e.probe)
	if errors.Is(err, errNoProbe) { // measurements that need it are skipped
		e.probe.finalize()
		e.probe = nil
		return nil
	}
	if err != nil {
		return err
	}
	e.scores.Probe = checkpoint.Sum(e.probe.export(weights))
	e.probeReconstructions, err = e.readReconstructions(ctx)
	return err
}

// readReconstructions returns the probe's accuracy on reconstructions of the evaluation set's first images, by factor.
func (e *evaluation) readReconstructions(ctx context.Context) ([]float64, error) {
	count, f := min(probeTests, len(e.index)), len(e.probe.sizes)
	right := make([]float64, f)
	for done := 0; done < count; done += batchSize {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		var rows []int
		for r := done; r < min(count, done+batchSize); r++ {
			rows = append(rows, r)
		}
		classes, err := e.probe.read(e.slots.take(rows, e.net.m))
		if err != nil {
			return nil, err
		}
		for at := range len(rows) * f {
			if int(classes[at]) == e.classes[done*f+at] {
				right[at%f] += 1 / float64(count)
			}
		}
	}
	return right, nil
}

// read returns the classes of the images decoded from slots, [B, F].
func (p *probe) read(s slots) (classes []int32, err error) {
	err = call("reading decoded images", p.draw, []any{p.net.tensor(s)}, func(out []*tensors.Tensor) {
		classes = tensors.MustCopyFlatData[int32](out[1])
	})
	return classes, err
}

// variable returns a weight or one of its moments.
func (p *probe) variable(kind, name string) *store.Variable {
	scope := p.scope
	if kind != weights {
		scope = scope.In(kind)
	}
	return scope.GetVariable(name)
}

func (p *probe) finalize() {
	p.step.Finalize()
	p.look.Finalize()
	p.draw.Finalize()
	if p.seen != nil {
		p.seen.Finalize()
	}
}

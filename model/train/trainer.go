// Package train carries out one run: gradient steps, evaluation, checkpoints, and what the run's folder says of it.
package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/ae"
	"slotscope/model/checkpoint"
	"slotscope/model/compute"
)

// Trainer holds a model's variables on an engine and moves them. It serves one goroutine.
type Trainer struct {
	cfg   model.Config
	image ae.Image
	net   ae.Model

	store     *context.Context // root of the two below
	scope     *context.Context // what the model learns
	optimizer *context.Context // AdamW's running means

	step        *context.Exec // one gradient step
	reconstruct *context.Exec // images → probabilities and errors
	names       []string      // of the scalars that step returns
}

// New builds the model of cfg on an engine with its initial variables.
func New(cfg model.Config, image ae.Image, engine *compute.Engine) (t *Trainer, err error) {
	defer compute.Recovered("building the model", &err)
	net, err := ae.New(cfg, image)
	if err != nil {
		return nil, err
	}
	store := context.New().Checked(false)
	t = &Trainer{cfg: cfg, image: image, net: net, store: store, scope: store.In("model"), optimizer: store.In("optimizer")}
	if err := net.Init(t.scope); err != nil {
		return nil, fmt.Errorf("drawing initial variables: %w", err)
	}
	adam := adamW{cfg, net.LRScale, net.Decays}
	vars := adam.learned(t.scope)
	for _, v := range vars {
		adam.moments(t.optimizer, v)
	}
	if t.step, err = context.NewExec(engine.Backend, store, t.stepGraph(adam, vars)); err != nil {
		return nil, fmt.Errorf("preparing the training step: %w", err)
	}
	if t.reconstruct, err = context.NewExec(engine.Backend, store, t.reconstructGraph); err != nil {
		return nil, fmt.Errorf("preparing reconstruction: %w", err)
	}
	return t, nil
}

// Finalize frees the variables and compiled graphs.
func (t *Trainer) Finalize() {
	t.step.Finalize()
	t.reconstruct.Finalize()
	t.store.Finalize()
}

// Parameters counts the numbers that the optimizer moves.
func (t *Trainer) Parameters() int {
	n := 0
	for _, v := range (adamW{t.cfg, t.net.LRScale, t.net.Decays}).learned(t.scope) {
		n += v.Shape().Size()
	}
	return n
}

// Step is what one gradient step measured: scalars by series name, and the codes [B, m] where the model has any.
type Step struct {
	Values map[string]float64
	Codes  []int32
}

// Step takes gradient step number t (from 1) on a batch of images, B × H × W × C bytes.
func (t *Trainer) Step(number int, images []byte) (out Step, err error) {
	defer compute.Recovered(fmt.Sprintf("step %d", number), &err)
	correct1 := float32(1 / (1 - math.Pow(t.cfg.Beta1, float64(number))))
	correct2 := float32(1 / math.Sqrt(1-math.Pow(t.cfg.Beta2, float64(number))))
	inputs := []any{t.tensor(images), correct1, correct2}
	if n := t.net.Noise(); n > 0 {
		inputs = append(inputs, t.noise(number, len(images)/t.imageSize(), n))
	}
	results, err := t.step.Exec(inputs...)
	finalizeInputs(inputs)
	if err != nil {
		return Step{}, fmt.Errorf("step %d: %w", number, err)
	}
	defer finalize(results)
	scalars := tensors.MustCopyFlatData[float32](results[0])
	out.Values = make(map[string]float64, len(scalars)+4)
	for i, name := range t.names {
		out.Values[name] = float64(scalars[i])
	}
	if len(results) > 1 {
		out.Codes = tensors.MustCopyFlatData[int32](results[1])
	}
	return out, nil
}

// Reconstruct returns the reconstructions of a batch as bytes, and the mean squared error of each image in [0, 1].
func (t *Trainer) Reconstruct(images []byte) (out []byte, mse []float64, err error) {
	defer compute.Recovered("reconstruction", &err)
	batch := t.tensor(images)
	defer batch.MustFinalizeAll()
	results, err := t.reconstruct.Exec(batch)
	if err != nil {
		return nil, nil, fmt.Errorf("reconstruction: %w", err)
	}
	defer finalize(results)
	for _, e := range tensors.MustCopyFlatData[float32](results[1]) {
		mse = append(mse, float64(e))
	}
	return tensors.MustCopyFlatData[uint8](results[0]), mse, nil
}

// Export copies the model out under PyTorch's names.
func (t *Trainer) Export() (map[string]checkpoint.Tensor, error) { return t.net.Export(t.scope) }

// stepGraph is one gradient step: images as bytes, AdamW's two corrections and, where the model draws, its noise in; scalars, then
// codes, out.
func (t *Trainer) stepGraph(adam adamW, vars []*context.Variable) func(*context.Context, []*Node) []*Node {
	return func(_ *context.Context, inputs []*Node) []*Node {
		images, correct1, correct2 := inputs[0], inputs[1], inputs[2]
		var noise *Node
		if len(inputs) > 3 {
			noise = inputs[3]
		}
		objective := t.net.Losses(t.scope, unit(images), noise)
		norm := adam.update(vars, t.optimizer, objective.Total, correct1, correct2)
		scalars := []*Node{objective.Total, norm}
		t.names = []string{"total", "grad_norm"}
		for _, term := range objective.Terms {
			t.names, scalars = append(t.names, term.Name), append(scalars, term.Value)
		}
		for _, series := range objective.Watch {
			t.names, scalars = append(t.names, series.Name), append(scalars, series.Value)
		}
		for i, s := range scalars {
			scalars[i] = Reshape(ConvertDType(s, dtypes.Float32), 1)
		}
		out := []*Node{Concatenate(scalars, 0)}
		if objective.Codes != nil {
			out = append(out, ConvertDType(objective.Codes, dtypes.Int32))
		}
		return out
	}
}

// reconstructGraph encodes, quantizes and decodes; it returns bytes [B, H, W, C] and mean squared errors [B].
func (t *Trainer) reconstructGraph(_ *context.Context, images *Node) []*Node {
	x := unit(images)
	y := Sigmoid(t.net.Decode(t.scope, t.net.Encode(t.scope, x)))
	bytes := ConvertDType(Round(MulScalar(y, 255)), dtypes.Uint8)
	return []*Node{bytes, ReduceMean(Square(Sub(y, x)), 1, 2, 3)}
}

// unit maps bytes to float32 in [0, 1].
func unit(images *Node) *Node { return DivScalar(ConvertDType(images, dtypes.Float32), 255) }

// tensor wraps a batch of images, B × H × W × C bytes.
func (t *Trainer) tensor(images []byte) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(images, len(images)/t.imageSize(), t.image.H, t.image.W, t.image.C)
}

func (t *Trainer) imageSize() int { return t.image.H * t.image.W * t.image.C }

// noise is [B, n] from N(0, 1). It is drawn on the host from the run's seed and the step, so that every engine draws the same
// and a resumed run draws what an unbroken one would.
func (t *Trainer) noise(step, batch, n int) *tensors.Tensor {
	rng := rand.New(rand.NewPCG(uint64(t.cfg.Seed)^noiseStream, uint64(step)))
	data := make([]float32, batch*n)
	for i := range data {
		data[i] = float32(rng.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(data, batch, n)
}

// noiseStream keeps the noise apart from what else is drawn with the run's seed.
const noiseStream = 0x6e6f697365

func finalizeInputs(inputs []any) {
	for _, in := range inputs {
		if x, ok := in.(*tensors.Tensor); ok {
			x.MustFinalizeAll()
		}
	}
}

func finalize(results []*tensors.Tensor) {
	for _, r := range results {
		r.MustFinalizeAll()
	}
}

// Package train executes one run: gradient steps, evaluation, checkpoints and the records in the run's folder.
package train

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// Trainer holds a model's variables on an engine and trains them. It is not safe for concurrent use.
type Trainer struct {
	cfg    model.Config
	image  ae.Image
	net    ae.Model
	learns ae.Model // net, in the precision of training steps

	players []player // optimizers with their variables

	store     *context.Context // root of the two below
	scope     *context.Context // the model's variables
	optimizer *context.Context // AdamW's moments

	backend     backends.Backend
	steps       *context.Exec // gradient steps of a call
	reconstruct *context.Exec // images → reconstructions and errors
	names       []string      // scalars that a step measures
	spread      *spread
	held        *tensors.Tensor // images [N, H, W, C] as bytes on the device; nil if batches come from the host
}

// New builds the model of cfg on an engine, with initialized variables.
func New(cfg model.Config, image ae.Image, engine *compute.Engine) (t *Trainer, err error) {
	defer compute.Recovered("building the model", &err)
	net, err := ae.New(cfg, image)
	if err != nil {
		return nil, err
	}
	learns, err := ae.ForSteps(cfg, image)
	if err != nil {
		return nil, err
	}
	store := context.New().Checked(false)
	t = &Trainer{cfg: cfg, image: image, net: net, learns: learns, store: store, scope: store.In("model"), optimizer: store.In("optimizer"), backend: engine.Backend}
	if err := net.Init(t.scope, t.backend); err != nil {
		return nil, fmt.Errorf("drawing initial variables: %w", err)
	}
	t.players = playersOf(net, t.scope, cfg, t.backend)
	for _, p := range t.players {
		p.prepare(t.optimizer, p.vars)
	}
	if t.steps, err = context.NewExec(engine.Backend, store, t.callGraph); err != nil {
		return nil, fmt.Errorf("preparing the training steps: %w", err)
	}
	if t.reconstruct, err = context.NewExec(engine.Backend, store, t.reconstructGraph); err != nil {
		return nil, fmt.Errorf("preparing reconstruction: %w", err)
	}
	return t, nil
}

// Finalize frees the variables and compiled graphs.
func (t *Trainer) Finalize() {
	t.steps.Finalize()
	t.reconstruct.Finalize()
	t.store.Finalize()
	if t.held != nil {
		t.held.MustFinalizeAll()
	}
}

// Parameters returns the number of parameters that optimizers update.
func (t *Trainer) Parameters() int {
	n := 0
	for _, p := range t.players {
		for _, v := range p.vars {
			n += v.Shape().Size()
		}
	}
	return n
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

// Export returns a copy of the model's tensors under PyTorch's names.
func (t *Trainer) Export() (map[string]checkpoint.Tensor, error) { return t.net.Export(t.scope) }

// reconstructGraph encodes, quantizes and decodes; it returns bytes [B, H, W, C] and mean squared errors [B].
func (t *Trainer) reconstructGraph(_ *context.Context, images *Node) []*Node {
	x := ae.Unit(images)
	y := Sigmoid(t.net.Decode(t.scope, t.net.Encode(t.scope, x)))
	bytes := ConvertDType(Round(MulScalar(y, 255)), dtypes.Uint8)
	return []*Node{bytes, ReduceMean(Square(Sub(y, x)), 1, 2, 3)}
}

// tensor wraps a batch of images, B × H × W × C bytes.
func (t *Trainer) tensor(images []byte) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(images, len(images)/t.imageSize(), t.image.H, t.image.W, t.image.C)
}

func (t *Trainer) imageSize() int { return t.image.H * t.image.W * t.image.C }

func finalize(results []*tensors.Tensor) {
	for _, r := range results {
		r.MustFinalizeAll()
	}
}

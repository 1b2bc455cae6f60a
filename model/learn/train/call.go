package train

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
	"slotscope/model/paper/ae"
	"slotscope/model/paper/layer"
)

// Call holds the inputs of N gradient steps that the engine takes in one call. It can be prepared while another call runs.
type Call struct {
	First, N int // steps First … First+N−1, counted from 1
	inputs   []*tensors.Tensor
	parts    []*distributed.Tensor // the inputs if several devices share them
}

// Step holds the measurements of one gradient step: scalars by series name, and the codes [B, m] if the model has codes.
type Step struct {
	Values map[string]float64
	Codes  []int32
}

// Outcome holds the measurements of a call's steps, in order, or why they failed.
type Outcome struct {
	Steps []Step
	Err   error
}

// Hold passes the trainer a dataset on its device, bytes [N, H, W, C]; Gather then selects the images of a call.
func (t *Trainer) Hold(images *tensors.Tensor) { t.held = images }

// Load prepares a call of n steps on a copy of images, n × B × H × W × C bytes. Its transfer to the device has begun when it returns.
func (t *Trainer) Load(first, n int, images []byte) (Call, error) {
	batch := len(images) / n / t.imageSize()
	return t.call(first, n, batch, copied(t, images, n, batch, t.image.H, t.image.W, t.image.C))
}

// input returns what fill writes over zeros as an input, which is where its engine reads it if one device computes that shares the host's memory.
func input[T dtypes.Supported](t *Trainer, fill func(flat []T), dims ...int) *tensors.Tensor {
	engine := t.backend
	if t.spread != nil {
		engine = nil
	}
	return layer.TensorOf(engine, shapes.Make(dtypes.FromGenericsType[T](), dims...), fill)
}

// copied returns a copy of flat as an input.
func copied[T dtypes.Supported](t *Trainer, flat []T, dims ...int) *tensors.Tensor {
	return input(t, func(to []T) { copy(to, flat) }, dims...)
}

// Gather prepares a call of n steps on images that the trainer holds; index has n × B indices.
func (t *Trainer) Gather(first, n int, index []int32) (Call, error) {
	return t.call(first, n, len(index)/n, copied(t, index, n, len(index)/n))
}

// call adds the steps' other inputs to the images: step numbers, each optimizer's coefficients and, if the model uses it, noise.
func (t *Trainer) call(first, n, batch int, images *tensors.Tensor) (Call, error) {
	var numbers []float32
	for step := first; step < first+n; step++ {
		numbers = append(numbers, float32(step))
		for _, p := range t.players {
			of := coefficients(p.cfg, step)
			numbers = append(numbers, of[:]...)
		}
	}
	c := Call{First: first, N: n, inputs: []*tensors.Tensor{images, copied(t, numbers, n, len(numbers)/n)}}
	if each := t.net.Noise(); each > 0 {
		c.inputs = append(c.inputs, t.noise(first, n, batch, each))
	}
	if t.spread != nil {
		parts, err := t.spread.place(t.backend, c.inputs)
		if err != nil {
			return c, fmt.Errorf("moving the inputs of step %d to %d devices: %w", first, t.spread.mesh.NumDevices(), err)
		}
		c.inputs, c.parts = nil, parts
		return c, nil
	}
	for _, in := range c.inputs {
		if err := in.MaterializeOnDevice(t.backend, false, 0); err != nil {
			return c, fmt.Errorf("moving the inputs of step %d to the device: %w", first, err)
		}
	}
	return c, nil
}

// Launch starts a call and returns a channel with its one Outcome. Until then the trainer may only prepare further calls.
func (t *Trainer) Launch(c Call) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		steps, err := t.run(c)
		done <- Outcome{steps, err}
	}()
	return done
}

// Step takes a gradient step, numbered from 1, on a batch of images, B × H × W × C bytes.
func (t *Trainer) Step(number int, images []byte) (Step, error) {
	c, err := t.Load(number, 1, images)
	if err != nil {
		return Step{}, err
	}
	out := <-t.Launch(c)
	if out.Err != nil {
		return Step{}, out.Err
	}
	return out.Steps[0], nil
}

// run executes a call and fetches the measurements of its steps in one transfer.
func (t *Trainer) run(c Call) (steps []Step, err error) {
	doing := fmt.Sprintf("step %d", c.First)
	if c.N > 1 {
		doing = fmt.Sprintf("steps %d to %d", c.First, c.First+c.N-1)
	}
	defer compute.Recovered(doing, &err)
	defer finalize(c.inputs)
	var inputs []any
	if t.held != nil {
		inputs = append(inputs, t.held)
	}
	for _, in := range c.inputs {
		inputs = append(inputs, in)
	}
	for _, in := range c.parts {
		defer in.FinalizeAll()
		inputs = append(inputs, in)
	}
	results, err := t.steps.Exec(inputs...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer finalize(results)
	packed := tensors.MustCopyFlatData[float32](results[0])
	for row := len(packed) / c.N; len(packed) > 0; packed = packed[row:] {
		steps = append(steps, t.unpack(packed[:row]))
	}
	return steps, nil
}

// unpack reads one step's row: its scalars, then its codes.
func (t *Trainer) unpack(row []float32) Step {
	s := Step{Values: make(map[string]float64, len(t.names)+8)}
	for i, name := range t.names {
		s.Values[name] = float64(row[i])
	}
	for _, code := range row[len(t.names):] {
		s.Codes = append(s.Codes, int32(code))
	}
	return s
}

// callGraph builds n consecutive gradient steps. Inputs are the images [n, B, H, W, C] as bytes, or [N, H, W, C] with indices [n, B]; the
// step numbers and each player's coefficients [n, 1 + 3·players]; and the noise [n, B, …] if the model uses it. The output is one row of
// float32 per step, concatenated: its scalars, then its codes, which float32 represents exactly.
func (t *Trainer) callGraph(_ *context.Context, inputs []*Node) []*Node {
	var held *Node
	if t.held != nil {
		held, inputs = inputs[0], inputs[1:]
	}
	var rows []*Node
	for i := range inputs[0].Shape().Dim(0) {
		images := at(inputs[0], i)
		if held != nil {
			images = Gather(held, ExpandAxes(images, -1))
		}
		var noise *Node
		if len(inputs) > 2 {
			noise = at(inputs[2], i)
		}
		rows = append(rows, t.stepGraph(images, noise, at(inputs[1], i))...)
	}
	return []*Node{Concatenate(rows, 0)}
}

// at returns x[i, …].
func at(x *Node, i int) *Node { return Squeeze(Slice(x, AxisElem(i)), 0) }

// stepGraph builds one gradient step on images [B, H, W, C] and returns its measurements as float32 vectors.
func (t *Trainer) stepGraph(images, noise, numbers *Node) []*Node {
	objective := t.learns.Losses(t.scope, ae.Batch{Images: ae.Unit(images), Draws: noise, Step: at(numbers, 0)})
	norm := t.update(0, objective.Total, numbers)
	row := []*Node{objective.Total, norm}
	t.names = []string{"total", "grad_norm"}
	if objective.Discriminator != nil {
		norm := t.update(1, objective.Discriminator, numbers)
		t.names, row = append(t.names, "discriminator", "discriminator/grad_norm"), append(row, objective.Discriminator, norm)
	}
	if objective.Follow != nil {
		objective.Follow()
	}
	for _, term := range objective.Terms {
		t.names, row = append(t.names, term.Name), append(row, term.Value)
	}
	for _, series := range objective.Watch {
		t.names, row = append(t.names, series.Name), append(row, series.Value)
	}
	if objective.Codes != nil {
		row = append(row, objective.Codes)
	}
	for i, x := range row {
		row[i] = Reshape(ConvertDType(x, dtypes.Float32), -1)
	}
	return row
}

// update adds the optimizer update of a player's variables and returns its gradient's norm.
func (t *Trainer) update(which int, loss, numbers *Node) *Node {
	p, from := t.players[which], 1+3*which
	return p.adamW.update(p.vars, t.optimizer, loss, coefficientNodes{at(numbers, from), at(numbers, from+1), at(numbers, from+2)})
}

// noise returns the random numbers of each step, [n, B, each]. They are drawn on the host from the run's seed and the step number, so they
// are the same on every engine and in a resumed run.
func (t *Trainer) noise(first, n, batch, each int) *tensors.Tensor {
	return input(t, func(data []float32) {
		for i := range n {
			rng := rand.New(rand.NewPCG(uint64(t.cfg.Seed)^noiseStream, uint64(first+i)))
			t.net.Draw(rng, data[i*batch*each:(i+1)*batch*each])
		}
	}, n, batch, each)
}

// noiseStream separates the noise from other draws with the run's seed.
const noiseStream = 0x6e6f697365

package evaluate

import (
	"context"
	"fmt"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/adopt"
	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// operation is a compiled graph or a replacement for one.
type operation interface {
	Exec(inputs ...any) ([]*tensors.Tensor, error)
	Finalize()
}

// asked processes a batch in the process of an adopted model.
type asked func(inputs []*tensors.Tensor) ([]*tensors.Tensor, error)

func (f asked) Exec(inputs ...any) ([]*tensors.Tensor, error) {
	in := make([]*tensors.Tensor, len(inputs))
	for i, v := range inputs {
		switch v := v.(type) {
		case *tensors.Tensor:
			in[i] = v
		case float32:
			in[i] = tensors.FromScalar(v)
		default:
			return nil, fmt.Errorf("an adopted model does not accept a %T", v)
		}
	}
	return f(in)
}

func (asked) Finalize() {}

// newAdoptedNet starts the process of an adopted model.
func newAdoptedNet(ctx context.Context, engine *compute.Engine, file checkpoint.File, image ae.Image) (*net, error) {
	a, err := adopt.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	if a.Image != [3]int{image.H, image.W, image.C} {
		a.Close()
		return nil, fmt.Errorf("the adopted model expects images of %v, but the dataset's are %v", a.Image, image)
	}
	scope := store.New().Checked(false)
	n := &net{adopted: a, discrete: a.Codes > 0, image: image, m: a.Slots, n: a.Latent, engine: engine, store: scope, model: scope.In("model")}
	if n.n == 0 && !n.discrete {
		n.n = n.m // z is the slots' numbers
	}
	n.represent = asked(func(in []*tensors.Tensor) ([]*tensors.Tensor, error) { return n.askRepresent(in[0]) })
	n.decode = asked(func(in []*tensors.Tensor) ([]*tensors.Tensor, error) {
		x, err := a.Decode(n.asAdopted(n.slotsOf(in[0])), batchSize)
		return []*tensors.Tensor{n.drawn(x)}, err
	})
	return n, nil
}

// askRepresent returns z [B, n], slots [B, m], squared errors [B], reconstructions [B, H, W, C], and zeros [B], as there is no bundle.
func (n *net) askRepresent(images *tensors.Tensor) ([]*tensors.Tensor, error) {
	pixels := tensors.MustCopyFlatData[uint8](images)
	got, err := n.adopted.Encode(pixels, batchSize)
	if err != nil {
		return nil, err
	}
	z := got.Numbers
	if n.adopted.Latent > 0 {
		if z, err = n.adopted.Latents(pixels, batchSize); err != nil {
			return nil, err
		}
	}
	x, err := n.adopted.Decode(got, batchSize)
	if err != nil {
		return nil, err
	}
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(z, batchSize, n.n), n.tensor(ofAdopted(got)), squares(x, pixels), n.drawn(x), tensors.FromFlatDataAndDimensions(make([]float32, batchSize), batchSize),
	}, nil
}

// askDisturbed maps images, z, slots, noise and its standard deviation to slots, squared errors, reconstructions and classes under noise on z.
func (e *evaluation) askDisturbed(in []*tensors.Tensor) ([]*tensors.Tensor, error) {
	n, z := e.net, tensors.MustCopyFlatData[float32](in[1])
	noise, sigma := tensors.MustCopyFlatData[float32](in[3]), tensors.ToScalar[float32](in[4])
	for i := range z {
		z[i] += noise[i] * sigma
	}
	noisy := adopt.Slots{Numbers: z}
	if n.adopted.Latent > 0 {
		var err error
		if noisy, err = n.adopted.Read(z, batchSize); err != nil {
			return nil, err
		}
	}
	x, err := n.adopted.Decode(noisy, batchSize)
	if err != nil {
		return nil, err
	}
	out := []*tensors.Tensor{n.tensor(ofAdopted(noisy)), squares(x, tensors.MustCopyFlatData[uint8](in[0])), n.drawn(x), tensors.FromScalar(int32(0))}
	if e.probe != nil {
		classes, err := e.probe.seen.Exec(out[2])
		if err != nil {
			return nil, err
		}
		out[3] = classes[0]
	}
	return out, nil
}

// readAdopted returns the images that an adopted model decodes and the classes that the probe reads from them.
func (p *probe) readAdopted(in []*tensors.Tensor) ([]*tensors.Tensor, error) {
	images, err := p.net.decode.Exec(in[0])
	if err != nil {
		return nil, err
	}
	classes, err := p.seen.Exec(images[0])
	return append(images, classes...), err
}

// newSeen compiles images in [0, 1] → classes, for models without a graph.
func (p *probe) newSeen() (err error) {
	p.seen, err = store.NewExec(p.net.engine.Backend, p.net.store, func(_ *store.Context, x *Node) *Node { return p.classes(x) })
	return err
}

// squares returns the mean squared difference of images in [0, 1] and bytes, [B].
func squares(x []float32, pixels []byte) *tensors.Tensor {
	out, size := make([]float32, batchSize), len(x)/batchSize
	for b := range out {
		sum := 0.0
		for i := b * size; i < (b+1)*size; i++ {
			d := float64(x[i]) - float64(pixels[i])/255
			sum += d * d
		}
		out[b] = float32(sum / float64(size))
	}
	return tensors.FromFlatDataAndDimensions(out, batchSize)
}

func (n *net) drawn(x []float32) *tensors.Tensor {
	if x == nil { // nil comes with an error
		return nil
	}
	return tensors.FromFlatDataAndDimensions(x, batchSize, n.image.H, n.image.W, n.image.C)
}

func ofAdopted(s adopt.Slots) slots { return slots{codes: s.Codes, numbers: s.Numbers} }

func (n *net) asAdopted(s slots) adopt.Slots { return adopt.Slots{Codes: s.codes, Numbers: s.numbers} }

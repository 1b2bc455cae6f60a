package evaluate

import (
	gocontext "context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/adopt"
	"slotscope/model/compute"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// batchSize is the number of images in every call of a graph; incomplete batches are padded, so that each graph is compiled once.
const batchSize = 64

// slotCode is the type of codes in a graph.
const slotCode = dtypes.Int32

// net is a trained model compiled for an engine; the probe shares its store.
type net struct {
	built    ae.Model     // nil if the model is adopted
	adopted  *adopt.Model // nil if it is not adopted
	discrete bool         // slots hold codes
	image    ae.Image
	m, n     int // slots; length of z, 0 if an adopted model has none
	engine   *compute.Engine

	store, model *context.Context
	represent    operation // images → z [B, n], slots [B, m], squared errors [B], reconstructions [B, H, W, C] and ‖ẑ‖² [B]
	decode       operation // slots → images in [0, 1]
}

func newNet(ctx gocontext.Context, engine *compute.Engine, file checkpoint.File, image ae.Image) (n *net, err error) {
	if adopt.Is(file) {
		return newAdoptedNet(ctx, engine, file, image)
	}
	defer compute.Recovered("building the model's graphs", &err)
	store := context.New().Checked(false)
	built, err := ae.Open(store.In("model"), file, image)
	if err != nil {
		return nil, err
	}
	n = &net{built: built, discrete: built.Discrete(), image: image, m: file.Config.M, n: built.Size(), engine: engine, store: store, model: store.In("model")}
	if n.represent, err = context.NewExec(engine.Backend, store, func(_ *context.Context, images *Node) []*Node {
		z := built.Latent(n.model, ae.Unit(images))
		slots, logits := built.FromLatent(n.model, z)
		x := Sigmoid(logits)
		energy := ReduceSum(Square(built.Bundle(n.model, slots)), 1)
		return []*Node{z, ConvertDType(slots, ae.SlotType(built)), meanSquare(x, ae.Unit(images)), x, energy}
	}); err != nil {
		return nil, err
	}
	n.decode, err = context.NewExec(engine.Backend, store, func(_ *context.Context, slots *Node) *Node {
		return Sigmoid(built.Decode(n.model, slots))
	})
	return n, err
}

// meanSquare returns the mean squared difference of images [B, H, W, C], as [B].
func meanSquare(x, y *Node) *Node { return ReduceMean(Square(Sub(x, y)), 1, 2, 3) }

// slots holds the representation of a batch of images: codes for models with codes, otherwise numbers.
type slots struct {
	codes   []int32   // [B, m]
	numbers []float32 // [B, m]
}

func (n *net) slotsOf(t *tensors.Tensor) slots {
	if n.discrete {
		return slots{codes: tensors.MustCopyFlatData[int32](t)}
	}
	return slots{numbers: tensors.MustCopyFlatData[float32](t)}
}

// tensor returns slots as the decoder's input.
func (n *net) tensor(s slots) *tensors.Tensor {
	if n.discrete {
		return tensors.FromFlatDataAndDimensions(s.codes, batchSize, n.m)
	}
	return tensors.FromFlatDataAndDimensions(s.numbers, batchSize, n.m)
}

// take returns the given rows, padded to a batch with the first.
func (s slots) take(rows []int, m int) slots {
	var out slots
	for b := range batchSize {
		r := rows[0]
		if b < len(rows) {
			r = rows[b]
		}
		out.codes = append(out.codes, part(s.codes, r, m)...)
		out.numbers = append(out.numbers, part(s.numbers, r, m)...)
	}
	return out
}

// append adds the first count rows of a batch.
func (s *slots) append(batch slots, count, m int) {
	s.codes = append(s.codes, batch.codes[:min(len(batch.codes), count*m)]...)
	s.numbers = append(s.numbers, batch.numbers[:min(len(batch.numbers), count*m)]...)
}

// put writes slot j of row from of another into row to.
func (s slots) put(to, j int, other slots, from, m int) {
	if s.codes != nil {
		s.codes[to*m+j] = other.codes[from*m+j]
	} else {
		s.numbers[to*m+j] = other.numbers[from*m+j]
	}
}

// differ reports whether two rows differ in slot j.
func (s slots) differ(a, b, j, m int) bool {
	if s.codes != nil {
		return s.codes[a*m+j] != s.codes[b*m+j]
	}
	return s.numbers[a*m+j] != s.numbers[b*m+j]
}

func part[T any](values []T, row, width int) []T {
	if values == nil {
		return nil
	}
	return values[row*width : (row+1)*width]
}

func (n *net) images(pixels []byte) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(pixels, batchSize, n.image.H, n.image.W, n.image.C)
}

// call runs a graph and passes its results to read; it frees inputs and results.
func call(doing string, exec operation, inputs []any, read func(results []*tensors.Tensor)) (err error) {
	defer compute.Recovered(doing, &err)
	results, err := exec.Exec(inputs...)
	for _, in := range inputs {
		if t, ok := in.(*tensors.Tensor); ok {
			t.MustFinalizeAll()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	read(results)
	for _, r := range results {
		r.MustFinalizeAll()
	}
	return nil
}

func (n *net) finalize() {
	n.represent.Finalize()
	n.decode.Finalize()
	n.store.Finalize()
	if n.adopted != nil {
		n.adopted.Close()
	}
}

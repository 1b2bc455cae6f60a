package evaluate

import (
	"context"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/npz"
	"slotscope/model/paper/ae"
)

// AgreementImages is the number of images that every run on a dataset encodes, the same for all seeds, to compare runs slot by slot.
const AgreementImages = 2000

// agreement holds the slots of images that are the same for all runs on a dataset.
type agreement struct {
	index []int // dataset indices of the images
	slots slots // [n, m]
	kl    []float64
}

// agreed encodes the images that all runs on the dataset encode; for a VAE it also computes the mean KL divergence of each latent from its
// prior.
func (e *evaluation) agreed(ctx context.Context) (err error) {
	if e.o.Agree <= 0 {
		return nil
	}
	a := &agreement{}
	if a.index, err = data.Draw(0, min(e.o.Agree, e.info.Len), e.info.Len); err != nil {
		return err
	}
	exec, err := e.net.agreeing()
	if err != nil {
		return err
	}
	defer exec.Finalize()
	sums := make([]float64, e.net.m)
	for done := 0; done < len(a.index); done += batchSize {
		rows := a.index[done:min(len(a.index), done+batchSize)]
		pixels, err := e.read(ctx, rows)
		if err != nil {
			return err
		}
		err = call("encoding images that all runs encode", exec, []any{e.net.images(pixels)}, func(out []*tensors.Tensor) {
			a.slots.append(e.net.slotsOf(out[0]), len(rows), e.net.m)
			if len(out) > 1 {
				for i, v := range tensors.MustCopyFlatData[float32](out[1])[:len(rows)*e.net.m] {
					sums[i%e.net.m] += float64(v)
				}
			}
		})
		if err != nil {
			return err
		}
		e.o.Progress("encoding for comparisons", "images", float64(done+len(rows)), float64(len(a.index)))
	}
	if _, ok := e.net.built.(ae.Variational); ok {
		for _, s := range sums {
			a.kl = append(a.kl, s/float64(len(a.index)))
		}
	}
	e.agreement = a
	return nil
}

// agreeing returns the operation images → slots [B, m], and for a VAE the KL divergence of every latent [B, m].
func (n *net) agreeing() (exec operation, err error) {
	if n.adopted != nil {
		return asked(func(in []*tensors.Tensor) ([]*tensors.Tensor, error) {
			got, err := n.adopted.Encode(tensors.MustCopyFlatData[uint8](in[0]), batchSize)
			if err != nil {
				return nil, err
			}
			return []*tensors.Tensor{n.tensor(ofAdopted(got))}, nil
		}), nil
	}
	defer compute.Recovered("building the graph of comparisons", &err)
	return store.NewExec(n.engine.Backend, n.store, func(_ *store.Context, images *Node) []*Node {
		x := ae.Unit(images)
		out := []*Node{ConvertDType(n.built.Encode(n.model, x), ae.SlotType(n.built))}
		if v, ok := n.built.(ae.Variational); ok {
			out = append(out, v.Divergence(n.model, x))
		}
		return out
	})
}

// archive returns the NumPy archive that input.Latents reads.
func (a agreement) archive(m int) ([]byte, error) {
	n := len(a.index)
	arrays := []npz.Data{{Name: "index", Shape: []int{n}, Values: int32s(a.index)}, {Name: "latents", Shape: []int{n, m}, Values: a.slots.numbers}}
	if a.slots.codes != nil {
		arrays[1] = npz.Data{Name: "codes", Shape: []int{n, m}, Values: a.slots.codes}
	}
	if a.kl != nil {
		arrays = append(arrays, npz.Data{Name: "kl", Shape: []int{m}, Values: a.kl})
	}
	return zipped(arrays)
}

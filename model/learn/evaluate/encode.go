package evaluate

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	store "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"
)

// QuickImages is the recommended number of images for Encoder; faithfulness and owned factors hardly change with more.
const QuickImages = 2000

// Encoder encodes images with a model whose variables are in a scope, and returns the intermediates between z and ẑ. The model may be in
// training: every call reads the current variables.
type Encoder struct {
	built ae.Model
	image ae.Image
	exec  *store.Exec
}

// NewEncoder returns an encoder for a model built for images of a shape. root is the store that contains scope. Call Finalize to free it.
func NewEncoder(backend backends.Backend, built ae.Model, root, scope *store.Context, image ae.Image) (e *Encoder, err error) {
	defer compute.Recovered("building the encoder's graph", &err)
	e = &Encoder{built: built, image: image}
	e.exec, err = store.NewExec(backend, root, func(_ *store.Context, images *Node) []*Node { return e.graph(scope, images) })
	return e, err
}

// graph returns slots [B, m]; for HRR also z, ṽ, v̄, ẑ, the codes read from ẑ with and without the denoiser, and the codebook.
func (e *Encoder) graph(scope *store.Context, images *Node) []*Node {
	z := e.built.Latent(scope, ae.Unit(images))
	h, ok := e.built.(*ae.HRR)
	if !ok {
		return []*Node{ConvertDType(e.built.Represent(scope, e.built.Retrieve(scope, z)), ae.SlotType(e.built))}
	}
	s := h.Slots(scope, z)
	bundle := h.Bundle(scope, s.Codes)
	again := h.Represent(scope, h.Retrieve(scope, bundle))
	code := func(x *Node) *Node { return ConvertDType(x, slotCode) }
	return []*Node{code(s.Codes), z, s.Retrieved, s.Denoised, bundle, code(again), code(h.CleanUp(scope, bundle)), s.Codebook}
}

// Encoded holds a model's representation of n images.
type Encoded struct {
	Index   []int     // [n] dataset indices of the images
	Codes   []int32   // [n, m]; nil for models without codes
	Numbers []float32 // [n, m] for models without codes
	HRR     *metric.Encodings
}

// Encode encodes images of a dataset by index. If ctx ends, it returns early with an error that wraps ctx.Err().
func (e *Encoder) Encode(ctx context.Context, set data.Set, index []int) (Encoded, error) {
	out := Encoded{Index: index}
	if h, ok := e.built.(*ae.HRR); ok {
		out.HRR = &metric.Encodings{D: h.Size(), Binding: h.Binding()}
	}
	pixels := make([]byte, batchSize*e.image.H*e.image.W*e.image.C)
	for done := 0; done < len(index); done += batchSize {
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("encoding images: %w", err)
		}
		rows := index[done:min(len(index), done+batchSize)]
		full := append(make([]int, 0, batchSize), rows...)
		for len(full) < batchSize {
			full = append(full, rows[0])
		}
		if err := set.Images(pixels, full); err != nil {
			return out, fmt.Errorf("reading images of %s: %w", set.Info().Name, err)
		}
		images := tensors.FromFlatDataAndDimensions(pixels, batchSize, e.image.H, e.image.W, e.image.C)
		if err := call("encoding images", e.exec, []any{images}, func(t []*tensors.Tensor) { out.append(t, len(rows)) }); err != nil {
			return out, err
		}
	}
	if out.HRR != nil {
		out.HRR.Codes, out.HRR.M = out.Codes, len(out.Codes)/len(index)
	}
	return out, nil
}

// append adds the first count rows of a batch.
func (e *Encoded) append(t []*tensors.Tensor, count int) {
	if t[0].DType() == slotCode {
		e.Codes = add(e.Codes, t[0], count)
	} else {
		e.Numbers = add(e.Numbers, t[0], count)
	}
	h := e.HRR
	if h == nil {
		return
	}
	h.Z, h.Retrieved, h.Denoised, h.Bundle = add(h.Z, t[1], count), add(h.Retrieved, t[2], count), add(h.Denoised, t[3], count), add(h.Bundle, t[4], count)
	h.Again, h.CleanedUp = add(h.Again, t[5], count), add(h.CleanedUp, t[6], count)
	if h.Codebook == nil {
		h.Codebook = tensors.MustCopyFlatData[float32](t[7])
	}
}

func add[T float32 | int32](to []T, batch *tensors.Tensor, count int) []T {
	tensors.MustConstFlatData(batch, func(flat []T) { to = append(to, flat[:len(flat)/batchSize*count]...) })
	return to
}

// Faithfulness measures an HRR model on the encoded images; nil for baselines, which have no bundles.
func (e Encoded) Faithfulness() (*model.Faithfulness, error) {
	if e.HRR == nil {
		return nil, nil
	}
	f, err := metric.MeasureFaithfulness(*e.HRR)
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// Table returns the encoded slots with the factors of their images, for metric.Own and metric.Measure; ok is false for a dataset without
// factors.
func (e Encoded) Table(set data.Set) (t metric.Table, ok bool, err error) {
	info := set.Info()
	if noFactors(info) != "" {
		return t, false, nil
	}
	classes := make([]int, len(e.Index)*len(info.Factors))
	if err := set.Classes(classes, e.Index); err != nil {
		return t, false, fmt.Errorf("reading the factors of %s: %w", info.Name, err)
	}
	return tableOf(info, classes, slots{e.Codes, e.Numbers}, len(e.Index)), true, nil
}

// Series returns the series that training records for the encoded images: "faithfulness/cos_bundle" and so on for HRR; and for a dataset
// with factors "owned/factors", the number of factors that own a slot, and "owned/coverage", the same as a share of the varying factors.
func (e Encoded) Series(set data.Set, seed int64) (map[string]float64, error) {
	values := map[string]float64{}
	f, err := e.Faithfulness()
	if err != nil {
		return nil, err
	}
	if f != nil {
		for name, v := range f.Figures() {
			values["faithfulness/"+name] = v
		}
	}
	table, ok, err := e.Table(set)
	if err != nil || !ok {
		return values, err
	}
	o := metric.Own(table, seed)
	values["owned/factors"], values["owned/coverage"] = float64(o.Owned()), float64(o.Coverage)
	return values, nil
}

// Finalize frees the compiled graph.
func (e *Encoder) Finalize() { e.exec.Finalize() }

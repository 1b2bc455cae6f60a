package ae

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/layer"
)

// store creates, exports, imports and describes a model's tensors. Every model embeds one.
type store struct {
	params   []layer.Param
	networks []layer.Param // parameters of encoder and decoder
	unbiased bool          // weight decay applies to kernels and matrices only
	seed     int64
	rate     float64 // of the codebook, as a multiple of the run's learning rate
	discRate float64 // of the discriminator, as a multiple of the run's learning rate
}

// Init implements Model.
func (s store) Init(scope *context.Context, engine backends.Backend) error {
	for _, p := range s.params {
		if scope.GetVariable(p.Name) != nil {
			return fmt.Errorf("initialising the model: scope %q already contains %q", scope.Scope(), p.Name)
		}
	}
	values := make([]*tensors.Tensor, len(s.params))
	var drawing sync.WaitGroup
	for i, p := range s.params {
		drawing.Go(func() { values[i] = p.Tensor(engine, s.seed) })
	}
	drawing.Wait()
	for i, p := range s.params {
		if err := put(scope, p, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// LRScale implements Model; it returns 0 for variables of other models.
func (s store) LRScale(v *context.Variable) float64 {
	switch s.rateOf(v) {
	case layer.Frozen:
		return 0
	case layer.Codebook:
		return s.rate
	case layer.Discriminator:
		return s.discRate
	}
	return 1
}

// Discriminates implements Model.
func (s store) Discriminates(v *context.Variable) bool { return s.rateOf(v) == layer.Discriminator }

func (s store) rateOf(v *context.Variable) layer.Rate {
	i := slices.IndexFunc(s.params, func(p layer.Param) bool { return p.Name == v.Name() })
	if i < 0 {
		return layer.Frozen
	}
	return s.params[i].Rate
}

// Parameters implements Model.
func (s store) Parameters() (all, networks int) { return learnedIn(s.params), learnedIn(s.networks) }

func learnedIn(params []layer.Param) (n int) {
	for _, p := range params {
		if p.Rate != layer.Frozen {
			n += p.Size()
		}
	}
	return n
}

// Decays implements Model.
func (s store) Decays(v *context.Variable) bool {
	return slices.ContainsFunc(s.networks, func(p layer.Param) bool {
		return p.Name == v.Name() && !(s.unbiased && len(p.Shape) == 1)
	})
}

// Export implements Model.
func (s store) Export(scope *context.Context) (map[string]checkpoint.Tensor, error) {
	out := make(map[string]checkpoint.Tensor, len(s.params))
	for _, p := range s.params {
		data, err := get(scope, p)
		if err != nil {
			return nil, fmt.Errorf("exporting the model: %w", err)
		}
		out[p.Name] = checkpoint.Tensor{Shape: slices.Clone(p.Torch), Data: p.ToTorch(data)}
	}
	return out, nil
}

// Import implements Model. It changes nothing unless every tensor matches. Graphs built before an import keep the old symbols, so build
// them afterwards.
func (s store) Import(scope *context.Context, values map[string]checkpoint.Tensor) error {
	if bad := s.check(values); len(bad) > 0 {
		return fmt.Errorf("%d tensors do not match the configured model: %w", len(bad), bad)
	}
	for _, p := range s.params {
		if err := put(scope, p, tensors.FromFlatDataAndDimensions(p.FromTorch(values[p.Name].Data), p.Shape...)); err != nil {
			return err
		}
	}
	return nil
}

// check returns every tensor that is missing, unknown or has a shape other than the configuration requires.
func (s store) check(tensors map[string]checkpoint.Tensor) model.Invalid {
	bad, known := model.Invalid{}, make(map[string]bool, len(s.params))
	for _, p := range s.params {
		known[p.Name] = true
		switch t, ok := tensors[p.Name]; {
		case !ok:
			bad[p.Name] = "is missing"
		case !slices.Equal(t.Shape, p.Torch):
			bad[p.Name] = fmt.Sprintf("has shape %v; the configuration requires %v", t.Shape, p.Torch)
		case len(t.Data) != p.Size():
			bad[p.Name] = fmt.Sprintf("has %d elements for shape %v", len(t.Data), p.Torch)
		}
	}
	for name := range tensors {
		if !known[name] {
			bad[name] = "is not a tensor of this model"
		}
	}
	return bad
}

func put(scope *context.Context, p layer.Param, value *tensors.Tensor) error {
	v := scope.GetVariable(p.Name)
	if v == nil {
		v = scope.Checked(false).VariableWithValue(p.Name, value)
	} else if !slices.Equal(v.Shape().Dimensions, p.Shape) {
		return fmt.Errorf("variable %q has shape %v, not %v", p.Name, v.Shape().Dimensions, p.Shape)
	} else if err := v.SetValue(value); err != nil {
		return fmt.Errorf("setting %q: %w", p.Name, err)
	}
	v.SetTrainable(p.Rate != layer.Frozen)
	return nil
}

func get(scope *context.Context, p layer.Param) ([]float32, error) {
	v := scope.GetVariable(p.Name)
	if v == nil {
		return nil, fmt.Errorf("scope %q has no variable %q", scope.Scope(), p.Name)
	}
	value, err := v.Value()
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p.Name, err)
	}
	data, err := tensors.CopyFlatData[float32](value)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p.Name, err)
	}
	if len(data) != p.Size() {
		return nil, fmt.Errorf("variable %q has %d elements, not shape %v", p.Name, len(data), p.Shape)
	}
	return data, nil
}

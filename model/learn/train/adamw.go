package train

import (
	"math"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/paper/ae"
	"slotscope/model/paper/layer"
)

// player is an optimizer that minimizes a loss over its own variables.
type player struct {
	adamW
	vars []*context.Variable
}

// playersOf returns a model's players: the autoencoder, and the discriminator if there is one, which has its own moments and rate, and no
// clipping or weight decay.
func playersOf(net ae.Learner, scope *context.Context, cfg model.Config, backend backends.Backend) []player {
	only := func(second bool) func(v *context.Variable) float64 {
		return func(v *context.Variable) float64 {
			if net.Discriminates(v) != second {
				return 0
			}
			return net.LRScale(v)
		}
	}
	disc := cfg
	disc.Beta1, disc.Beta2, disc.Clip, disc.WeightDecay = cfg.DiscBeta1, cfg.DiscBeta2, 0, 0
	var all []player
	for _, adam := range []adamW{{cfg, backend, only(false), net.Decays}, {disc, backend, only(true), net.Decays}} {
		if vars := adam.learned(scope); len(vars) > 0 {
			all = append(all, player{adam, vars})
		}
	}
	return all
}

// adamW is the paper's optimizer (Table “Optimizer hyperparameters”). GoMLX's own AdamW has a single learning rate and clips
// steps, but the codebook needs its own rate and the paper clips the gradient's global norm.
type adamW struct {
	cfg     model.Config
	backend backends.Backend                // stores the moments
	scale   func(*context.Variable) float64 // factor on the learning rate, by variable
	decays  func(*context.Variable) bool    // whether weight decay applies to a variable
}

// learned returns the variables of scope that the optimizer updates, in the store's order.
func (o adamW) learned(scope *context.Context) []*context.Variable {
	var vars []*context.Variable
	for v := range scope.IterVariablesInScope() {
		if o.scale(v) > 0 {
			vars = append(vars, v)
		}
	}
	return vars
}

// prepare creates the two moments of variables as zeros.
func (o adamW) prepare(store *context.Context, vars []*context.Variable) {
	kinds := []string{"m", "v"}
	values := make([]*tensors.Tensor, len(kinds)*len(vars))
	var zeroing sync.WaitGroup
	for i := range values {
		zeroing.Go(func() { values[i] = layer.ZeroTensor(o.backend, vars[i/len(kinds)].Shape()) })
	}
	zeroing.Wait()
	for i, value := range values {
		store.In(kinds[i%len(kinds)]).VariableWithValue(nameOf(vars[i/len(kinds)]), value).SetTrainable(false)
	}
}

// moments returns the two moments of one variable, which prepare created.
func (o adamW) moments(store *context.Context, v *context.Variable) (first, second *context.Variable) {
	return store.In("m").GetVariable(nameOf(v)), store.In("v").GetVariable(nameOf(v))
}

// nameOf returns the name of a variable's moments.
func nameOf(v *context.Variable) string {
	name := strings.TrimPrefix(v.ScopeAndName(), context.ScopeSeparator)
	return strings.ReplaceAll(name, context.ScopeSeparator, ".")
}

// update applies one step of AdamW to every variable and returns the gradient's global norm before clipping.
//
//	g ← g · min(1, clip / ‖g‖)          or, if clipped by value, each component of g to ±clip
//	m ← β₁ m + (1−β₁) g        v ← β₂ v + (1−β₂) g²
//	θ ← θ − η_wd wd θ − η (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)
//
// η is Config.LR times the variable's and the schedule's factors; η_wd is Config.DecayLR times the same factors, or η if DecayLR is 0.
// of holds the coefficients of step t.
func (o adamW) update(vars []*context.Variable, store *context.Context, loss *Node, of coefficientNodes) *Node {
	g := loss.Graph()
	values := make([]*Node, len(vars))
	for i, v := range vars {
		values[i] = v.ValueGraph(g)
	}
	grads := Gradient(loss, values...)
	norm := globalNorm(grads)
	for i, v := range vars {
		grad := grads[i]
		switch {
		case o.cfg.Clip > 0 && o.cfg.ClipBy == "value":
			grad = ClipScalar(grad, -o.cfg.Clip, o.cfg.Clip)
		case o.cfg.Clip > 0:
			grad = Mul(grad, clipFactor(norm, o.cfg.Clip))
		}
		mean, square := o.moments(store, v)
		m := Add(MulScalar(mean.ValueGraph(g), o.cfg.Beta1), MulScalar(grad, 1-o.cfg.Beta1))
		s := Add(MulScalar(square.ValueGraph(g), o.cfg.Beta2), MulScalar(Mul(grad, grad), 1-o.cfg.Beta2))
		mean.SetValueGraph(m)
		square.SetValueGraph(s)
		step := Div(Mul(m, of.first), AddScalar(Mul(Sqrt(s), of.second), o.cfg.Epsilon))
		if wd := o.decay(v); wd != 0 {
			step = Add(step, MulScalar(values[i], wd))
		}
		v.SetValueGraph(Sub(values[i], Mul(step, MulScalar(of.schedule, o.cfg.LR*o.scale(v)))))
	}
	return norm
}

// coefficients returns the factors that depend on the step t = 1, 2, …: 1/(1−β₁ᵗ), 1/√(1−β₂ᵗ) and the schedule's factor on the learning
// rate.
func coefficients(cfg model.Config, t int) [3]float32 {
	return [3]float32{
		float32(1 / (1 - math.Pow(cfg.Beta1, float64(t)))),
		float32(1 / math.Sqrt(1-math.Pow(cfg.Beta2, float64(t)))),
		float32(Schedule(cfg, t)),
	}
}

// coefficientNodes holds coefficients as scalars in a graph.
type coefficientNodes struct{ first, second, schedule *Node }

// Schedule returns the factor on the learning rate at step t of T = Steps, counted from 1:
//
//	constant   1
//	cosine     ½ (1 + cos(π (t−1)/T))           Loshchilov and Hutter 2017
//	wsd        min(1, (T−t+1) / (T/5))          Hu et al. 2024, without warmup
func Schedule(cfg model.Config, t int) float64 {
	left := max(0, 1-float64(t-1)/float64(cfg.Steps)) // share of the steps from t on
	switch cfg.LRSchedule {
	case model.Cosine:
		return (1 - math.Cos(math.Pi*left)) / 2
	case model.WSD:
		return min(1, 5*left)
	}
	return 1
}

// decay returns wd·η_wd/η for a variable that decays, otherwise 0.
func (o adamW) decay(v *context.Variable) float64 {
	switch {
	case !o.decays(v):
		return 0
	case o.cfg.DecayLR > 0:
		return o.cfg.WeightDecay * o.cfg.DecayLR / o.cfg.LR
	}
	return o.cfg.WeightDecay
}

// globalNorm returns √Σ g² over every element of every gradient.
func globalNorm(grads []*Node) *Node {
	sum := ReduceAllSum(Mul(grads[0], grads[0]))
	for _, grad := range grads[1:] {
		sum = Add(sum, ReduceAllSum(Mul(grad, grad)))
	}
	return Sqrt(sum)
}

// clipFactor returns min(1, limit / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
func clipFactor(norm *Node, limit float64) *Node {
	return MinScalar(Div(Scalar(norm.Graph(), norm.DType(), limit), AddScalar(norm, 1e-6)), 1)
}

package train

import (
	"fmt"
	"math"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
)

// Three steps on the loss θ·a, whose gradient is a, match the update written out in float64; decay applies only where configured.
func TestAdamWFollowsItsEquations(t *testing.T) {
	for _, decays := range []bool{true, false} {
		t.Run(fmt.Sprintf("decays %v", decays), func(t *testing.T) { followsAdamW(t, decays, func(*model.Config) {}) })
		t.Run(fmt.Sprintf("decays %v, cosine", decays), func(t *testing.T) { followsAdamW(t, decays, func(c *model.Config) { c.LRSchedule = model.Cosine }) })
		t.Run(fmt.Sprintf("decays %v, at a rate of its own", decays), func(t *testing.T) { followsAdamW(t, decays, func(c *model.Config) { c.DecayLR = 0.03 }) })
		t.Run(fmt.Sprintf("decays %v, clipped by value", decays), func(t *testing.T) { followsAdamW(t, decays, func(c *model.Config) { c.ClipBy = "value" }) })
	}
}

func followsAdamW(t *testing.T, decays bool, change func(*model.Config)) {
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	cfg := model.Config{LR: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.2, Clip: 0.5, Steps: 3}
	change(&cfg)
	const scale = 2
	a, theta := []float64{3, -4, 0.5}, []float64{1, -2, 0.25}
	store := context.New().Checked(false)
	v := store.In("model").VariableWithValue("theta", []float32{1, -2, 0.25})
	adam := adamW{cfg, engine.Backend, func(*context.Variable) float64 { return scale }, func(*context.Variable) bool { return decays }}
	decay := 0.0
	if decays {
		decay = cfg.WeightDecay
		if cfg.DecayLR > 0 {
			decay *= cfg.DecayLR / cfg.LR
		}
	}
	vars := adam.learned(store.In("model"))
	adam.prepare(store.In("optimizer"), vars)
	exec, err := context.NewExec(engine.Backend, store, func(_ *context.Context, of *Node) *Node {
		g := of.Graph()
		loss := ReduceAllSum(Mul(v.ValueGraph(g), Const(g, []float32{3, -4, 0.5})))
		return adam.update(vars, store.In("optimizer"), loss, coefficientNodes{at(of, 0), at(of, 1), at(of, 2)})
	})
	if err != nil {
		t.Fatal(err)
	}
	norm := math.Sqrt(9 + 16 + 0.25)
	m, s := make([]float64, 3), make([]float64, 3)
	for step := 1; step <= 3; step++ {
		bias1, bias2 := 1-math.Pow(cfg.Beta1, float64(step)), 1-math.Pow(cfg.Beta2, float64(step))
		of := coefficients(cfg, step)
		got, err := exec.Exec1(of[:])
		if err != nil {
			t.Fatal(err)
		}
		if n := float64(tensors.ToScalar[float32](got)); math.Abs(n-norm) > 1e-5 {
			t.Errorf("step %d: norm %v, want %v", step, n, norm)
		}
		now := tensors.MustCopyFlatData[float32](v.MustValue())
		for i := range theta {
			grad := a[i] * cfg.Clip / (norm + 1e-6)
			if cfg.ClipBy == "value" {
				grad = max(-cfg.Clip, min(cfg.Clip, a[i]))
			}
			m[i] = cfg.Beta1*m[i] + (1-cfg.Beta1)*grad
			s[i] = cfg.Beta2*s[i] + (1-cfg.Beta2)*grad*grad
			rate := cfg.LR * scale
			if cfg.LRSchedule == model.Cosine {
				rate *= []float64{1, 0.75, 0.25}[step-1] // ½ (1 + cos 0°, 60°, 120°)
			}
			theta[i] -= rate*decay*theta[i] + rate*(m[i]/bias1)/(math.Sqrt(s[i]/bias2)+cfg.Epsilon)
			if math.Abs(float64(now[i])-theta[i]) > 1e-5 {
				t.Errorf("step %d: θ[%d] is %v, want %v", step, i, now[i], theta[i])
			}
		}
	}
}

// Both schedules begin at the learning rate and end near 0; wsd keeps it for 4/5 of the steps.
func TestSchedule(t *testing.T) {
	for schedule, want := range map[string][4]float64{
		"":           {1, 1, 1, 1},
		model.Cosine: {1, 0.5, 0.0954915, 0.0002467},
		model.WSD:    {1, 1, 1, 0.05},
	} {
		cfg := model.Config{Steps: 100, LRSchedule: schedule}
		for i, step := range []int{1, 51, 81, 100} {
			if got := Schedule(cfg, step); math.Abs(got-want[i]) > 1e-6 {
				t.Errorf("%q at step %d of 100: %v, want %v", schedule, step, got, want[i])
			}
		}
	}
}

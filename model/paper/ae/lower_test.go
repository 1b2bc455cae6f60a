//go:build cgo

package ae

import (
	"errors"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute/lower"
)

// XLA's builder accepts the programs of every model's stages and of each ablation's objective with its gradient.
func TestModelsAreProgramsOfXLA(t *testing.T) {
	type change = func(*model.Config)
	cases := map[string]struct {
		model  string
		change change
	}{
		"exact inverse":          {"hrr", func(c *model.Config) { c.Inverse = "exact" }},
		"unit symbols":           {"hrr", func(c *model.Config) { c.SymbolInit = "unit" }},
		"learned symbols":        {"hrr", func(c *model.Config) { c.LearnSymbols = true }},
		"learned, exact inverse": {"hrr", func(c *model.Config) { c.LearnSymbols, c.Inverse = true, "exact" }},
		"static codebook":        {"hrr", func(c *model.Config) { c.StaticCodebook = true }},
		"free codebook":          {"hrr", func(c *model.Config) { c.FreeCodebook = true }},
		"no denoiser":            {"hrr", func(c *model.Config) { c.NoDenoiser = true }},
		"tied":                   {"hrr", func(c *model.Config) { c.LambdaTie, c.LambdaCoherence = 0.1, 0.1 }},
		"random binding":         {"hrr", func(c *model.Config) { c.Binding = "random" }},
		"permutation binding":    {"hrr", func(c *model.Config) { c.Binding = "permutation" }},
		"concat binding":         {"hrr", func(c *model.Config) { c.Binding = "concat" }},
		"FFTs":                   {"hrr", func(c *model.Config) { c.D, c.K = 2048, 4 }},
		"FFTs, exact inverse":    {"hrr", func(c *model.Config) { c.D, c.K, c.Inverse = 2048, 4, "exact" }},
	}
	for _, name := range model.ModelNames() {
		cases[name] = struct {
			model  string
			change change
		}{name, func(*model.Config) {}}
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			cfg, err := model.Default(c.model, "tiny", "shapes3d-synthetic")
			if err != nil {
				t.Fatal(err)
			}
			c.change(&cfg)
			net, err := New(cfg, Image{H: 64, W: 64, C: 3})
			if err != nil {
				t.Fatal(err)
			}
			scope := context.New().Checked(false).In("model")
			if err := net.Init(scope, nil); err != nil {
				t.Fatal(err)
			}
			const batch = 2
			xla := lower.New(1)
			x := tensors.FromFlatDataAndDimensions(make([]float32, batch*64*64*3), batch, 64, 64, 3)
			z := tensors.FromFlatDataAndDimensions(make([]float32, batch*net.Size()), batch, net.Size())
			noise := tensors.FromFlatDataAndDimensions(make([]float32, batch*max(1, net.Noise())), batch, max(1, net.Noise()))
			for part, build := range map[string]func(scope *context.Context, x, z, noise *Node) []*Node{
				"images and back": func(scope *context.Context, x, z, _ *Node) []*Node {
					return []*Node{net.Decode(scope, net.Encode(scope, x)), z}
				},
				"with fixed weights": func(scope *context.Context, x, z, _ *Node) []*Node {
					return []*Node{net.DecodeFixed(scope, net.Fixed(scope, x.Graph()), net.Encode(scope, x)), z}
				},
				"from a latent": func(scope *context.Context, _, z, _ *Node) []*Node {
					slots, logits := net.FromLatent(scope, z)
					return []*Node{slots, logits}
				},
				"objective": func(scope *context.Context, x, _, noise *Node) []*Node {
					o := net.Losses(scope, Batch{Images: x, Draws: noise})
					return []*Node{o.Total, Gradient(o.Total, x)[0]}
				},
			} {
				written := len(xla.Programs())
				_, err := context.MustNewExec(xla, scope, build).Exec(x, z, noise)
				if !errors.Is(err, lower.ErrLowered) || len(xla.Programs()) != written+1 {
					t.Errorf("%s: XLA rejects: %v", part, err)
				}
			}
		})
	}
}

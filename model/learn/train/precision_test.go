//go:build cgo

package train

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/compute/cpu/kernel"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/paper/ae"
)

// losses returns the total loss and gradient norm of the first steps on the built-in images.
func losses(t *testing.T, cfg model.Config, steps int) (total, norm []float64) {
	t.Helper()
	set, err := data.Open(t.Context(), cfg.Dataset, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	engine, err := compute.OpenFor(model.Config{Engine: "cpu", Precision: cfg.Precision})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := New(cfg, ae.Image{H: 64, W: 64, C: 3}, engine)
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Finalize()
	sampler, err := data.NewSampler(cfg.Seed, cfg.Batch, set.Info().Len)
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= steps; step++ {
		images, err := read(set, sampler.Batch(step))
		if err != nil {
			t.Fatal(err)
		}
		out, err := trainer.Step(step, images)
		if err != nil {
			t.Fatal(err)
		}
		total, norm = append(total, out.Values["total"]), append(norm, out.Values["grad_norm"])
	}
	return total, norm
}

// mixable lists the models that support bf16; Tripod's second differences need more precision.
func mixable() []string {
	return slices.DeleteFunc(model.ModelNames(), func(name string) bool { return name == "tripod" })
}

// With bf16 every model's loss falls as with float32, and differs from it no more than operands of 8 significant bits explain.
func TestMixedPrecisionLearnsAlike(t *testing.T) {
	const steps = 6
	for _, name := range mixable() {
		t.Run(name, func(t *testing.T) {
			if name != "hrr" {
				expect.Long(t) // TestMixedProgram covers all models
			}
			cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
			if err != nil {
				t.Fatal(err)
			}
			cfg.Batch, cfg.Precision = 4, model.Float32
			exact, exactNorm := losses(t, cfg, steps)
			cfg.Precision = model.BF16
			mixed, mixedNorm := losses(t, cfg, steps)
			apart := func(a, b float64) float64 { return math.Abs(a-b) / math.Abs(b) }
			if d := apart(mixed[0], exact[0]); d == 0 || d > 0.01 {
				t.Errorf("first loss %v with bf16, %v with float32", mixed[0], exact[0])
			}
			if d := apart(mixedNorm[0], exactNorm[0]); d == 0 || d > 0.05 {
				t.Errorf("first gradient's norm %v with bf16, %v with float32", mixedNorm[0], exactNorm[0])
			}
			last := steps - 1
			if d := apart(mixed[last], exact[last]); d > 0.05 || mixed[last] >= mixed[0] {
				t.Errorf("loss %v after %d steps with bf16, %v with float32", mixed[last], steps, exact[last])
			}
			t.Logf("loss %.5f and %.5f, then %.5f and %.5f; norm %.4f and %.4f", exact[0], mixed[0], exact[last], mixed[last], exactNorm[0], mixedNorm[0])
		})
	}
}

var (
	defined  = regexp.MustCompile(`^ {4}((?:%[a-zA-Z0-9_]+(?:, )?)+) = "stablehlo\.([a-z_0-9]+)"\(([^)]*)\)`)
	value    = regexp.MustCompile(`%[a-zA-Z0-9_]+`)
	halfType = regexp.MustCompile(`tensor<[0-9x]*bf16>`)
)

// halves counts, by name, the operations with bfloat16 operands or results that a program's results depend on; XLA drops the others.
func halves(t *testing.T, program string) map[string]int {
	type operation struct {
		name   string
		reads  []string
		halves bool
	}
	by, last := map[string]*operation{}, (*operation)(nil)
	var wanted []string
	for line := range strings.Lines(program) {
		if m := defined.FindStringSubmatch(line); m != nil {
			last = &operation{name: m[2], reads: value.FindAllString(m[3], -1)}
			for _, result := range value.FindAllString(m[1], -1) {
				by[result] = last
			}
		}
		if strings.HasPrefix(line, `    "stablehlo.return"(`) {
			wanted = value.FindAllString(line, -1)
		}
		if last != nil {
			last.halves = last.halves || halfType.MatchString(line) // types follow attributes and regions
		}
	}
	if len(wanted) < 50 {
		t.Fatalf("the program returns %d values", len(wanted))
	}
	kinds, seen := map[string]int{}, map[*operation]bool{}
	for len(wanted) > 0 {
		op := by[wanted[0]]
		wanted = wanted[1:]
		if op == nil || seen[op] {
			continue
		}
		seen[op] = true
		wanted = append(wanted, op.reads...)
		if op.halves {
			kinds[op.name]++
		}
	}
	return kinds
}

// Only the autoencoder's convolutions and linear layers are bfloat16, not binding, sums, distances, variables or moments.
func TestMixedProgram(t *testing.T) {
	images := make([]byte, 4*64*64*3)
	for _, name := range mixable() {
		cfg, err := model.Default(name, "tiny", "shapes3d-synthetic")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Precision = model.BF16
		step := lowered(t, cfg, 1, func(t *Trainer) error { _, err := t.Step(1, images); return err })[0]
		kinds := halves(t, step)
		for _, moved := range []string{"convert", "reverse", "reshape", "transpose", "broadcast_in_dim", "constant", "subtract", "select", "slice", "negate"} {
			delete(kinds, moved) // operations that move operands or link custom gradients
		}
		want := map[string]int{"convolution": 26, "dot_general": 21} // three per layer; images need no gradient
		if name == "hrr" {
			want["dot_general"] = 33 // two layers each of denoiser and generator
		}
		if !maps.Equal(kinds, want) {
			t.Errorf("%s: bfloat16 operations are %v, want %v", name, kinds, want)
		}
		seen := lowered(t, cfg, 1, func(t *Trainer) error { _, _, err := t.Reconstruct(images); return err })[0]
		if halfType.MatchString(seen) {
			t.Errorf("%s: images are reconstructed in bfloat16", name)
		}
	}
}

func TestScoresSayThePrecision(t *testing.T) {
	undo, _ := kernel.ForceHalf("plain C") // so that bf16x3 is available here
	defer undo()
	for precision, want := range map[string]string{"": model.BF16x3, model.Float32: model.Float32, model.BF16: model.BF16, model.BF16x3: model.BF16x3} {
		cfg := little(t, "qlae")
		cfg.Precision, cfg.Steps = precision, 3
		f := create(t, cfg)
		if err := runIn(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if scores, err := f.Scores(); err != nil || scores.Precision != want {
			t.Errorf("%q on the CPU is scored as %q, %v", precision, scores.Precision, err)
		}
	}
	if got := (model.Config{}).Computed("xla:cuda"); got != model.TF32 {
		t.Errorf("on a GPU %q", got)
	}
}

// TestResumedPrecision: a run that began in float32 does not go on in bf16x3 where that is found to be faster.
func TestResumedPrecision(t *testing.T) {
	cfg := little(t, "qlae")
	f := create(t, cfg)
	for attempt, steps := range []int{2, 4} {
		cfg.Steps = steps
		if err := f.SetConfig(cfg); err != nil {
			t.Fatal(err)
		}
		available := "float32"
		if attempt > 0 {
			available = "plain C"
		}
		undo, _ := kernel.ForceHalf(available)
		defer undo()
		if err := runIn(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if s, err := f.Status(); err != nil || s.Precision != model.Float32 || s.Attempt != attempt+1 {
			t.Errorf("attempt %d in %s, %v", s.Attempt, s.Precision, err)
		}
	}
}
